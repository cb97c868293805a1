/// A text that is compared by its scalars, like JSON strings; a `String` also equals canonically equivalent text.
struct ExactText: Hashable {
    let text: String

    init(_ text: String) {
        self.text = text
    }

    static func == (a: ExactText, b: ExactText) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

    func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// The identifiers of the schemas of one document, and the references between them. It is filled while the document is
/// read, and used by one reader only.
final class SchemaLinks {
    /// A reference: its place in the document, and its target.
    private struct Reference {
        let pointer: String
        let from: Int
        let target: SchemaAddress
    }

    /// A step to another schema for the same value.
    private enum Step {
        case schema(Int)
        case reference(Int)
    }

    private(set) var dialect = SchemaDialect.draft2020
    let assertsFormats: Bool
    /// The schemas by their JSON Pointers.
    private var schemas: [ExactText: Int] = [:]
    /// The JSON Pointers of the schemas with an identifier, by the identifier.
    private var resources: [ExactText: String] = [:]
    private var anchors: [ExactText: Int] = [:]
    private var references: [Reference] = []
    private var steps: [Int: [Step]] = [:]
    private var patterns: [ExactText: SchemaPattern] = [:]
    private var patternMemory = 0

    /// The maximum memory of the patterns of one document.
    private static let mostPatternMemory = 128 << 20

    init(dialect: SchemaDialect, assertsFormats: Bool) {
        self.dialect = dialect
        self.assertsFormats = assertsFormats
        resources[ExactText("")] = ""
    }

    func add(schema node: Int, at pointer: String) {
        schemas[ExactText(pointer)] = node
    }

    /// Registers an identifier; returns the base of the references in its schema.
    func add(identifier: String, of node: Int, at pointer: String, base: SchemaAddress) throws(JSONSchemaError)
        -> SchemaAddress
    {
        let address = SchemaAddress(identifier).resolved(against: base)
        if let name = address.fragment, !name.isEmpty {
            guard dialect == .draft7 else {
                throw JSONSchemaError(pointer: pointer, keyword: "$id", message: "has a fragment; use $anchor")
            }
            try add(anchor: name, keyword: "$id", of: node, at: pointer, base: address)
        }
        if identifier.hasPrefix("#") { return base }
        let document = ExactText(address.document)
        // The outermost schema can be referred to with or without its identifier.
        guard resources[document].map({ $0 == pointer }) ?? true else {
            throw JSONSchemaError(pointer: pointer, keyword: "$id", message: "appears twice in the document")
        }
        resources[document] = pointer
        return address
    }

    func add(anchor: String, keyword: String, of node: Int, at pointer: String, base: SchemaAddress)
        throws(JSONSchemaError)
    {
        guard anchors.updateValue(node, forKey: ExactText(base.document + "#" + anchor)) == nil else {
            throw JSONSchemaError(pointer: pointer, keyword: keyword, message: "appears twice in the document")
        }
    }

    /// Registers a reference; returns its number.
    func add(reference: String, from node: Int, at pointer: String, base: SchemaAddress) -> Int {
        let target = SchemaAddress(reference).resolved(against: base)
        references.append(Reference(pointer: pointer, from: node, target: target))
        steps[node, default: []].append(.reference(references.count - 1))
        return references.count - 1
    }

    /// Registers that `other` applies to the same values as `node`.
    func add(step node: Int, to other: Int) {
        steps[node, default: []].append(.schema(other))
    }

    /// Compiles a pattern, or returns the one compiled before.
    func pattern(_ text: String) throws(SchemaPatternError) -> SchemaPattern {
        if let pattern = patterns[ExactText(text)] { return pattern }
        let pattern = try SchemaPattern(text)
        patternMemory += pattern.memory
        guard patternMemory <= Self.mostPatternMemory else {
            throw SchemaPatternError(message: "the patterns of the schema need too much memory")
        }
        patterns[ExactText(text)] = pattern
        return pattern
    }

    /// Completes the document after reading: every reference must have a target, and must not lead back to itself.
    func document() throws(JSONSchemaError) -> SchemaDocument {
        var targets: [Int] = []
        for reference in references { targets.append(try target(of: reference)) }
        try refuseCircles(targets)
        return SchemaDocument(targets: targets)
    }

    private func target(of reference: Reference) throws(JSONSchemaError) -> Int {
        let document = reference.target.document
        guard let resource = resources[ExactText(document)] else {
            throw fault(reference, "refers to another document, which is not supported: \(document)")
        }
        guard let fragment = reference.target.plainFragment else {
            throw fault(reference, "has invalid percent-encoding")
        }
        let isPointer = fragment.isEmpty || fragment.utf8.first == UInt8(ascii: "/")
        guard
            let node = isPointer
                ? schemas[ExactText(resource + fragment)] : anchors[ExactText(document + "#" + fragment)]
        else {
            throw fault(reference, "refers to no schema: #\(fragment)")
        }
        return node
    }

    private func fault(_ reference: Reference, _ message: String) -> JSONSchemaError {
        JSONSchemaError(pointer: reference.pointer, keyword: "$ref", message: message)
    }

    /// Throws if a schema applies itself to the same value again, which would never end.
    private func refuseCircles(_ targets: [Int]) throws(JSONSchemaError) {
        struct Visit {
            let node: Int
            let reference: Int?
            var next = 0
        }
        var isOnTheWay: Set<Int> = []
        var isDone: Set<Int> = []
        // In the order of the document, so that the same document has the same error.
        for start in references.map(\.from) where !isDone.contains(start) {
            var way = [Visit(node: start, reference: nil)]
            isOnTheWay.insert(start)
            while let visit = way.last {
                let steps = steps[visit.node] ?? []
                guard visit.next < steps.count else {
                    isOnTheWay.remove(visit.node)
                    isDone.insert(visit.node)
                    way.removeLast()
                    continue
                }
                way[way.count - 1].next += 1
                let (node, reference): (Int, Int?) =
                    switch steps[visit.next] {
                    case .schema(let node): (node, nil)
                    case .reference(let number): (targets[number], number)
                    }
                if isOnTheWay.contains(node) {
                    // One of the steps of the circle is a reference.
                    let first = way.lastIndex { $0.node == node } ?? 0
                    let guilty = reference ?? way[(first + 1)...].compactMap(\.reference).last ?? 0
                    throw fault(references[guilty], "refers back to itself for the same value")
                }
                guard !isDone.contains(node) else { continue }
                isOnTheWay.insert(node)
                way.append(Visit(node: node, reference: reference))
            }
        }
    }
}
