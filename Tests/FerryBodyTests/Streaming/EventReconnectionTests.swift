import FerryTesting
import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// What a stream of server-sent events takes from one connection to the next, and what it does not.
@Suite(.timeLimit(.minutes(1))) struct EventReconnectionTests {
    private static let quick = EventReconnection(delay: .milliseconds(1), maxDelay: .milliseconds(20))

    /// The events of these bodies, one for each connection, before a 204; and the server.
    private func events(
        _ bodies: [[UInt8]], _ headers: Headers = Headers(), coding: String = "identity",
        reconnection: EventReconnection = quick, _ change: (inout NetworkConfiguration) -> Void = { _ in }
    ) async throws -> (events: [ServerSentEvent], ids: [String?]) {
        let server = try LoopbackServer()
        for body in bodies {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
            server.script(
                path: "/events", uses: 1,
                [.send(head + "Content-Encoding: \(coding)\r\n\r\n"), .sendBytes(body), .close])
        }
        server.script(path: "/events", [.send("HTTP/1.1 204 No Content\r\n\r\n"), .serve])
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        change(&configuration)
        let agent = NetworkAgent(configuration: configuration)
        var events: [ServerSentEvent] = []
        let request = HTTPRequest(.get, "/events", headers: headers)
        for try await event in agent.events(request, reconnection: reconnection) { events.append(event) }
        await agent.shutdown()
        return (events, server.requests.map { $0.headers["Last-Event-ID"] })
    }

    @Test func anIDBeyondASCIIIsSentAsUTF8AndOneWithNULIsIgnored() async throws {
        let (events, ids) = try await events([
            Array("id: ä🛶\ndata: 1\n\n".utf8), Array("id: a\u{0}b\ndata: 2\n\n".utf8),
            Array("id: \ndata: 3\n\n".utf8),
        ])
        #expect(events.map(\.id) == ["ä🛶", "ä🛶", ""])
        #expect(ids == [nil, "ä🛶", "ä🛶", nil])
    }

    /// The request's own position is that of the start.
    @Test func anIDThatTheServerResetsOrThatCannotBeSentReplacesThatOfTheRequest() async throws {
        let (events, ids) = try await events(
            [
                Array("data: 1\n\n".utf8), Array("id: a\ndata: 2\n\n".utf8), Array("id\ndata: 3\n\n".utf8),
                Array("id: \u{1}\ndata: 4\n\n".utf8),
            ], ["Last-Event-ID": "before"])
        #expect(events.map(\.data) == ["1", "2", "3", "4"])
        #expect(ids == ["before", "before", "a", nil, nil])
    }

    @Test func aConnectionThatEndsWithinACharacterLosesOnlyTheEventThatIsIncomplete() async throws {
        let (events, ids) = try await events([
            Array("id: 1\ndata: a\n\nid: 2\ndata: ".utf8) + [0xE2, 0x82], Array("data: €\n\n".utf8),
            Array("data: ".utf8) + [0xE2, 0x82] + Array("\n\n".utf8),
        ])
        #expect(events.map(\.data) == ["a", "€", "\u{FFFD}"] && events.map(\.id) == ["1", "1", "1"])
        #expect(ids == [nil, "1", "1", "1"])
    }

    /// An event and a half, with everything but the end of the compressed body.
    private static func cutOff(_ number: Int, _ coding: BodyEncoder.Coding) -> [UInt8] {
        guard var encoder = BodyEncoder(coding) else { return [] }
        var body: [UInt8] = []
        let text = Array("id: \(number)\ndata: \(number)\n\ndata: incom".utf8)
        let isDone = text.withUnsafeBytes { encoder.encode($0, to: &body) } && encoder.flush(to: &body)
        return isDone ? body : []
    }

    /// A server that is stopped does not end its compressed bodies.
    @Test(arguments: [BodyEncoder.Coding.gzip, .zstd])
    func aCompressedBodyThatIsCutOffIsALostConnection(coding: BodyEncoder.Coding) async throws {
        let bodies = (1...3).map { Self.cutOff($0, coding) }
        let (events, ids) = try await events(bodies, coding: coding == .gzip ? "gzip" : "zstd") {
            $0.acceptedEncodings = [.gzip, .zstd]
        }
        #expect(events.map(\.data) == ["1", "2", "3"] && ids == [nil, "1", "2", "3"])
    }

    @Test(arguments: ["99999999999999999999999", "-1", "1e3", "", "9223372036854775807"])
    func aRetryFieldThatIsNoWaitOrTooLongIsNone(retry: String) async throws {
        let (events, _) = try await events([Array("retry: \(retry)\ndata: 1\n\n".utf8)])
        #expect(events.count == 1)
    }

    /// The wait doubles with each failure.
    @Test(arguments: [Duration.seconds(-1), .seconds(Int64.min)]) func aNegativeWaitIsNone(wait: Duration) async throws
    {
        let server = try LoopbackServer()
        for connection in 1...40 { server.script(connection: connection, [.reset]) }
        server.script(connection: 41, [.expectHead, .send("HTTP/1.1 204 No Content\r\n\r\n"), .serve])
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        var request = HTTPRequest(.get, "/events")
        request.isIdempotent = false
        let policy = EventReconnection(delay: wait, maxDelay: wait, maxFailures: 40)
        for try await _ in agent.events(request, reconnection: policy) {}
        #expect(server.requestCount == 1)
        await agent.shutdown()
    }

    @Test func aRedirectAndATokenAreForEachConnection() async throws {
        let server = try LoopbackServer()
        let tokens = TokenServer(on: server)
        server.handle("/events") { _ in LoopbackResponse(status: 307, headers: ["Location": "/there"]) }
        server.handle("/there") { request in
            guard tokens.isValid(request) else { return LoopbackResponse(status: 401) }
            if request.headers["Last-Event-ID"] == "2" { return LoopbackResponse(status: 204) }
            tokens.expire()
            let id = request.headers["Last-Event-ID"] == nil ? 1 : 2
            return LoopbackResponse(
                headers: ["Content-Type": "text/event-stream"], text: "id: \(id)\ndata: \(id)\n\n")
        }
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.authenticator = Session(token: TokenServer.expired)
        let agent = NetworkAgent(configuration: configuration)
        var events: [String] = []
        for try await event in agent.events(Get("/events"), reconnection: Self.quick) { events.append(event.data) }
        #expect(events == ["1", "2"] && tokens.issued == 3)
        await agent.shutdown()
    }
}
