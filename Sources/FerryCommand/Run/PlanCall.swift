internal import Ferry
internal import FoundationEssentials

/// One run of a request of a plan, with everything filled in. Its value is nothing: what counts is that the answer is
/// as expected, and what is captured of it.
struct PlanCall: Request {
    typealias Value = Void

    let path: String
    let method: HTTPMethod
    let arguments: Arguments
    let headers: Headers
    let body: RequestBody?
    let authorization: Authorization?
    let cachePolicy: CachePolicy
    let observers: [any RequestObserver]
    private let plan: PlanRequest
    private let state: PlanState

    /// `recorder` gets what becomes of it, in its row.
    init(_ plan: PlanRequest, _ state: PlanState, _ recorder: PlanRecorder, row: Int) throws(PlanFault) {
        self.plan = plan
        self.state = state
        observers = [
            PlanObserver(recorder: recorder, row: row) { PlanExpectation.explanation(of: $0, plan) }
        ]
        path = URLQuery.appending(try Self.fields(plan.query, state), to: try state.text(plan.path))
        method = plan.method
        var headers = Headers()
        for (name, value) in try Self.fields(plan.headers, state) { headers.append(name, value) }
        self.headers = headers
        var arguments = Arguments()
        switch plan.body {
        case .text(let text): body = .string(try state.text(text))
        case .json(let json): body = .json(try state.json(json))
        case .form(let form):
            for (name, value) in try Self.fields(form, state) { arguments[name] = .string(value) }
            body = nil
        case nil: body = nil
        }
        self.arguments = arguments
        authorization = try Self.authorization(plan, state)
        cachePolicy = try Self.cachePolicy(plan, state)
    }

    private static func cachePolicy(_ plan: PlanRequest, _ state: PlanState) throws(PlanFault) -> CachePolicy {
        guard let cache = plan.cache else { return .configured }
        var sensitiveData: String?
        if let template = cache.sensitiveData { sensitiveData = try state.text(template) }
        switch cache.lifetime {
        case .seconds(let time):
            return .timeToLive(time, version: cache.version, sensitiveData: sensitiveData, write: cache.writing)
        case .http(let isShared):
            return .http(shared: isShared, sensitiveData: sensitiveData, write: cache.writing)
        }
    }

    private static func fields(
        _ templates: [(name: String, value: PlanTemplate)], _ state: PlanState
    ) throws(PlanFault) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for (name, value) in templates { fields.append((name, try state.text(value))) }
        return fields
    }

    private static func authorization(_ plan: PlanRequest, _ state: PlanState) throws(PlanFault) -> Authorization? {
        if let bearer = plan.bearer { return .bearer(try state.text(bearer)) }
        guard let basic = plan.basic else { return nil }
        let text = try state.text(basic)
        guard let credentials = Credentials(text) else { throw PlanFault("'basic' wants USER:PASSWORD") }
        return .basic(credentials.user, credentials.password)
    }

    var argumentEncoding: ArgumentEncoding { .form }
    var timeouts: Timeouts? { plan.timeout.map { Timeouts(idle: nil, total: $0) } }
    var deadline: Duration? { plan.deadline }
    var priority: RequestPriority { plan.priority }
    var tag: String? { plan.name }
    var jsonSchema: JSONSchema? { plan.schema }
    var cacheMode: CacheMode { plan.cache?.mode ?? .cacheElseNetwork }
    var cacheHeaders: [String] { plan.cache?.headers ?? [] }
    var retryPolicy: RetryPolicy? {
        plan.retries.map { $0 == 0 ? .none : .exponential(maxAttempts: $0 + 1) }
    }
    var statusValidation: StatusValidation? {
        .custom { [ranges = plan.status] status in ranges.contains { $0.contains(status) } }
    }

    func value(from response: Response) throws {
        try PlanExpectation.check(response, plan)
        for (name, pointer) in plan.captures {
            state.capture(try PlanExpectation.captured(name, pointer, response), as: name)
        }
        state.answered(plan.name, response)
    }
}
