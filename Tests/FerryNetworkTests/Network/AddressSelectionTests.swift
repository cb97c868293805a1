import CResolver
import FaultTable
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Names with several addresses: which of them get requests, and which are avoided.
@Suite(.serialized, .timeLimit(.minutes(5))) struct AddressSelectionTests {
    /// Servers on 127.0.0.1 and the following addresses, with one port.
    final class Backends: Sendable {
        let port: UInt16
        private let servers: Mutex<[String: LoopbackServer]>

        init(_ count: Int) throws {
            var made: [String: LoopbackServer] = [:]
            var port: UInt16 = 0
            // Another process may use the port on one of the addresses.
            for attempt in 1... {
                do {
                    port = 0
                    made = [:]
                    for address in Self.addresses(1...count) {
                        made[address] = try Self.server(at: address, port)
                        port = made[address]?.port ?? 0
                    }
                    break
                } catch {
                    if attempt == 20 { throw error }
                }
            }
            self.port = port
            servers = Mutex(made)
        }

        static func addresses(_ numbers: ClosedRange<Int>) -> [String] { numbers.map { "127.0.0.\($0)" } }

        static func server(
            at address: String, _ port: UInt16, accepting: LoopbackServer.Options.Accepting = .all
        ) throws -> LoopbackServer {
            var options = LoopbackServer.Options()
            options.address = address
            options.port = port
            options.accepting = accepting
            options.recordedRequests = 0
            return try LoopbackServer(options)
        }

        func start(_ address: String, accepting: LoopbackServer.Options.Accepting = .all) throws {
            let server = try Self.server(at: address, port, accepting: accepting)
            servers.withLock { $0[address] = server }
        }

        func stop(_ address: String) { servers.withLock { $0.removeValue(forKey: address) }?.stop() }

        func connections(at address: String) -> Int { servers.withLock { $0[address]?.connectionCount ?? 0 } }
    }

    private func withSelection(
        _ selection: AddressSelection, _ backends: Backends, _ addresses: [String],
        _ change: (inout NetworkConfiguration) -> Void = { _ in }, _ body: (NetworkAgent) async throws -> Void
    ) async throws {
        try await withAgent(.automatic) {
            $0.baseURL = "http://a.test:\(backends.port)"
            $0.addressSelection = selection
            $0.hostOverrides = ["a.test:\(backends.port)": addresses]
            change(&$0)
        } _: { agent in
            try await body(agent)
        }
    }

    /// When a load ends.
    private enum Goal {
        case requests(Int)
        /// Waits until the server at this address has a connection.
        case connection(Backends, String)
        case opened(UInt64)

        func isReached(_ answered: Int, _ agent: NetworkAgent) -> Bool {
            switch self {
            case .requests(let count): answered >= count
            case .connection(let backends, let address): backends.connections(at: address) > 0
            case .opened(let count): agent.statistics.connectionsOpened > count
            }
        }
    }

    /// Sends requests, this many at once, and counts them by the address that responded. Throws if one fails.
    private func load(
        _ agent: NetworkAgent, atOnce: Int = 32, until goal: Goal, at turn: Int = .max,
        stopping backends: Backends? = nil
    ) async throws -> [String: Int] {
        try await withThrowingTaskGroup(of: String.self) { group in
            var counts: [String: Int] = [:]
            var (sent, answered) = (0, 0)
            var isOver = false
            while true {
                while !isOver && sent - answered < atOnce {
                    sent += 1
                    group.addTask { try await agent.send(Get("/hello")).metrics.peer?.address ?? "" }
                }
                guard let peer = try await group.next() else { return counts }
                answered += 1
                counts[peer, default: 0] += 1
                if answered == turn { backends?.stop("127.0.0.3") }
                isOver = isOver || goal.isReached(answered, agent)
            }
        }
    }

    private static let spread: [AddressSelection] = [.roundRobin, .leastRequests]

    @Test("Four servers get a quarter of the requests each", arguments: spread, [1, 32])
    func quarters(selection: AddressSelection, atOnce: Int) async throws {
        let backends = try Backends(4)
        try await withSelection(selection, backends, Backends.addresses(1...4)) { agent in
            let counts = try await load(agent, atOnce: atOnce, until: .requests(LongTests.areOn ? 100_000 : 4_000))
            let all = counts.values.reduce(0, +)
            #expect(counts.count == 4)
            for (address, count) in counts {
                #expect((0.23...0.27).contains(Double(count) / Double(all)), "\(address) \(count) of \(all)")
            }
            #expect(agent.statistics.connectionsOpened <= 4 * UInt64(atOnce))
        }
    }

    @Test("In order, the first one gets all")
    func ordered() async throws {
        let backends = try Backends(2)
        try await withSelection(.ordered, backends, Backends.addresses(1...2)) { agent in
            let counts = try await load(agent, until: .requests(200))
            #expect(counts.keys.elementsEqual(["127.0.0.1"]))
        }
    }

    @Test("Connections that expire are replaced at all addresses", arguments: spread)
    func lifetime(selection: AddressSelection) async throws {
        let backends = try Backends(4)
        try await withSelection(selection, backends, Backends.addresses(1...4)) {
            $0.connectionLifetime = .milliseconds(20)
        } _: { agent in
            let counts = try await load(agent, until: .opened(400))
            let all = counts.values.reduce(0, +)
            for count in counts.values { #expect((0.15...0.35).contains(Double(count) / Double(all)), "\(counts)") }
            #expect(agent.statistics.origins.values.allSatisfy { ($0.closed[.lifetime] ?? 0) > 100 })
        }
    }

    @Test(
        "A dead address gets no more requests, no idempotent one fails, and it gets its share again later",
        arguments: spread)
    func death(selection: AddressSelection) async throws {
        let backends = try Backends(4)
        try await withSelection(selection, backends, Backends.addresses(1...4)) { agent in
            let before = try await load(agent, until: .requests(2_000), at: 1_000, stopping: backends)
            #expect(before["127.0.0.3", default: 0] > 100)
            let after = try await load(agent, until: .requests(1_000))
            #expect(after["127.0.0.3"] == nil && after.count == 3, "\(after)")
            try backends.start("127.0.0.3")
            _ = try await load(agent, until: .connection(backends, "127.0.0.3"))
            let again = try await load(agent, until: .requests(2_000))
            // The machine also influences which server has the fewest requests.
            let share = selection == .roundRobin ? 400...600 : 300...800
            #expect(share.contains(again["127.0.0.3", default: 0]), "\(again)")
        }
    }

    /// The resolver of this process gets the fifth while requests continue.
    @Test("A new fifth address gets its share within the lifetime of a connection", arguments: spread)
    func fifth(selection: AddressSelection) async throws {
        let backends = try Backends(5)
        resolver_answer("127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4")
        try await withSelection(selection, backends, ["127.0.0.1"]) {
            $0.baseURL = "http://a.several.test:\(backends.port)"
            $0.hostOverrides = [:]
            $0.connectionLifetime = .seconds(1)
        } _: { agent in
            let four = try await load(agent, until: .requests(400))
            #expect(four.count == 4)
            resolver_answer("127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4,127.0.0.5")
            let appeared = ContinuousClock.now
            _ = try await load(agent, until: .connection(backends, "127.0.0.5"))
            // And the delays of the machine itself. The answer of the resolver would be valid for a minute.
            #expect(appeared.duration(to: .now) < .seconds(20))
            let counts = try await load(agent, until: .requests(1_000))
            #expect(counts["127.0.0.5", default: 0] >= 150, "\(counts)")
            resolver_answer("127.0.0.2,127.0.0.5")
            var gone: [String: Int] = [:]
            repeat { gone = try await load(agent, until: .requests(200)) } while gone.count > 2
            #expect(Set(gone.keys) == ["127.0.0.2", "127.0.0.5"])
        }
    }

    @Test("A slow server gets fewer of the requests")
    func slow() async throws {
        let backends = try Backends(1)
        var options = LoopbackServer.Options()
        options.address = "127.0.0.2"
        options.port = backends.port
        let slow = try LoopbackServer(options)
        let response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        slow.script([.expectHead, .pause(.milliseconds(100)), .send(response), .restart])
        try await withSelection(.leastRequests, backends, Backends.addresses(1...2)) { agent in
            let counts = try await load(agent, atOnce: 8, until: .requests(1_000))
            #expect(counts["127.0.0.2", default: 0] < 250 && counts["127.0.0.2", default: 0] >= 4, "\(counts)")
        }
    }

    /// Its backlog is full, so that it does not respond.
    @Test("An address that does not connect in time is avoided", arguments: [.ordered] + spread)
    func silent(selection: AddressSelection) async throws {
        let backends = try Backends(1)
        try backends.start("127.0.0.2", accepting: .none)
        try await withSelection(selection, backends, ["127.0.0.2", "127.0.0.1"]) { agent in
            func connect() async throws -> Duration {
                let reply = try await agent.send(Full(path: "/hello", headers: ["Connection": "close"]))
                #expect(reply.metrics.peer?.address == "127.0.0.1")
                return try #require(reply.metrics.connect)
            }
            let first = try await connect()
            #expect(first >= .milliseconds(190))
            // A busy machine may be late with one of them. If it were tried, about half of them would be.
            var late: [Duration] = []
            for _ in 0..<20 {
                let later = try await connect()
                if later >= .milliseconds(190) { late.append(later) }
            }
            #expect(late.count <= 3, "\(late)")
        }
    }

    @Test("If all are avoided, all are tried", arguments: [.ordered] + spread)
    func all(selection: AddressSelection) async throws {
        let backends = try Backends(2)
        backends.stop("127.0.0.1")
        backends.stop("127.0.0.2")
        try await withSelection(selection, backends, Backends.addresses(1...2)) { agent in
            for _ in 0..<3 { #expect(await agent.result(Get("/hello")).error?.code == .connect(.refused)) }
            try backends.start("127.0.0.2")
            for _ in 0..<3 { #expect(try await agent.send(Get("/hello")).metrics.peer?.address == "127.0.0.2") }
        }
    }

    @Test("The address policy applies", arguments: spread)
    func policy(selection: AddressSelection) async throws {
        let backends = try Backends(2)
        try await withSelection(selection, backends, Backends.addresses(1...2)) {
            $0.addressPolicy = .publicOnly
        } _: { agent in
            for _ in 0..<3 { #expect(await agent.result(Get("/hello")).error?.code == .addressForbidden) }
            #expect(agent.statistics.connectionsOpened == 0)
        }
    }
}
