/// What can be a member of a batch or a step of a chain: a request, a batch, a chain, or one of them that may be
/// missing.
///
/// Requests are runnable as they are. A type of one's own can stand for a group by handing its member on:
///
///     struct Checkout: RequestGroup {
///         let cart: Cart
///         var groupMember: GroupMember<Receipt> { ChainRequest(Reserve(cart)).then { Pay($0) }.groupMember }
///     }
public protocol Runnable<Value>: Sendable {
    /// What it brings.
    associatedtype Value: Sendable

    /// How a group runs it. Ferry makes these; hand on that of another runnable.
    var groupMember: GroupMember<Value> { get }
}

/// Several requests that are one run: a ``BatchRequest`` or a ``ChainRequest``.
///
/// Like a request it is a description: immutable, and started as often as one likes, at once or in turn.
public protocol RequestGroup<Value>: Runnable {}

extension Request {
    /// One run of this request, observed and counted as any other.
    public var groupMember: GroupMember<Value> {
        GroupMember(Member(of: Self.self, .request(.of(self))))
    }
}

/// A step that may have nothing to do: its value is then `nil`, at once.
extension Optional: Runnable where Wrapped: Runnable {
    /// What there is brings, or `nil`.
    public typealias Value = Wrapped.Value?

    /// What there is, or nothing.
    public var groupMember: GroupMember<Wrapped.Value?> {
        self?.groupMember.map { .some($0) }
            ?? GroupMember(Member(of: Self.self, .work { _, _ throws(RequestError) in Made(.of(Wrapped.Value?.none)) }))
    }
}
