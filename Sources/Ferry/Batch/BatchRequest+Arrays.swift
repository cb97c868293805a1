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
            let run = await core.runBatch(of: count, atMost: limit, .failFast, in: group, member)
            return run.made(try run.values().map(open))
        }
    }

    private init<Element: Sendable>(
        each count: Int, _ limit: Int, _ member: @escaping @Sendable (Int) -> Member,
        _ open: @escaping @Sendable (Box) -> Element
    ) where Value == [Result<Element, RequestError>] {
        self.init(count: count) { core, group throws(RequestError) in
            let run = await core.runBatch(of: count, atMost: limit, .collectAll, in: group, member)
            return run.made(try run.results().map { $0.map(open) })
        }
    }
}

private func member(_ item: some Runnable) -> Member { item.groupMember.member }
