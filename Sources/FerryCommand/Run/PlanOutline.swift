internal import Ferry

/// What a plan would do, as a tree: for `--dry-run`.
struct PlanOutline {
    private let plan: Plan

    init(_ plan: Plan) { self.plan = plan }

    var text: String {
        let head =
            "\(plan.name), \(plan.root.count) steps" + (plan.base.map { ", on \($0.source)" } ?? "")
            + (plan.cache.map { ", answers kept in \($0.directory.source)" } ?? "")
        return Main.oneLine(head) + "\n" + lines(plan.root, depth: 1).map { Main.oneLine($0) + "\n" }.joined()
    }

    private func lines(_ node: PlanNode, depth: Int) -> [String] {
        let indent = String(repeating: "  ", count: depth)
        switch node.kind {
        case .request(let name): return plan.requests[name].map { [indent + line($0)] } ?? []
        case .batch(let nodes, let limit, let collects, let deadline):
            var head = "batch"
            if let limit { head += ", at most \(limit) at once" }
            if collects { head += ", all collected" }
            return [indent + head + bound(deadline)] + nodes.flatMap { lines($0, depth: depth + 1) }
        case .chain(let nodes, let deadline):
            return [indent + "chain" + bound(deadline)] + nodes.flatMap { lines($0, depth: depth + 1) }
        case .repeated(let node, let times):
            return ["\(indent)\(times) times"] + lines(node, depth: depth + 1)
        }
    }

    private func bound(_ deadline: Duration?) -> String { deadline.map { ", within \($0)" } ?? "" }

    private func line(_ request: PlanRequest) -> String {
        var line = "\(request.name): \(request.method) \(request.path.source)"
        if !request.query.isEmpty {
            line += "?" + request.query.map { "\($0.name)=\($0.value.source)" }.joined(separator: "&")
        }
        if request.body != nil { line += ", with a body" }
        if let retries = request.retries, retries > 0 { line += ", up to \(retries) retries" }
        switch request.cache?.lifetime {
        case .seconds(let time)?: line += ", kept for \(time)"
        case .http?: line += ", kept as the server says"
        case nil: break
        }
        if !request.captures.isEmpty { line += ", captures " + request.captures.map(\.name).joined(separator: ", ") }
        let ranges = request.status.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
        line += ", expects " + ranges.joined(separator: ", ")
        if request.schema != nil { line += " and a schema" }
        return line
    }
}
