/// Several requests, batches or chains that run at once, as one run with one result.
///
///     let (me, orders) = try await agent.send(BatchRequest(UserInfo(id: 7), Orders(of: 7)))
///     let users = try await agent.send(BatchRequest(ids.map(UserInfo.init), .collectAll, atMost: 8))
///
/// The values are a tuple or an array in the given order. By default the first failure cancels the rest and fails the
/// batch; ``RequestError/failedIndex`` is the index of the failed member, and ``RequestError/finished`` has the values
/// of the others. With `.collectAll` there is a `Result` for each member. An empty batch succeeds at once.
///
/// Members are runs of their own, with their own observers and hooks. They wait in the queue like other runs. `atMost`
/// is the maximum number of members that run at once; by default all of them do.
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

/// The default mode of a batch: the first failure cancels the rest.
public struct FailFast: Sendable {
    /// The first failure cancels the rest, and is the failure of the batch.
    public static var failFast: FailFast { FailFast() }
}

/// The other mode of a batch: each member has its own result.
public struct CollectAll: Sendable {
    /// Each member has its own result, also if others fail. The batch itself fails only if it is ended as a whole.
    public static var collectAll: CollectAll { CollectAll() }
}

// MARK: Tuples

extension BatchRequest {
    /// Creates a batch of members with different types. The values are a tuple.
    public init<each Item: Runnable>(_ items: repeat each Item, atMost limit: Int = .max)
    where Value == (repeat (each Item).Value) {
        let members = members(repeat each items)
        self.init(count: members.count) { core, group throws(RequestError) in
            let run = await BatchRun.run(of: members.count, atMost: limit, .failFast, in: group, by: core) {
                members[$0]
            }
            // One for each item, in order.
            var values = try run.values().makeIterator()
            return run.made((repeat values.next()!.open(as: (each Item).Value.self)))
        }
    }

