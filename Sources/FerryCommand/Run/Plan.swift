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
