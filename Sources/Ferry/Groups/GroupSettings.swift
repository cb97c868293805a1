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
