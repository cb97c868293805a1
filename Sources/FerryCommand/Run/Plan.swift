internal import Ferry

/// A parsed plan: requests by name, and the order in which they run.
struct Plan: Sendable {
    let file: JSONFile
    var name: String
    /// The base URL of the paths; `nil` if the command line sets it.
    var base: PlanTemplate?
    /// Where responses are stored; `nil` without a cache.
    var cache: PlanCache?
    var variables: [(name: String, value: PlanJSON)] = []
    var requests: [String: PlanRequest] = [:]
    var root = PlanNode(.chain([], deadline: nil))
}

/// One request of a plan.
struct PlanRequest: Sendable {
    var name: String
    var method = HTTPMethod.get
    var path: PlanTemplate
    var query: [(name: String, value: PlanTemplate)] = []
    var headers: [(name: String, value: PlanTemplate)] = []
    var body: Body?
    var basic: PlanTemplate?
    var bearer: PlanTemplate?
    var timeout: Duration?
    var deadline: Duration?
    var retries: Int?
    var priority = RequestPriority.normal
    /// Values of the body to capture, by JSON Pointer (RFC 6901).
    var captures: [(name: String, pointer: String)] = []
    var status: [ClosedRange<Int>] = [200...299]
    /// A value that ends in `*` is a prefix; `*` alone matches any value.
    var expectedHeaders: [(name: String, value: String)] = []
    var expectedJSON: [(pointer: String, value: JSON)] = []
    var schema: JSONSchema?
    /// `nil` if the request is not cached.
    var cache: PlanCachePolicy?

    enum Body: Sendable {
        case text(PlanTemplate)
        case json(PlanJSON)
        case form([(name: String, value: PlanTemplate)])
    }

    /// Whether a body is sent: a form without fields is none.
    var hasBody: Bool {
        if case .form(let fields)? = body { return !fields.isEmpty }
        return body != nil
    }

    var templates: [PlanTemplate] {
        [path] + query.map(\.value) + headers.map(\.value) + [basic, bearer, cache?.sensitiveData].compactMap { $0 }
    }

    /// All placeholders.
    var places: [PlanPlace] {
        let inBody =
            switch body {
            case .text(let template): template.places
            case .json(let json): json.places
            case .form(let fields): fields.flatMap(\.value.places)
            case nil: [PlanPlace]()
            }
        return templates.flatMap(\.places) + inBody
    }
}

/// A step: one request, several at once, or one after another.
struct PlanNode: Sendable {
    indirect enum Kind: Sendable {
        case request(String)
        case batch([PlanNode], atMost: Int?, collects: Bool, deadline: Duration?)
        case chain([PlanNode], deadline: Duration?)
        /// Repeated this many times in sequence.
        case repeated(PlanNode, Int)
    }

    let kind: Kind
    /// The number of runs of requests in it.
    let count: Int
    /// The amount of work: the same, but a step without runs counts as one, too.
    let work: Int

    init(_ kind: Kind) {
        self.kind = kind
        switch kind {
        case .request: (count, work) = (1, 1)
        case .batch(let nodes, _, _, _), .chain(let nodes, _):
            count = nodes.reduce(0) { $0 + $1.count }
            work = max(nodes.reduce(0) { $0 + $1.work }, 1)
        case .repeated(let node, let times): (count, work) = (node.count * times, node.work * times)
        }
    }

    /// The maximum number of requests that may be active at once.
    var width: Int {
        switch kind {
        case .request: 1
        case .batch(let nodes, let atMost, _, _):
            nodes.map(\.width).sorted(by: >).prefix(atMost ?? .max).reduce(0, +)
        case .chain(let nodes, _): nodes.map(\.width).max() ?? 0
        case .repeated(let node, _): node.width
        }
    }

    /// The names of the requests, in order.
    var names: [String] {
        var names: [String] = []
        addNames(to: &names)
        return names
    }

    private func addNames(to names: inout [String]) {
        switch kind {
        case .request(let name): names.append(name)
        case .batch(let nodes, _, _, _), .chain(let nodes, _): for node in nodes { node.addNames(to: &names) }
        case .repeated(let node, _): node.addNames(to: &names)
        }
    }

    /// A row for each run of a request, before the start.
    func rows(depth: Int = 0) -> [PlanRow] {
        var rows: [PlanRow] = []
        rows.reserveCapacity(count)
        addRows(depth: depth, to: &rows)
        return rows
    }

    private func addRows(depth: Int, to rows: inout [PlanRow]) {
        switch kind {
        case .request(let name): rows.append(PlanRow(name: name, depth: depth))
        case .batch(let nodes, _, _, _), .chain(let nodes, _):
            for node in nodes { node.addRows(depth: depth + 1, to: &rows) }
        case .repeated(let node, let times): for _ in 0..<times { node.addRows(depth: depth, to: &rows) }
        }
    }
}

/// Where a plan's responses are stored.
struct PlanCache: Sendable {
    var directory: PlanTemplate
    var applicationVersion: PlanTemplate?

    /// All placeholders.
    var places: [PlanPlace] { directory.places + (applicationVersion?.places ?? []) }
}

/// The cache policy of a request of a plan.
struct PlanCachePolicy: Sendable {
    /// How long responses are used, and who decides.
    enum Lifetime: Sendable {
        case seconds(Duration)
        /// As the server says (RFC 9111).
        case http(isShared: Bool)
    }

    var lifetime: Lifetime
    var version = 0
    /// Whose response it is, filled in for each run.
    var sensitiveData: PlanTemplate?
    var writing = CachePolicy.Writing.asynchronous
    var mode = CacheMode.cacheElseNetwork
    /// Header fields in the cache key.
    var headers: [String] = []
}

extension CacheMode {
    /// From the name on the command line or in a plan; `nil` for any other.
    init?(word: String) {
        switch word {
        case "else-network": self = .cacheElseNetwork
        case "reload": self = .reload
        case "only": self = .cacheOnly
        default: return nil
        }
    }
}

/// The generators of `{{new.…}}`.
enum PlanGenerator: String, CaseIterable {
    case uuid, time, number, counter
}

/// The parts of a response: `{{step.…}}`.
enum PlanAnswerPart: String, CaseIterable {
    case json, text, status, headers
}

extension CaseIterable where Self: RawRepresentable<String> {
    /// The names as a list for people.
    static var list: String {
        let words = allCases.map(\.rawValue)
        return words.dropLast().joined(separator: ", ") + " and " + (words.last ?? "")
    }
}

/// A mistake in a plan, or a value that cannot be computed.
struct PlanFault: Error, CustomStringConvertible {
    let description: String
    /// The string of the file that it refers to, for the line number.
    let origin: JSON?

    init(_ description: String, at origin: JSON? = nil) {
        self.description = description
        self.origin = origin
    }
}

extension JSONFile {
    /// Without a line if it does not refer to one string of the file.
    func fault(_ fault: PlanFault) -> InputError {
        guard let origin = fault.origin else { return InputError("\(path): \(fault.description)") }
        return self.fault(origin, fault.description)
    }
}
