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
