internal import Ferry

/// What a plan file says: requests by their names, and the order in which they run.
struct Plan: Sendable {
    let file: JSONFile
    var name: String
    /// What paths are joined to; `nil` when the file leaves that to the command line.
    var base: PlanTemplate?
    /// Where answers are kept; `nil` when none are.
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
    /// Values of the body to be kept, by JSON Pointer (RFC 6901).
    var captures: [(name: String, pointer: String)] = []
    var status: [ClosedRange<Int>] = [200...299]
    /// With a `*` at the end the value begins so; `*` alone is any.
    var expectedHeaders: [(name: String, value: String)] = []
    var expectedJSON: [(pointer: String, value: JSON)] = []
    var schema: JSONSchema?
    /// `nil` when the cache has no part in it.
    var cache: PlanCachePolicy?

    enum Body: Sendable {
        case text(PlanTemplate)
        case json(PlanJSON)
        case form([(name: String, value: PlanTemplate)])
    }

    var templates: [PlanTemplate] {
        [path] + query.map(\.value) + headers.map(\.value) + [basic, bearer, cache?.sensitiveData].compactMap { $0 }
    }

    /// All that is to be filled in.
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

/// What runs: one request, several at once, or one after another.
struct PlanNode: Sendable {
    indirect enum Kind: Sendable {
        case request(String)
        case batch([PlanNode], atMost: Int?, collects: Bool, deadline: Duration?)
        case chain([PlanNode], deadline: Duration?)
        /// So many times, one after another.
        case repeated(PlanNode, Int)
    }

    let kind: Kind
    /// How many runs of requests it stands for.
    let count: Int
    /// How much there is to go through: likewise, but what has no run in it is one, too.
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

    /// How many of its requests may be on their way at once.
    var width: Int {
        switch kind {
        case .request: 1
        case .batch(let nodes, let atMost, _, _):
            nodes.map(\.width).sorted(by: >).prefix(atMost ?? .max).reduce(0, +)
        case .chain(let nodes, _): nodes.map(\.width).max() ?? 0
        case .repeated(let node, _): node.width
        }
    }

    /// The names of the requests, in the order written.
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

    /// A row for each run of a request, none of them begun.
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

/// Where a plan's answers are kept.
struct PlanCache: Sendable {
    var directory: PlanTemplate
    var applicationVersion: PlanTemplate?

    /// All that is to be filled in.
    var places: [PlanPlace] { directory.places + (applicationVersion?.places ?? []) }
}

/// What a request of a plan says of the cache.
struct PlanCachePolicy: Sendable {
    /// How long, and who says so.
    enum Lifetime: Sendable {
        case seconds(Duration)
        /// As the server says, by RFC 9111.
        case http(isShared: Bool)
    }

    var lifetime: Lifetime
    var version = 0
    /// Whose the answer is, filled in for each run.
    var sensitiveData: PlanTemplate?
    var writing = CachePolicy.Writing.asynchronous
    var mode = CacheMode.cacheElseNetwork
    /// Header fields that tell entries apart.
    var headers: [String] = []
}

extension CacheMode {
    /// By the word of the command line and of plans; `nil` for any other.
    init?(word: String) {
        switch word {
        case "else-network": self = .cacheElseNetwork
        case "reload": self = .reload
        case "only": self = .cacheOnly
        default: return nil
        }
    }
}

/// What `{{new.…}}` makes.
enum PlanGenerator: String, CaseIterable {
    case uuid, time, number, counter
}

/// What there is of an answer: `{{step.…}}`.
enum PlanAnswerPart: String, CaseIterable {
    case json, text, status, headers
}

extension CaseIterable where Self: RawRepresentable<String> {
    /// The words as people list them.
    static var list: String {
        let words = allCases.map(\.rawValue)
        return words.dropLast().joined(separator: ", ") + " and " + (words.last ?? "")
    }
}

/// What is wrong with a plan, or cannot be made of it.
struct PlanFault: Error, CustomStringConvertible {
    let description: String
    /// The string of the file that it is about; the file knows the line.
    let origin: JSON?

    init(_ description: String, at origin: JSON? = nil) {
        self.description = description
        self.origin = origin
    }
}

extension JSONFile {
    /// Without a line when it has nothing to do with one string of the file.
    func fault(_ fault: PlanFault) -> InputError {
        guard let origin = fault.origin else { return InputError("\(path): \(fault.description)") }
        return self.fault(origin, fault.description)
    }
}
