import Dispatch
import FerrySynchronization
import Glibc
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Plays the kernel over pairs of sockets.
private final class FakeKernel: Sendable {
    private let ends = Mutex<[Int32]>([])

    deinit { for end in ends.withLock({ $0 }) { close(end) } }

    var source: RouteSource {
        RouteSource { _ in
            var pair: [Int32] = [-1, -1]
            guard socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair) == 0 else {
                return -1
            }
            self.ends.withLock { $0.append(pair[1]) }
            return pair[0]
        }
    }

    var socketCount: Int { ends.withLock { $0.count } }
    private var latest: Int32 { ends.withLock { $0.last ?? -1 } }

    /// Waits for a dump request; returns its number, or `nil` if the socket was closed.
    func request() -> UInt32? {
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = recv(latest, &buffer, buffer.count, 0)
        if count < 28 { return nil }
        return buffer.withUnsafeBytes { bytes in
            #expect(bytes.loadUnaligned(fromByteOffset: 4, as: UInt16.self) == Netlink.getRoute)
            #expect(bytes.loadUnaligned(fromByteOffset: 6, as: UInt16.self) == 0x301)
            return bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
        }
    }

    func send(_ bytes: [UInt8]) { #expect(Glibc.send(latest, bytes, bytes.count, 0) == bytes.count) }

    func answer(_ sequence: UInt32, _ routes: [[UInt8]]) {
        for route in routes {
            send(Netlink.message(Netlink.newRoute, flags: Netlink.multi, sequence: sequence, route))
        }
        send(Netlink.message(Netlink.done, flags: Netlink.multi, sequence: sequence, Netlink.raw(Int32(0))))
    }

    /// Responds to the next request.
    func answer(_ routes: [[UInt8]]) { if let sequence = request() { answer(sequence, routes) } }

    func hangUp() { shutdown(latest, Int32(SHUT_RDWR)) }
}

