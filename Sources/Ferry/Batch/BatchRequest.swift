/// Several requests, batches or chains at once, as one run with one result.
///
///     let (me, orders) = try await agent.send(BatchRequest(UserInfo(id: 7), Orders(of: 7)))
///     let users = try await agent.send(BatchRequest(ids.map(UserInfo.init), .collectAll, atMost: 8))
///
/// The values come in the order given, typed as a tuple or as an array. By default the first failure cancels the rest
/// and fails the batch; ``RequestError/failedIndex`` says which member it was, and ``RequestError/finished`` holds what
/// the others had brought. With `.collectAll` there is a `Result` for each. An empty batch succeeds at once.
///
/// Members are runs of their own, with their own observers and hooks; they wait for their turn as any other, and
/// `limit` says how many of the batch may be under way at once. The default is all of them.
public struct BatchRequest<Value: Sendable>: RequestGroup {
    var settings = GroupSettings()
    private let count: Int
    private let work: Member.Work

    init(count: Int, _ work: @escaping Member.Work) {
        self.count = count
        self.work = work
    }

    /// The batch as one run.
    public var groupMember: GroupMember<Value> {
        let body = GroupBody(kind: .batch, settings: settings, total: count, work: work)
        return GroupMember(Member(of: Self.self, .group(body)))
    }
}

/// The way a batch takes failures by default: the first cancels the rest.
public struct FailFast: Sendable {
    /// The first failure cancels the rest and is the batch's.
    public static var failFast: FailFast { FailFast() }
}

/// The other way: a result for each member, whatever becomes of the others.
public struct CollectAll: Sendable {
    /// Failures of members are results like any other; the batch itself fails only when it is ended as a whole.
    public static var collectAll: CollectAll { CollectAll() }
}

// MARK: Tuples

extension BatchRequest {
    /// Members of different types; the values come as a tuple.
    public init<each Item: Runnable>(_ items: repeat each Item, atMost limit: Int = .max)
    where Value == (repeat (each Item).Value) {
        let members = members(repeat each items)
        self.init(count: members.count) { core, group throws(RequestError) in
            let run = await core.runBatch(of: members.count, atMost: limit, .failFast, in: group) { members[$0] }
            // One for each item, in their order.
            var values = try run.values().makeIterator()
            return run.made((repeat values.next()!.open(as: (each Item).Value.self)))
        }
    }

    /// Members of different types; their results come as a tuple.
    public init<each Item: Runnable>(_ items: repeat each Item, mode: CollectAll, atMost limit: Int = .max)
    where Value == (repeat Result<(each Item).Value, RequestError>) {
        let members = members(repeat each items)
        self.init(count: members.count) { core, group throws(RequestError) in
            let run = await core.runBatch(of: members.count, atMost: limit, .collectAll, in: group) { members[$0] }
            // One for each item, in their order.
            var results = try run.results().makeIterator()
            return run.made((repeat opened(results.next()!, as: (each Item).Value.self)))
        }
    }
}

private func members<each Item: Runnable>(_ items: repeat each Item) -> [Member] {
    var members: [Member] = []
    repeat members.append((each items).groupMember.member)
    return members
}

private func opened<Value: Sendable>(
    _ result: Result<Box, RequestError>, as type: Value.Type
) -> Result<Value, RequestError> {
    result.map { $0.open() }
}
