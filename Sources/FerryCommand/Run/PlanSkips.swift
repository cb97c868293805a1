internal import Ferry

/// Why a run of a request never began.
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

    /// Whether this is what made a row that began fail, too.
    fileprivate func explains(_ row: PlanRow) -> Bool {
        guard case .deadline = self else { return false }
        return row.code == .timeout(.deadline) || row.code == .timeout(.queue)
    }
}

/// Writes to rows that never began why they did not: what ended the chain or batch that they are in.
struct PlanSkips {
    private(set) var rows: [PlanRow]

    init(_ rows: consuming [PlanRow]) { self.rows = rows }

    /// `skip` is what ended all of the node, so far as nothing in it has ended it before.
    mutating func explain(_ node: PlanNode, row: Int, _ skip: PlanSkip?) { _ = walk(node, row, skip) }

    /// What ended it; `nil` when it went well.
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
