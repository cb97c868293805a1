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
            let run = await BatchRun.run(of: members.count, atMost: limit, .failFast, in: group, by: core) {
                members[$0]
            }
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
            let run = await BatchRun.run(of: members.count, atMost: limit, .collectAll, in: group, by: core) {
                members[$0]
            }
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

// `any Runnable` does not conform to `Runnable`, so arrays of one type and arrays of existentials are told apart. A
// literal of one type is an array of that type.
extension BatchRequest {
    /// Members of one type, as many as there are.
    public init<Item: Runnable>(_ items: [Item], _ mode: FailFast = .failFast, atMost limit: Int = .max)
    where Value == [Item.Value] {
        self.init(all: items.count, limit, { items[$0].groupMember.member }, { $0.open() })
    }

    /// Members of one type; a result for each.
    public init<Item: Runnable>(_ items: [Item], _ mode: CollectAll, atMost limit: Int = .max)
    where Value == [Result<Item.Value, RequestError>] {
        self.init(each: items.count, limit, { items[$0].groupMember.member }, { $0.open() })
    }

    /// Members of different types with values of one type.
    @_disfavoredOverload
    public init<Element: Sendable>(
        _ items: [any Runnable<Element>], _ mode: FailFast = .failFast, atMost limit: Int = .max
    ) where Value == [Element] {
        self.init(all: items.count, limit, { items[$0].groupMember.member }, { $0.open() })
    }

    /// Members of different types with values of one type; a result for each.
    @_disfavoredOverload
    public init<Element: Sendable>(_ items: [any Runnable<Element>], _ mode: CollectAll, atMost limit: Int = .max)
    where Value == [Result<Element, RequestError>] {
        self.init(each: items.count, limit, { items[$0].groupMember.member }, { $0.open() })
    }

    /// Members of any kind.
    public init(mixed items: [any Runnable], _ mode: FailFast = .failFast, atMost limit: Int = .max)
    where Value == [any Sendable] {
        self.init(all: items.count, limit, { member(items[$0]) }, { $0.content })
    }

    /// Members of any kind; a result for each.
    public init(mixed items: [any Runnable], _ mode: CollectAll, atMost limit: Int = .max)
    where Value == [Result<any Sendable, RequestError>] {
        self.init(each: items.count, limit, { member(items[$0]) }, { $0.content })
    }

    private init<Element: Sendable>(
        all count: Int, _ limit: Int, _ member: @escaping @Sendable (Int) -> Member,
        _ open: @escaping @Sendable (Box) -> Element
    ) where Value == [Element] {
        self.init(count: count) { core, group throws(RequestError) in
            let run = await BatchRun.run(of: count, atMost: limit, .failFast, in: group, by: core, member)
            return run.made(try run.values().map(open))
        }
    }

    private init<Element: Sendable>(
        each count: Int, _ limit: Int, _ member: @escaping @Sendable (Int) -> Member,
        _ open: @escaping @Sendable (Box) -> Element
    ) where Value == [Result<Element, RequestError>] {
        self.init(count: count) { core, group throws(RequestError) in
            let run = await BatchRun.run(of: count, atMost: limit, .collectAll, in: group, by: core, member)
            return run.made(try run.results().map { $0.map(open) })
        }
    }
}

private func member(_ item: some Runnable) -> Member { item.groupMember.member }

extension NetworkAgent {
    /// Sends several at once and waits for their values, a tuple in the order given. The first failure cancels the rest
    /// and is thrown. The same as sending a ``BatchRequest``.
    @discardableResult
    public nonisolated(nonsending) func send<each Item: Runnable>(
        batch items: repeat each Item, atMost limit: Int = .max
    ) async throws(RequestError) -> (repeat (each Item).Value) {
        try await send(BatchRequest(repeat each items, atMost: limit))
    }

    /// Sends several at once and waits for their values, in the order given. The first failure cancels the rest.
    @discardableResult
    public nonisolated(nonsending) func send<Item: Runnable>(
        batch items: [Item], _ mode: FailFast = .failFast, atMost limit: Int = .max
    ) async throws(RequestError) -> [Item.Value] {
        try await send(BatchRequest(items, mode, atMost: limit))
    }

    /// Sends several at once and waits for the result of each, in the order given.
    @discardableResult
    public nonisolated(nonsending) func send<Item: Runnable>(
        batch items: [Item], _ mode: CollectAll, atMost limit: Int = .max
    ) async throws(RequestError) -> [Result<Item.Value, RequestError>] {
        try await send(BatchRequest(items, mode, atMost: limit))
    }

    /// Sends several of different types, with values of one type.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func send<Element: Sendable>(
        batch items: [any Runnable<Element>], _ mode: FailFast = .failFast, atMost limit: Int = .max
    ) async throws(RequestError) -> [Element] {
        try await send(BatchRequest(items, mode, atMost: limit))
    }

    /// Sends several of different types, with values of one type, and waits for the result of each.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func send<Element: Sendable>(
        batch items: [any Runnable<Element>], _ mode: CollectAll, atMost limit: Int = .max
    ) async throws(RequestError) -> [Result<Element, RequestError>] {
        try await send(BatchRequest(items, mode, atMost: limit))
    }
}
