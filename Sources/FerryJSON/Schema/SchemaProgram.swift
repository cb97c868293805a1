internal import CFerryJSON

/// A compiled schema: flat arrays that the checker reads.
///
/// Sendable because it does not change after its initialiser.
final class SchemaProgram: @unchecked Sendable {
    let schema: ferry_json_schema
    let rules: [ferry_json_rule]
    let properties: [SchemaCompiler.Property]
    let patterns: [UInt32: SchemaPattern]
    let formats: [UInt32: JSONSchema.Format]
    private let allPatterns: [SchemaPattern]
    private let constants: JSON
    private let memory: [UnsafeMutableRawPointer]

    init(compiled: SchemaCompiler) {
        constants = compiled.constants
        properties = compiled.properties
        patterns = compiled.patterns
        formats = compiled.formats
        allPatterns = compiled.allPatterns
        rules = compiled.rules
        var memory: [UnsafeMutableRawPointer] = []
        let keys = properties.map { property in
            let copy = Self.copy(Array(property.key.utf8), into: &memory)
            return ferry_json_property(
                key: copy, count: UInt32(property.key.utf8.count), rule: property.rule,
                required: property.isRequired, named: property.isNamed)
        }
        let dependencies = compiled.dependencies.map { dependency in
            let copy = Self.copy(Array(dependency.key.utf8), into: &memory)
            return ferry_json_dependency(
                key: copy, count: UInt32(dependency.key.utf8.count), rule: dependency.rule,
                required: dependency.required)
        }
        schema = ferry_json_schema(
            rules: Self.copy(rules, into: &memory), extras: Self.copy(compiled.extras, into: &memory),
            properties: Self.copy(keys, into: &memory), list: Self.copy(compiled.list, into: &memory),
            patterned: Self.copy(compiled.patterned, into: &memory),
            dependencies: Self.copy(dependencies, into: &memory), constants: constants.document.tape)
        self.memory = memory
    }

    deinit {
        for pointer in memory { pointer.deallocate() }
    }

    /// Checks the value at `index`; `nil` if it matches.
    func check(_ tape: ferry_json_tape, at index: Int) -> JSONMismatch? {
        var mismatch = ferry_json_mismatch()
        let fits = withUnsafePointer(to: schema) { ferry_json_check($0, tape, index, &mismatch) }
        return fits ? nil : SchemaReport(program: self, tape: tape, mismatch: mismatch).mismatch
    }

    /// The rare keywords of a rule.
    func extra(of rule: ferry_json_rule) -> ferry_json_extra? {
        rule.extra == FERRY_JSON_NO_RULE ? nil : schema.extras[Int(rule.extra)]
    }

    /// The rules at these places of the list.
    func rules(_ span: ferry_json_span) -> [ferry_json_rule] {
        (span.first..<span.first + span.count).map { rules[Int(schema.list[Int($0)])] }
    }

    /// A constant: the array of an enumeration's values, or the number of a bound.
    func constant(at index: UInt32) -> JSON {
        JSON(document: constants.document, index: Int(index))
    }

    private static func copy<T>(_ values: [T], into memory: inout [UnsafeMutableRawPointer]) -> UnsafePointer<T> {
        let copy = UnsafeMutablePointer<T>.allocate(capacity: max(values.count, 1))
        copy.initialize(from: values, count: values.count)
        memory.append(UnsafeMutableRawPointer(copy))
        return UnsafePointer(copy)
    }
}

/// A compiled regular expression.
///
/// Sendable because RE2 may search with one expression on many threads at once.
final class SchemaPattern: @unchecked Sendable {
    let text: String
    let handle: OpaquePointer

    init(_ text: String) throws(SchemaPatternError) {
        var message = [CChar](repeating: 0, count: 128)
        var copy = text
        let handle = copy.withUTF8 { bytes in
            ferry_json_pattern_create(bytes.baseAddress, bytes.count, &message, message.count)
        }
        guard let handle else {
            let bytes = message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw SchemaPatternError(message: String(decoding: bytes, as: UTF8.self))
        }
        self.text = text
        self.handle = handle
    }

    /// Creates a pattern from a literal in the program, which must be valid.
    convenience init(trusted text: String) {
        do {
            try self.init(text)
        } catch {
            preconditionFailure("the pattern \(text) cannot be used: \(error.message)")
        }
    }

    /// The maximum memory of the pattern, in bytes.
    var memory: Int { ferry_json_pattern_memory(handle) }

    deinit { ferry_json_pattern_free(handle) }
}

/// The reason why a pattern cannot be used.
struct SchemaPatternError: Error {
    let message: String
}
