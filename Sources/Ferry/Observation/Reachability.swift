import Dispatch
import Synchronization

/// Whether this machine has a way to the outside, as the system's routes say (rtnetlink(7)).
///
///     for await status in Reachability.shared.changes {
///         print(status.isOnline ? "online" : "offline")
///     }
///
/// Online means that there is a default route over a link that works. It does not mean that somebody answers: that is
/// ``HostHealth``'s to say. Hosts of the same network, and this one, may be reachable while it says offline.
///
/// While nobody iterates over ``changes`` it holds neither a thread nor a descriptor.
public final class Reachability: Sendable {
    /// What the routes say.
    public enum Status: Sendable, Hashable {
        /// There are default routes for these families.
        ///
        /// Also, with none, where the system does not say, so that nobody stays away for want of an answer.
        case online(AddressFamilies)
        /// There is no default route.
        case offline

        /// Whether it is worth trying.
        public var isOnline: Bool { self != .offline }
    }

    /// Kinds of addresses.
    public struct AddressFamilies: OptionSet, Sendable, Hashable, CustomStringConvertible {
        /// The bits.
        public let rawValue: UInt8

        /// Makes a set of its bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// IPv4
        public static let ipv4 = AddressFamilies(rawValue: 1)
        /// IPv6
        public static let ipv6 = AddressFamilies(rawValue: 2)

        /// `IPv4, IPv6`
        public var description: String {
            [contains(.ipv4) ? "IPv4" : nil, contains(.ipv6) ? "IPv6" : nil].compactMap { $0 }.joined(separator: ", ")
        }
    }

    /// One for all, as all see the same routes.
    public static let shared = Reachability()

    private struct State {
        var listeners = Listeners<Status>()
        var watch: RouteWatch?
        /// What the watch saw last.
        var seen: Status?
    }

    private let state = Mutex(State())
    private let source: RouteSource

    /// One that looks at the routes of the network namespace of the threads it is used on.
    public convenience init() { self.init(.system) }

    init(_ source: RouteSource) { self.source = source }

    deinit {
        let watch = state.withLock { state in
            state.listeners.finish()
            return state.watch.take()
        }
        watch?.stop()
    }

    /// What they say now. Asks the system, which takes some ten microseconds, unless somebody iterates over
    /// ``changes``.
    public var status: Status {
        if let seen = state.withLock({ $0.seen }) { return seen }
        return RouteQuery.run(source)
    }

    /// What they say now, then every change. Any number of iterations at once; each ends when its task is cancelled.
    ///
    /// One that is slow misses what was true in between, never what is true in the end.
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
            // The first listener may have left, and another have come first.
            if state.listeners.count == 0 || state.watch != nil { return false }
            state.watch = watch
            return true
        }
        if isWanted { watch.start(source) }
    }

    /// [queue of the watch]
    private func publish(_ status: Status, of watch: RouteWatch) {
        state.withLock { state in
            // One that was stopped has nothing to say to those who came after.
            if state.watch !== watch || state.seen == status { return }
            state.seen = status
            state.listeners.send(status)
        }
    }
}

/// The status of the routes, then every change.
public struct ReachabilityChanges: AsyncSequence, Sendable {
    /// A status.
    public typealias Element = Reachability.Status
    /// It does not fail.
    public typealias Failure = Never

    let reachability: Reachability

    /// Begins to listen.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: reachability.listen().makeAsyncIterator(), reachability: reachability)
    }

    /// One iteration. It keeps what it iterates over alive.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var base: AsyncStream<Element>.Iterator
        let reachability: Reachability
        private var last: Element?

        init(base: AsyncStream<Element>.Iterator, reachability: Reachability) {
            self.base = base
            self.reachability = reachability
        }

        /// The status at first, then the next one that differs; `nil` once the task is cancelled.
        public mutating func next() async -> Element? { await next(isolation: #isolation) }

        /// Likewise, without leaving the caller's actor.
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
