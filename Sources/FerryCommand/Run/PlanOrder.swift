/// Follows the steps of a plan in the order in which they run, and finds places of what has not run by then.
struct PlanOrder {
    /// A batch around the step that is looked at.
    private struct Batch {
        let members: [PlanNode]
        /// The member that the step is in.
        let index: Int
    }

    private let plan: Plan
    private let needs: [String: [PlanPlace]]
    private let capturers: [String: [String]]
    /// Requests that have an answer by now, and values that are captured.
    private var known: Set<String> = []
    /// The same in the order in which they came, as far back as the member of the nearest batch goes.
    private var news: [String] = []
    private var batches: [Batch] = []

    /// `needs` are places by the request that they are in.
    init(_ plan: Plan, needs: [String: [PlanPlace]], _ capturers: [String: [String]]) {
        self.plan = plan
        self.needs = needs
        self.capturers = capturers
    }

    /// Throws the first one.
    mutating func check() throws(PlanFault) { try walk(plan.root) }

    private mutating func walk(_ node: PlanNode) throws(PlanFault) {
        switch node.kind {
        case .request(let name):
            for place in needs[name] ?? [] where !known.contains(place.name) { throw fault(place, in: name) }
            learn(name)
            for (value, _) in plan.requests[name]?.captures ?? [] { learn(value) }
        case .chain(let nodes, _), .batch(let nodes, 1?, _, _): for node in nodes { try walk(node) }
        case .batch(let nodes, _, _, _): try walk(members: nodes)
        // What fails in the first round fails.
        case .repeated(let node, _): try walk(node)
        }
    }

    /// Each knows what was before the batch, and what comes after it knows what all of them brought.
    private mutating func walk(members: [PlanNode]) throws(PlanFault) {
        var brought: [String] = []
        for (index, member) in members.enumerated() {
            let before = news.count
            batches.append(Batch(members: members, index: index))
            try walk(member)
            batches.removeLast()
            brought += news[before...]
            known.subtract(news[before...])
            news.removeSubrange(before...)
        }
        for name in brought { learn(name) }
    }

    private mutating func learn(_ name: String) {
        if known.insert(name).inserted { news.append(name) }
    }

    // MARK: Saying why

    private func fault(_ place: PlanPlace, in request: String) -> PlanFault {
        let isAnswer = plan.requests[place.name] != nil
        let sources = isAnswer ? [place.name] : capturers[place.name] ?? []
        let running = Set(plan.root.names)
        let others = sources.filter { $0 != request && running.contains($0) }
        let source: String
        let why: String
        if let beside = others.first(where: isBeside) {
            (source, why) = (beside, "runs at the same time")
        } else if let later = others.first {
            (source, why) = (later, "runs later")
        } else if sources.contains(request) {
            (source, why) = (request, "has no answer before it runs")
        } else {
            (source, why) = (sources.first ?? place.name, "never runs")
        }
        let what = isAnswer ? "'\(source)'" : "'\(source)', which captures it,"
        return PlanFault("'{{\(place.description)}}' has no value in '\(request)': \(what) \(why)", at: place.origin)
    }

    /// Whether a request runs in another member of a batch around.
    private func isBeside(_ name: String) -> Bool {
        batches.contains { batch in
            batch.members.enumerated().contains { $0.offset != batch.index && $0.element.names.contains(name) }
        }
    }
}
