/// The settings of a batch or a chain as a whole, set by the methods of ``BatchRequest`` and ``ChainRequest``.
struct GroupSettings: Sendable {
    var tag: String?
    var userInfo: [String: any Sendable] = [:]
    /// `nil` means that of the group that contains it.
    var priority: RequestPriority?
    var deadline: Duration?
    var observers: [any RequestObserver] = []

    /// Whether nothing is set.
    var isPlain: Bool {
        tag == nil && priority == nil && deadline == nil && observers.isEmpty && userInfo.isEmpty
    }
}

extension BatchRequest {
    /// The same batch with a tag for ``NetworkAgent/cancelAll(tagged:)``, for the batch as a whole.
    public func tagged(_ tag: String?) -> BatchRequest { changed { $0.tag = tag } }

    /// The same batch with a priority in the queue. It applies to every member with the default priority
    /// ``RequestPriority/normal``, also in nested groups. The default is `nil`, the priority of the group around it.
    public func priority(_ priority: RequestPriority?) -> BatchRequest { changed { $0.priority = priority } }

    /// The same batch with a deadline for the whole batch, from its start. At the deadline, active members fail with
    /// `timeout(.deadline)`, or `timeout(.queue)` if they are in the queue, and members that have not started are not
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

extension ChainRequest {
    /// The same chain with a tag for ``NetworkAgent/cancelAll(tagged:)``, for the chain as a whole.
    public func tagged(_ tag: String?) -> ChainRequest { changed { $0.tag = tag } }

    /// The same chain with a priority in the queue. It applies to every step with the default priority
    /// ``RequestPriority/normal``, also in nested groups. The default is `nil`, the priority of the group around it.
    public func priority(_ priority: RequestPriority?) -> ChainRequest { changed { $0.priority = priority } }

    /// The same chain with a deadline for the whole chain, from its start. At the deadline, the current step fails with
    /// `timeout(.deadline)`, an active closure is cancelled, and later steps never start. The default is `nil`, the
    /// deadline of the group around it.
    public func deadline(_ deadline: Duration?) -> ChainRequest { changed { $0.deadline = deadline } }

    /// The same chain with another observer, in addition to the configuration's. Steps have their own observers.
    public func observed(by observer: any RequestObserver) -> ChainRequest { changed { $0.observers.append(observer) } }

    /// The same chain with values of the application, which Ferry does not read.
    public func userInfo(_ userInfo: [String: any Sendable]) -> ChainRequest { changed { $0.userInfo = userInfo } }

    private func changed(_ change: (inout GroupSettings) -> Void) -> ChainRequest {
        var copy = self
        change(&copy.settings)
        return copy
    }
}
