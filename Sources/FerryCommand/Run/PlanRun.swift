internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials

/// An active plan, and the rows that it fills.
struct PlanRun: Sendable {
    let plan: Plan
    let recorder: PlanRecorder
    private let state: PlanState

    init(_ start: PlanStart) {
        plan = start.plan
        state = start.state
        recorder = PlanRecorder(plan.root)
    }

    /// The report of a plan that was cancelled before it began.
    var cancelled: PlanReport {
        recorder.explain(plan.root, row: 0, .cancelled)
        return PlanReport(name: plan.name, rows: recorder.rows, nanoseconds: 0)
    }

    /// Runs the plan; failures are in the rows. Cancelling the task cancels the active requests.
    func perform(by agent: NetworkAgent) async -> PlanReport {
        recorder.begin()
        let steps = PlanSteps(plan: plan, state: state, recorder: recorder)
        var fault: RequestError?
        do throws(RequestError) {
            _ = try await agent.send(steps.chain(plan.root, row: 0))
        } catch {
            fault = error
        }
        recorder.explain(plan.root, row: 0, Task.isCancelled ? .cancelled : nil)
        return PlanReport(name: plan.name, rows: recorder.rows, nanoseconds: recorder.elapsed, fault: fault)
    }
}

/// Converts the steps of a plan. Each step is created when its turn comes: a chain of n steps or rounds is one link and
/// a promise of the rest, so creating it costs no more than running it.
struct PlanSteps: Sendable {
    let plan: Plan
    let state: PlanState
    let recorder: PlanRecorder

    /// `row` is the index of the step's first run.
    func chain(_ node: PlanNode, row: Int) -> ChainRequest<Void> {
        switch node.kind {
        case .request(let name): return call(name, row)
        case .repeated(let node, let times): return rounds(of: node, times, row)
        case .chain(let nodes, let deadline):
            let chain = steps(nodes[...], row)
            guard let deadline else { return chain }
            return chain.deadline(deadline).observed(by: observer(of: node, "chain", row, deadline))
        case .batch(let nodes, let limit, let collects, let deadline):
            let members = members(nodes, row)
            if collects {
                let batch = BatchRequest(members, .collectAll, atMost: limit ?? .max)
                return chain(batch, of: node, row, deadline)
            }
            return chain(BatchRequest(members, atMost: limit ?? .max), of: node, row, deadline)
        }
    }

    private func chain<Value>(
        _ batch: BatchRequest<Value>, of node: PlanNode, _ row: Int, _ deadline: Duration?
    ) -> ChainRequest<Void> {
        guard let deadline else { return ChainRequest(batch).map { _ in } }
        let observer = observer(of: node, "batch", row, deadline)
        return ChainRequest(batch.deadline(deadline).observed(by: observer)).map { _ in }
    }

    private func observer(of node: PlanNode, _ kind: String, _ row: Int, _ deadline: Duration) -> PlanGroupObserver {
        PlanGroupObserver(recorder: recorder, node: node, row: row, kind: kind, deadline: deadline)
    }

    // MARK: One after another

    private func steps(_ nodes: ArraySlice<PlanNode>, _ row: Int) -> ChainRequest<Void> {
        guard let first = nodes.first else { return ChainRequest(value: ()) }
        let rest = nodes.dropFirst()
        return step(first, row).then { steps(rest, row + first.count) }
    }

    private func rounds(of node: PlanNode, _ times: Int, _ row: Int) -> ChainRequest<Void> {
        if times == 0 { return ChainRequest(value: ()) }
        return step(node, row).then { rounds(of: node, times - 1, row + node.count) }
    }

    /// A chain with this one step, to which others can be added, whatever its settings as a whole are.
    private func step(_ node: PlanNode, _ row: Int) -> ChainRequest<Void> {
        if case .request(let name) = node.kind { return call(name, row) }
        return ChainRequest(value: ()).then { chain(node, row: row) }
    }

    // MARK: At once

