/// What a batch or a chain says of itself as a whole. Set by the functions of ``BatchRequest`` and ``ChainRequest``.
struct GroupSettings: Sendable {
    var tag: String?
    var userInfo: [String: any Sendable] = [:]
    /// `nil` = that of the group it is in.
    var priority: RequestPriority?
    var deadline: Duration?
    var observers: [any RequestObserver] = []

    /// Nothing is said.
    var isPlain: Bool {
        tag == nil && priority == nil && deadline == nil && observers.isEmpty && userInfo.isEmpty
    }
}

extension BatchRequest {
    /// The same batch with a mark for ``NetworkAgent/cancelAll(tagged:)``, of the batch as a whole.
    public func tagged(_ tag: String?) -> BatchRequest { changed { $0.tag = tag } }

    /// The same batch with a place for its members among those that wait. It holds for every member that says no more
    /// than ``RequestPriority/normal``, in groups inside it too. The default is `nil`, that of the group around it.
    public func priority(_ priority: RequestPriority?) -> BatchRequest { changed { $0.priority = priority } }

    /// The same batch with a bound over all of it, from its start on. Members that run then fail with
    /// `timeout(.deadline)`, or `timeout(.queue)` while they wait for their turn; those that have not begun are not
    /// sent. The default is `nil`, that of the group around it.
    public func deadline(_ deadline: Duration?) -> BatchRequest { changed { $0.deadline = deadline } }

    /// The same batch with one more observer of its runs, besides the configuration's. Members have their own.
    public func observed(by observer: any RequestObserver) -> BatchRequest { changed { $0.observers.append(observer) } }

    /// The same batch with something that the application wants to find again; Ferry does not look at it.
    public func userInfo(_ userInfo: [String: any Sendable]) -> BatchRequest { changed { $0.userInfo = userInfo } }

    private func changed(_ change: (inout GroupSettings) -> Void) -> BatchRequest {
        var copy = self
        change(&copy.settings)
        return copy
    }
}

extension ChainRequest {
    /// The same chain with a mark for ``NetworkAgent/cancelAll(tagged:)``, of the chain as a whole.
    public func tagged(_ tag: String?) -> ChainRequest { changed { $0.tag = tag } }

    /// The same chain with a place for its steps among those that wait. It holds for every step that says no more than
    /// ``RequestPriority/normal``, in groups inside it too. The default is `nil`, that of the group around it.
    public func priority(_ priority: RequestPriority?) -> ChainRequest { changed { $0.priority = priority } }

    /// The same chain with a bound over all of it, from its start on. Then the step that runs fails with
    /// `timeout(.deadline)`, a closure that is asked is cancelled, and later steps never start. The default is `nil`,
    /// that of the group around it.
    public func deadline(_ deadline: Duration?) -> ChainRequest { changed { $0.deadline = deadline } }

    /// The same chain with one more observer of its runs, besides the configuration's. Steps have their own.
    public func observed(by observer: any RequestObserver) -> ChainRequest { changed { $0.observers.append(observer) } }

    /// The same chain with something that the application wants to find again; Ferry does not look at it.
    public func userInfo(_ userInfo: [String: any Sendable]) -> ChainRequest { changed { $0.userInfo = userInfo } }

    private func changed(_ change: (inout GroupSettings) -> Void) -> ChainRequest {
        var copy = self
        change(&copy.settings)
        return copy
    }
}
