internal import Ferry

/// What the nodes of a plan run as. Each is made when its turn comes: a chain of n steps, or of n rounds, is one link
/// and the promise of the rest, so that it costs no more to make than to run.
struct PlanSteps: Sendable {
    let plan: Plan
    let state: PlanState
    let recorder: PlanRecorder

    /// `row` is the place of the node's first run among the rows.
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

    /// A chain of this one step: it can be gone on with, whatever is said of the step as a whole.
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

/// A member of a batch, made when it begins.
private struct PlanMember: RequestGroup {
    let steps: PlanSteps
    let node: PlanNode
    let row: Int

    var groupMember: GroupMember<Void> { steps.chain(node, row: row).groupMember }
}
