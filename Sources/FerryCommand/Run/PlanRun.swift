internal import Ferry
internal import FerryMeasurement

/// A plan under way: the batches and chains that it stands for, and the rows that they fill.
struct PlanRun: Sendable {
    let plan: Plan
    let recorder: PlanRecorder
    private let chain: ChainRequest<Void>

    /// Values given on the command line win over those of the file.
    init(_ plan: Plan, values: [(name: String, value: String)] = []) throws(PlanFault) {
        self.plan = plan
        let state = try PlanState(variables: plan.variables, overruledBy: values)
        var rows: [PlanRow] = []
        Self.addRows(of: plan.root, plan, depth: 0, to: &rows)
        let recorder = PlanRecorder(rows)
        self.recorder = recorder
        var maker = Maker(plan: plan, state: state, recorder: recorder)
        chain = maker.chain(plan.root)
    }

    /// What an agent for it has to know. A base given on the command line wins over the plan's.
    static func configuration(
        for plan: Plan, values: [(name: String, value: String)] = [], base: String? = nil
    ) throws(PlanFault) -> NetworkConfiguration {
        let state = try PlanState(variables: plan.variables, overruledBy: values)
        var configuration = NetworkConfiguration(baseURL: base)
        if base == nil, let base = plan.base { configuration.baseURL = try state.text(base) }
        if let cache = plan.cache {
            let directory = try state.text(cache.directory)
            if directory.isEmpty { throw PlanFault("the cache's 'dir' is empty") }
            configuration.cache = CacheConfiguration(directory: directory)
            if let version = cache.applicationVersion {
                configuration.cache?.applicationVersion = try state.text(version)
            }
        }
        return configuration
    }

    /// Runs it; what failed stands in the rows. Cancelling the task cancels what runs.
    func perform(by agent: NetworkAgent) async -> PlanReport {
        _ = try? await agent.send(chain)
        return PlanReport(name: plan.name, rows: recorder.rows, nanoseconds: recorder.elapsed)
    }

    private static func addRows(of node: PlanNode, _ plan: Plan, depth: Int, to rows: inout [PlanRow]) {
        switch node {
        case .request(let name): rows.append(PlanRow(name: name, depth: depth))
        case .batch(let nodes, _, _, _), .chain(let nodes, _):
            for node in nodes { addRows(of: node, plan, depth: depth + 1, to: &rows) }
        case .repeated(let node, let times):
            for _ in 0..<times { addRows(of: node, plan, depth: depth, to: &rows) }
        }
    }

    /// Makes chains of nodes, in the order of the rows.
    private struct Maker {
        let plan: Plan
        let state: PlanState
        let recorder: PlanRecorder
        private var nextRow = 0

        init(plan: Plan, state: PlanState, recorder: PlanRecorder) {
            self.plan = plan
            self.state = state
            self.recorder = recorder
        }

        mutating func chain(_ node: PlanNode) -> ChainRequest<Void> {
            switch node {
            case .request(let name): return call(name)
            case .batch(let nodes, let limit, let collects, let deadline):
                let members = nodes.map { chain($0) }
                let limit = limit ?? .max
                if collects {
                    return ChainRequest(BatchRequest(members, .collectAll, atMost: limit).deadline(deadline)).map { _ in
                    }
                }
                return ChainRequest(BatchRequest(members, atMost: limit).deadline(deadline)).map { _ in }
            case .chain(let nodes, let deadline):
                let steps = nodes.map { chain($0) }
                return steps.reduce(ChainRequest(value: ())) { chain, step in chain.then { step } }.deadline(deadline)
            case .repeated(let node, let times):
                let steps = (0..<times).map { _ in chain(node) }
                return steps.reduce(ChainRequest(value: ())) { chain, step in chain.then { step } }
            }
        }

        private mutating func call(_ name: String) -> ChainRequest<Void> {
            let row = nextRow
            nextRow += 1
            guard let request = plan.requests[name] else { preconditionFailure("the reader knows all names") }
            return ChainRequest(value: ()).then(name) { [state, recorder] in
                do throws(PlanFault) {
                    return try PlanCall(request, state, observedBy: PlanObserver(recorder: recorder, row: row))
                } catch {
                    recorder.failed(row, error)
                    throw RequestError(.userError, message: error.description)
                }
            }
        }
    }
}
