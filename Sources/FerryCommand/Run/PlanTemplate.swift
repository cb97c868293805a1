internal import Ferry

/// A text with places to be filled in: `/users/{{login.json.user.id}}`.
struct PlanTemplate: Sendable {
    enum Part: Sendable {
        case text(String)
        case place(PlanPlace)
    }

    let source: String
    let parts: [Part]
    /// The string of the file that it is.
    let origin: JSON?

    /// A text without places is a template too. `origin` is where it stands in the file.
    init(_ source: String, at origin: JSON? = nil) throws(PlanFault) {
        self.source = source
        self.origin = origin
        var parts: [Part] = []
        var rest = source[...]
        while let open = rest.firstRange(of: "{{") {
            if open.lowerBound > rest.startIndex { parts.append(.text(String(rest[..<open.lowerBound]))) }
            guard let close = rest[open.upperBound...].firstRange(of: "}}") else {
                throw PlanFault("'{{' without '}}'", at: origin)
            }
            parts.append(.place(try PlanPlace(rest[open.upperBound..<close.lowerBound], at: origin)))
            rest = rest[close.upperBound...]
        }
        if !rest.isEmpty { parts.append(.text(String(rest))) }
        self.parts = parts
    }

    var places: [PlanPlace] { parts.compactMap { if case .place(let place) = $0 { place } else { nil } } }

    /// The one place that is all of it: its value keeps its type.
    var onlyPlace: PlanPlace? { parts.count == 1 ? places.first : nil }
}

/// A place in a template: words with points between them, and what stands there when there is nothing.
struct PlanPlace: Sendable {
    /// At least one; none is empty.
    let words: [String]
    let fallback: String?
    /// The string of the file that it is in.
    let origin: JSON?

    init(_ text: Substring, at origin: JSON?) throws(PlanFault) {
        self.origin = origin
        let bar = text.firstIndex(of: "|") ?? text.endIndex
        let path = text[..<bar].filter { $0 != " " }
        words = path.split(separator: ".", omittingEmptySubsequences: false).map { String($0) }
        fallback = bar == text.endIndex ? nil : String(text[text.index(after: bar)...])
        if words.contains("") { throw PlanFault("'{{\(text)}}' names nothing", at: origin) }
    }

    /// What its value is looked up by: a variable, a captured value, a request, or a word of the file's own.
    var name: String { words[0] }

    var description: String { words.joined(separator: ".") }
}

/// JSON with places in its strings.
indirect enum PlanJSON: Sendable {
    case constant(JSON)
    case text(PlanTemplate)
    case array([PlanJSON])
    case object([(String, PlanJSON)])

    init(_ json: JSON) throws(PlanFault) {
        if let text = json.string {
            self = .text(try PlanTemplate(text, at: json))
        } else if let array = json.array {
            var elements: [PlanJSON] = []
            for element in array { elements.append(try PlanJSON(element)) }
            self = .array(elements)
        } else if let object = json.object {
            var members: [(String, PlanJSON)] = []
            for (key, value) in object { members.append((key, try PlanJSON(value))) }
            self = .object(members)
        } else {
            self = .constant(json)
        }
    }

    var places: [PlanPlace] {
        switch self {
        case .constant: []
        case .text(let template): template.places
        case .array(let elements): elements.flatMap(\.places)
        case .object(let members): members.flatMap { $0.1.places }
        }
    }
}
