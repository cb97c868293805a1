import Dispatch
import FerrySynchronization

/// Whether this machine has a route to other networks, according to the system's routing tables (rtnetlink(7)).
///
///     for await status in Reachability.shared.changes {
///         print(status.isOnline ? "online" : "offline")
///     }
///
/// Online means that there is a default route over a working link. It does not mean that a particular host responds:
/// see ``HostHealth``. Offline does not exclude hosts in the same network and on this machine.
///
/// Without an iteration over ``changes`` it uses neither a thread nor a descriptor.
public final class Reachability: Sendable {
    /// The state of the routes.
    public enum Status: Sendable, Hashable {
        /// There are default routes for these address families.
        ///
        /// If the system does not report routes, the status is online with an empty set, so that programs still try.
        case online(AddressFamilies)
        /// There is no default route.
        case offline

        /// Whether a connection is worth a try.
        public var isOnline: Bool { self != .offline }
    }

    /// A set of address families.
    public struct AddressFamilies: OptionSet, Sendable, Hashable, CustomStringConvertible {
        /// The bits of the set.
        public let rawValue: UInt8

        /// Creates a set from bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// IPv4.
        public static let ipv4 = AddressFamilies(rawValue: 1)
        /// IPv6.
        public static let ipv6 = AddressFamilies(rawValue: 2)

        /// The names, like `IPv4, IPv6`.
        public var description: String {
            [contains(.ipv4) ? "IPv4" : nil, contains(.ipv6) ? "IPv6" : nil].compactMap { $0 }.joined(separator: ", ")
        }
    }

    /// A shared instance, because the routes are the same for the whole process.
    public static let shared = Reachability()

    private struct State {
        var listeners = Listeners<Status>()
        var watch: RouteWatch?
        /// The last status that the watch reported.
        var seen: Status?
    }

    private let state = Mutex(State())
    private let source: RouteSource

    /// Creates an instance for the network namespace of the threads that use it.
    public convenience init() { self.init(.system) }

    init(_ source: RouteSource) { self.source = source }

    deinit {
        let watch = state.withLock { state in
            state.listeners.finish()
            return state.watch.take()
        }
        watch?.stop()
    }

    /// The current status. It asks the system, which takes about ten microseconds, unless there is an iteration over
    /// ``changes``.
    public var status: Status {
        if let seen = state.withLock({ $0.seen }) { return seen }
        return RouteQuery.run(source)
    }

    /// The current status, and then every change. There can be any number of iterations; each ends when its task is
    /// cancelled.
    ///
    /// A slow iteration may miss intermediate states, but never the latest.
    public var changes: ReachabilityChanges { ReachabilityChanges(reachability: self) }

    var listenerCount: Int { state.withLock { $0.listeners.count } }

    // MARK: Listeners

    func listen() -> AsyncStream<Status> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let (number, isFirst) = state.withLock { state in
                let number = state.listeners.add(continuation)
                if let seen = state.seen { continuation.yield(seen) }
                return (number, state.listeners.count == 1)
            }
            continuation.onTermination = { [weak self] _ in self?.leave(number) }
            if isFirst { begin() }
        }
    }

    private func leave(_ number: UInt64) {
        let (continuation, watch) = state.withLock { state in
            let continuation = state.listeners.remove(number)
            if state.listeners.count > 0 { return (continuation, nil as RouteWatch?) }
            state.seen = nil
            return (continuation, state.watch.take())
        }
        watch?.stop()
        withExtendedLifetime(continuation) {}
    }

    private func begin() {
        let watch = RouteWatch { [weak self] watch, status in self?.publish(status, of: watch) }
        let isWanted = state.withLock { state in
            // The first listener may have left, and another may have come before this one.
            if state.listeners.count == 0 || state.watch != nil { return false }
            state.watch = watch
            return true
        }
        if isWanted { watch.start(source) }
    }

    /// [queue of the watch]
    private func publish(_ status: Status, of watch: RouteWatch) {
        state.withLock { state in
            // A watch that was stopped must not report to later listeners.
            if state.watch !== watch || state.seen == status { return }
            state.seen = status
            state.listeners.send(status)
        }
    }
}

/// The current status of the routes, and then every change.
public struct ReachabilityChanges: AsyncSequence, Sendable {
    /// A status.
    public typealias Element = Reachability.Status
    /// The sequence does not throw.
    public typealias Failure = Never

    let reachability: Reachability

    /// Starts an iteration.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: reachability.listen().makeAsyncIterator(), reachability: reachability)
    }

    /// The iterator. It retains the ``Reachability``.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var base: AsyncStream<Element>.Iterator
        let reachability: Reachability
        private var last: Element?

        init(base: AsyncStream<Element>.Iterator, reachability: Reachability) {
            self.base = base
            self.reachability = reachability
        }

        /// The status at first, then the next different one; `nil` when the task is cancelled.
        public mutating func next() async -> Element? { await next(isolation: #isolation) }

        /// The same, without leaving the caller's actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            while let status = await base.next(isolation: actor) {
                if status == last { continue }
                last = status
                return status
            }
            return nil
        }
    }
}