@Suite(.timeLimit(.minutes(2))) struct ReachabilityTests {
    private func inBackground<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: body()) }
        }
    }

    @Test func statusIsAskedForWhenNobodyListens() async {
        let kernel = FakeKernel()
        let reachability = Reachability(kernel.source)
        #expect(kernel.socketCount == 0)
        for (routes, expected) in [([Netlink.route()], Reachability.Status.online(.ipv4)), ([], .offline)] {
            let before = kernel.socketCount
            async let status = inBackground { reachability.status }
            #expect(await eventually { kernel.socketCount > before })
            await inBackground { kernel.answer(routes) }
            #expect(await status == expected)
            #expect(await inBackground { kernel.request() } == nil, "the socket is closed")
        }
    }

    @Test func changesBeginWithTheStatusAndSkipWhatIsNoChange() async {
        let kernel = FakeKernel()
        let reachability = Reachability(kernel.source)
        var changes = reachability.changes.makeAsyncIterator()
        await inBackground { kernel.answer([Netlink.route()]) }
        #expect(await changes.next() == .online(.ipv4))
        #expect(reachability.status == .online(.ipv4), "known without asking")

        let note = Netlink.message(Netlink.newRoute, Netlink.route())
        kernel.send(note)
        await inBackground { kernel.answer([Netlink.route()]) }
        kernel.send(note)
        await inBackground { kernel.answer([Netlink.route(), Netlink.route(family: AF_INET6)]) }
        #expect(await changes.next() == .online([.ipv4, .ipv6]))
        kernel.send(Netlink.message(Netlink.deleteLink, Netlink.link(2, flags: 0)))
        await inBackground { kernel.answer([]) }
        #expect(await changes.next() == .offline)
        #expect(kernel.socketCount == 1)
    }

    @Test func oneSocketServesAllAndIsClosedBehindTheLast() async {
        let kernel = FakeKernel()
        let reachability = Reachability(kernel.source)
        let first = Task { () -> Reachability.Status? in
            for await status in reachability.changes where status == .offline { return status }
            return nil
        }
        #expect(await eventually { kernel.socketCount > 0 })
        await inBackground { kernel.answer([Netlink.route()]) }
        let second = Task { () -> [Reachability.Status] in
            var seen: [Reachability.Status] = []
            for await status in reachability.changes { seen.append(status) }
            return seen
        }
        #expect(await eventually { reachability.listenerCount >= 2 })
        kernel.send(Netlink.message(Netlink.deleteRoute, Netlink.route()))
        await inBackground { kernel.answer([]) }
        #expect(await first.value == .offline)
        #expect(await eventually { reachability.listenerCount <= 1 })
        second.cancel()
        #expect(await second.value.first?.isOnline != nil)
        #expect(await inBackground { kernel.request() } == nil, "the socket is closed")
        #expect(kernel.socketCount == 1 && reachability.listenerCount == 0)
    }

    @Test func listenersMayComeAgain() async {
        let kernel = FakeKernel()
        let reachability = Reachability(kernel.source)
        for round in 1...3 {
            do {
                var changes = reachability.changes.makeAsyncIterator()
                await inBackground { kernel.answer(round == 2 ? [] : [Netlink.route()]) }
                #expect(await changes.next() == (round == 2 ? .offline : .online(.ipv4)))
            }
            #expect(await inBackground { kernel.request() } == nil)
            #expect(kernel.socketCount == round)
        }
    }

    @Test func anIterationKeepsWhatItIteratesOver() async {
        let kernel = FakeKernel()
        weak var weakly: Reachability?
        do {
            var changes: ReachabilityChanges.AsyncIterator
            do {
                let reachability = Reachability(kernel.source)
                weakly = reachability
                changes = reachability.changes.makeAsyncIterator()
            }
            await inBackground { kernel.answer([]) }
            #expect(await changes.next() == .offline)
        }
        #expect(await inBackground { kernel.request() } == nil)
        #expect(weakly == nil)
    }

    @Test func whereTheSystemDoesNotSayItIsOnline() async {
        let closed = Reachability(RouteSource { _ in -1 })
        #expect(closed.status == .online([]))
        var changes = closed.changes.makeAsyncIterator()
        #expect(await changes.next() == .online([]))

        let kernel = FakeKernel()
        let refusing = Reachability(kernel.source)
        let status = Task { await self.inBackground { refusing.status } }
        #expect(await eventually { kernel.socketCount > 0 })
        await inBackground {
            while let sequence = kernel.request() {
                kernel.send(Netlink.message(Netlink.error, sequence: sequence, Netlink.raw(Int32(-1))))
            }
        }
        #expect(await status.value == .online([]))
    }

    @Test func aSocketThatEndsLeavesWhatWasKnown() async {
        let kernel = FakeKernel()
        let reachability = Reachability(kernel.source)
        var changes = reachability.changes.makeAsyncIterator()
        await inBackground { kernel.answer([]) }
        #expect(await changes.next() == .offline)
        kernel.hangUp()
        #expect(reachability.status == .offline)
    }

    @Test func messagesThatAreTooLongAreAskedForAgain() async {
        let kernel = FakeKernel()
        let reachability = Reachability(kernel.source)
        var changes = reachability.changes.makeAsyncIterator()
        let first = await inBackground { kernel.request() }
        let filler = Netlink.message(Netlink.newRoute, Netlink.route(prefix: 24, Array(repeating: 0, count: 60_000)))
        kernel.send(filler)
        kernel.answer(first ?? 0, [])
        await inBackground { kernel.answer([Netlink.route()]) }
        #expect(await changes.next() == .online(.ipv4))
    }

    @Test func theOwnRoutesAreRead() {
        // The kernel responds to any request.
        #expect(Reachability.shared.status != .online([]))
    }

    @Test(.enabled(if: NetworkNamespace.isPermitted, "this process may not make network namespaces"))
    func routesOfARealKernelComeAndGo() async throws {
        let namespace = try #require(NetworkNamespace())
        let reachability = Reachability(namespace.source)
        #expect(reachability.status == .offline)
        var changes = reachability.changes.makeAsyncIterator()
        #expect(await changes.next() == .offline)

        let up = Netlink.link(1, flags: 1, change: 1)
        let down = Netlink.link(1, flags: 0, change: 1)
        let route = Netlink.route(Netlink.attribute(4, Netlink.raw(Int32(1))))
        #expect(namespace.change(Netlink.newLink, up) == 0)
        #expect(namespace.change(Netlink.newRoute, flags: Netlink.requestAcknowledgeCreate, route) == 0)
        #expect(await changes.next() == .online(.ipv4))
        #expect(reachability.status == .online(.ipv4))
        #expect(namespace.change(Netlink.deleteRoute, route) == 0)
        #expect(await changes.next() == .offline)
        #expect(namespace.change(Netlink.newRoute, flags: Netlink.requestAcknowledgeCreate, route) == 0)
        #expect(await changes.next() == .online(.ipv4))
        // The kernel does not report that this removes the route, too.
        #expect(namespace.change(Netlink.newLink, down) == 0)
        #expect(await changes.next() == .offline)
        #expect(Reachability(namespace.source).status == .offline)
    }
}