    private func members(_ nodes: [PlanNode], _ row: Int) -> [PlanMember] {
        var row = row
        return nodes.map { node in
            defer { row += node.count }
            return PlanMember(steps: self, node: node, row: row)
        }
    }

    // MARK: One request

    private func call(_ name: String, _ row: Int) -> ChainRequest<Void> {
        guard let request = plan.requests[name] else { preconditionFailure("the reader knows all names") }
        return ChainRequest(value: ()).then(name) { [state, recorder] in
            do throws(PlanFault) {
                return try PlanCall(request, state, recorder, row: row)
            } catch {
                recorder.failed(row, error)
                throw RequestError(.applicationError, message: error.description)
            }
        }
    }
}

/// A member of a batch, created when it starts.
private struct PlanMember: RequestGroup {
    let steps: PlanSteps
    let node: PlanNode
    let row: Int

    var groupMember: GroupMember<Void> { steps.chain(node, row: row).groupMember }
}

/// Why a run of a request never started.
enum PlanSkip: Sendable {
    case deadline(String)
    case failure(of: String)
    case cancelled

    var text: String {
        switch self {
        case .deadline(let whose): "\(whose) had passed"
        case .failure(let name): "'\(name)' failed"
        case .cancelled: "the run was cancelled"
        }
    }

    /// Whether this also made a row fail that had started.
    fileprivate func explains(_ row: PlanRow) -> Bool {
        guard case .deadline = self else { return false }
        return row.code == .timeout(.deadline) || row.code == .timeout(.queue)
    }
}

/// Sets the reason of rows that never started: what ended the chain or batch that contains them.
struct PlanSkips {
    private(set) var rows: [PlanRow]

    init(_ rows: consuming [PlanRow]) { self.rows = rows }

    /// `skip` is what ended the whole step, unless something in it ended it earlier.
    mutating func explain(_ node: PlanNode, row: Int, _ skip: PlanSkip?) { _ = walk(node, row, skip) }

    /// What ended it; `nil` if it succeeded.
    private mutating func walk(_ node: PlanNode, _ row: Int, _ skip: PlanSkip?) -> PlanSkip? {
        switch node.kind {
        case .request: return look(at: row, skip)
        case .chain(let nodes, _): return walk(nodes, row, skip) { $1 ?? $0 }
        case .repeated(let node, let times):
            var skip = skip
            for round in 0..<times { skip = walk(node, row + round * node.count, skip) ?? skip }
            return skip
        case .batch(let nodes, _, true, _):
            _ = walk(nodes, row, skip) { before, _ in before }
            return nil
        case .batch(let nodes, _, false, _):
            let end = rows[row..<row + node.count].filter { $0.state == .failed }.min { $0.end < $1.end }
            let skip = end.map { skip?.explains($0) == true ? skip : .failure(of: $0.name) } ?? skip
            return walk(nodes, row, skip) { before, _ in before }
        }
    }

    private mutating func walk(
        _ nodes: [PlanNode], _ row: Int, _ skip: PlanSkip?, _ next: (PlanSkip?, PlanSkip?) -> PlanSkip?
    ) -> PlanSkip? {
        var (row, skip) = (row, skip)
        for node in nodes {
            skip = next(skip, walk(node, row, skip))
            row += node.count
        }
        return skip
    }

    private mutating func look(at row: Int, _ skip: PlanSkip?) -> PlanSkip? {
        switch rows[row].state {
        case .finished, .running: return nil
        case .skipped:
            if rows[row].reason == nil { rows[row].reason = skip?.text }
            return skip
        case .failed: return skip?.explains(rows[row]) == true ? skip : .failure(of: rows[row].name)
        case .cancelled: return skip ?? .cancelled
        }
    }
}

/// One run of a request of a plan, with all placeholders filled in. It has no value; it matters that the response is as
/// expected, and what is captured.
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

    /// `recorder` receives the result in its row.
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
        guard let credentials = Credentials(text) else { throw PlanFault("'basic' must be USER:PASSWORD") }
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