    /// Creates a batch of members with different types. The results are a tuple.
    public init<each Item: Runnable>(_ items: repeat each Item, mode: CollectAll, atMost limit: Int = .max)
    where Value == (repeat Result<(each Item).Value, RequestError>) {
        let members = members(repeat each items)
        self.init(count: members.count) { core, group throws(RequestError) in
            let run = await BatchRun.run(of: members.count, atMost: limit, .collectAll, in: group, by: core) {
                members[$0]
            }
            // One for each item, in order.
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

// `any Runnable` does not conform to `Runnable`, so arrays of one type and arrays of existentials need separate
// methods. A literal with one type is an array of that type.
extension BatchRequest {
    /// Creates a batch of members with one type.
    public init<Item: Runnable>(_ items: [Item], _ mode: FailFast = .failFast, atMost limit: Int = .max)
    where Value == [Item.Value] {
        self.init(all: items.count, limit, { items[$0].groupMember.member }, { $0.open() })
    }

    /// Creates a batch of members with one type. Each has its own result.
    public init<Item: Runnable>(_ items: [Item], _ mode: CollectAll, atMost limit: Int = .max)
    where Value == [Result<Item.Value, RequestError>] {
        self.init(each: items.count, limit, { items[$0].groupMember.member }, { $0.open() })
    }

    /// Creates a batch of members with different types and one value type.
    @_disfavoredOverload
    public init<Element: Sendable>(
        _ items: [any Runnable<Element>], _ mode: FailFast = .failFast, atMost limit: Int = .max
    ) where Value == [Element] {
        self.init(all: items.count, limit, { items[$0].groupMember.member }, { $0.open() })
    }

    /// Creates a batch of members with different types and one value type. Each has its own result.
    @_disfavoredOverload
    public init<Element: Sendable>(_ items: [any Runnable<Element>], _ mode: CollectAll, atMost limit: Int = .max)
    where Value == [Result<Element, RequestError>] {
        self.init(each: items.count, limit, { items[$0].groupMember.member }, { $0.open() })
    }

    /// Creates a batch of any members.
    public init(mixed items: [any Runnable], _ mode: FailFast = .failFast, atMost limit: Int = .max)
    where Value == [any Sendable] {
        self.init(all: items.count, limit, { member(items[$0]) }, { $0.content })
    }

    /// Creates a batch of any members. Each has its own result.
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
    /// Sends several requests at once and returns their values as a tuple in the given order. Throws the error of the
    /// first member that fails, and cancels the rest. It is the same as sending a ``BatchRequest``.
    @discardableResult
    public nonisolated(nonsending) func send<each Item: Runnable>(
        batch items: repeat each Item, atMost limit: Int = .max
    ) async throws(RequestError) -> (repeat (each Item).Value) {
        try await send(BatchRequest(repeat each items, atMost: limit))
    }

    /// Sends several requests at once and returns their values in the given order. Throws the error of the first member
    /// that fails, and cancels the rest.
    @discardableResult
    public nonisolated(nonsending) func send<Item: Runnable>(
        batch items: [Item], _ mode: FailFast = .failFast, atMost limit: Int = .max
    ) async throws(RequestError) -> [Item.Value] {
        try await send(BatchRequest(items, mode, atMost: limit))
    }

    /// Sends several requests at once and returns a result for each, in the given order. Throws only if the batch is
    /// ended as a whole.
    @discardableResult
    public nonisolated(nonsending) func send<Item: Runnable>(
        batch items: [Item], _ mode: CollectAll, atMost limit: Int = .max
    ) async throws(RequestError) -> [Result<Item.Value, RequestError>] {
        try await send(BatchRequest(items, mode, atMost: limit))
    }

    /// Sends several requests of different types with one value type at once and returns their values in the given
    /// order. Throws the error of the first member that fails, and cancels the rest.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func send<Element: Sendable>(
        batch items: [any Runnable<Element>], _ mode: FailFast = .failFast, atMost limit: Int = .max
    ) async throws(RequestError) -> [Element] {
        try await send(BatchRequest(items, mode, atMost: limit))
    }

    /// Sends several requests of different types with one value type at once and returns a result for each, in the
    /// given order. Throws only if the batch is ended as a whole.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func send<Element: Sendable>(
        batch items: [any Runnable<Element>], _ mode: CollectAll, atMost limit: Int = .max
    ) async throws(RequestError) -> [Result<Element, RequestError>] {
        try await send(BatchRequest(items, mode, atMost: limit))
    }
}

extension BatchRequest {
    /// The same batch with a tag for ``NetworkAgent/cancelAll(tagged:)``, for the batch as a whole.
    public func tagged(_ tag: String?) -> BatchRequest { changed { $0.tag = tag } }

    /// The same batch with a priority in the queue. It applies to every member with the default priority
    /// ``RequestPriority/normal``, also in nested groups. The default is `nil`, the priority of the group around it.
    public func priority(_ priority: RequestPriority?) -> BatchRequest { changed { $0.priority = priority } }

    /// The same batch with a deadline for the whole batch, from its start. At the deadline, active members fail with
    /// `timeout(deadline)`, or `timeout(queue)` if they are in the queue, and members that have not started are not
    /// sent. The default is `nil`, the deadline of the group around it.
    public func deadline(_ deadline: Duration?) -> BatchRequest { changed { $0.deadline = deadline } }

    /// The same batch with another observer, in addition to the configuration's. Members have their own observers.
    public func observed(by observer: any RequestObserver) -> BatchRequest { changed { $0.observers.append(observer) } }

    /// The same batch with values of the application, which Ferry does not read.
    public func userInfo(_ userInfo: [String: any Sendable]) -> BatchRequest { changed { $0.userInfo = userInfo } }

    private func changed(_ change: (inout GroupSettings) -> Void) -> BatchRequest {
        var copy = self
        change(&copy.settings)
        return copy
    }
}
