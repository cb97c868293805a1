internal import Ferry

/// A text with placeholders: `/users/{{login.json.user.id}}`.
struct PlanTemplate: Sendable {
    enum Part: Sendable {
        case text(String)
        case place(PlanPlace)
    }

    let source: String
    let parts: [Part]
    /// The string of the file.
    let origin: JSON?

    /// A text without placeholders is a template, too. `origin` is its position in the file.
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

    /// The text, if there are no placeholders.
    var fixed: String? { places.isEmpty ? source : nil }

    /// The only placeholder, if there is nothing else: its value keeps its type.
    var onlyPlace: PlanPlace? { parts.count == 1 ? places.first : nil }
}

/// A placeholder in a template: words separated by dots, and the text to use if there is no value.
struct PlanPlace: Sendable {
    /// At least one; none is empty.
    let words: [String]
    let fallback: String?
    /// The string of the file that contains it.
    let origin: JSON?

    init(_ text: Substring, at origin: JSON?) throws(PlanFault) {
        self.origin = origin
        let bar = text.firstIndex(of: "|") ?? text.endIndex
        let path = text[..<bar].filter { $0 != " " }
        words = path.split(separator: ".", omittingEmptySubsequences: false).map { String($0) }
        fallback = bar == text.endIndex ? nil : String(text[text.index(after: bar)...])
        if words.contains("") { throw PlanFault("'{{\(text)}}' is an unknown name", at: origin) }
    }

    /// The name under which its value is looked up: a variable, a captured value, a request, or a reserved word.
    var name: String { words[0] }

    var description: String { words.joined(separator: ".") }
}

/// JSON with placeholders in its strings.
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

/// Follows the steps of a plan in the order of execution, and finds placeholders that need a request which has not run.
struct PlanOrder {
    /// A batch around the current step.
    private struct Batch {
        let members: [PlanNode]
        /// The member that contains the step.
        let index: Int
    }

    private let plan: Plan
    private let needs: [String: [PlanPlace]]
    private let capturers: [String: [String]]
    /// Requests with a response so far, and captured values.
    private var known: Set<String> = []
    /// The same in order of arrival, back to the member of the nearest batch.
    private var news: [String] = []
    private var batches: [Batch] = []

    /// `needs` are the placeholders by request.
    init(_ plan: Plan, needs: [String: [PlanPlace]], _ capturers: [String: [String]]) {
        self.plan = plan
        self.needs = needs
        self.capturers = capturers
    }

    /// Throws the first mistake.
    mutating func check() throws(PlanFault) { try walk(plan.root) }

    private mutating func walk(_ node: PlanNode) throws(PlanFault) {
        switch node.kind {
        case .request(let name):
            for place in needs[name] ?? [] where !known.contains(place.name) { throw fault(place, in: name) }
            learn(name)
            for (value, _) in plan.requests[name]?.captures ?? [] { learn(value) }
        case .chain(let nodes, _), .batch(let nodes, 1?, _, _): for node in nodes { try walk(node) }
        case .batch(let nodes, _, _, _): try walk(members: nodes)
        // A mistake shows in the first round.
        case .repeated(let node, _): try walk(node)
        }
    }

    /// Each member knows what came before the batch; what comes after the batch knows the results of all members.
    private mutating func walk(members: [PlanNode]) throws(PlanFault) {
        var brought: [String] = []
        for (index, member) in members.enumerated() {
            let before = news.count
            batches.append(Batch(members: members, index: index))
            try walk(member)
            batches.removeLast()
            brought += news[before...]
            known.subtract(news[before...])
            news.removeSubrange(before...)
        }
        for name in brought { learn(name) }
    }

    private mutating func learn(_ name: String) {
        if known.insert(name).inserted { news.append(name) }
    }

    // MARK: Error messages

    private func fault(_ place: PlanPlace, in request: String) -> PlanFault {
        let isAnswer = plan.requests[place.name] != nil
        let sources = isAnswer ? [place.name] : capturers[place.name] ?? []
        let running = Set(plan.root.names)
        let others = sources.filter { $0 != request && running.contains($0) }
        let source: String
        let why: String
        if let beside = others.first(where: isBeside) {
            (source, why) = (beside, "runs at the same time")
        } else if let later = others.first {
            (source, why) = (later, "runs later")
        } else if sources.contains(request) {
            (source, why) = (request, "has no response before it runs")
        } else {
            (source, why) = (sources.first ?? place.name, "never runs")
        }
        let what = isAnswer ? "'\(source)'" : "'\(source)', which captures it,"
        return PlanFault("'{{\(place.description)}}' has no value in '\(request)': \(what) \(why)", at: place.origin)
    }

    /// Whether a request runs in another member of an enclosing batch.
    private func isBeside(_ name: String) -> Bool {
        batches.contains { batch in
            batch.members.enumerated().contains { $0.offset != batch.index && $0.element.names.contains(name) }
        }
    }
}
