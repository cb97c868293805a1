import FaultTable
import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Faults within an HTTP/2 connection: rows R82 to R86.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct HTTP2FaultTests {
    private func configuration() throws -> NetworkConfiguration {
        var configuration = try NetworkConfiguration.trusting
        configuration.http2 = .negotiated
        return configuration
    }

    /// Once on each server, and no more often.
    private func expectRequests(_ mark: String, each count: Int = 1) throws {
        let requests = try FaultyHTTP2Server.shared.requests(mark)
        #expect(requests.count == count * FaultSetup().plays.count, "\(requests.map(\.connection))")
    }

    @Test(
        "R82: a stream that is reset before its head fails",
        arguments: [
            ("/reset/8", RequestError.Code.http2Stream(.cancel)), ("/reset/2", .http2Stream(.internal)),
            ("/reset/11", .http2Stream(.enhanceYourCalm)),
        ])
    func reset(path: String, code: RequestError.Code) async throws {
        let mark = token()
        try await expectFault([], code, .waitingHead, received: 0) { try $0.askHTTP2(path, mark) }
        try expectRequests(mark)
    }

    @Test(
        "R82: a stream that is reset inside its body fails",
        arguments: [
            ("/reset-later/8", RequestError.Code.http2Stream(.cancel)), ("/reset-later/2", .http2Stream(.internal)),
        ])
    func resetInBody(path: String, code: RequestError.Code) async throws {
        let mark = token()
        try await expectFault([], code, .body) { try $0.askHTTP2(path, mark) }
        try expectRequests(mark)
    }

    @Test(
        "R82: a stream whose reset comes together with the start of its response fails",
        arguments: [
            ("/reset-after/8", RequestError.Code.http2Stream(.cancel)), ("/reset-after/2", .http2Stream(.internal)),
        ])
    func resetAtOnce(path: String, code: RequestError.Code) async throws {
        let mark = token()
        try await expectFault([], code, .waitingHead, .head, .body) { try $0.askHTTP2(path, mark) }
        try expectRequests(mark)
    }

    @Test("R82: the other streams of the connection finish")
    func others() async throws {
        let server = try FaultyHTTP2Server.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            try await agent.send(HTTPRequest.to(server.url("/echo?\(mark)")))
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<60 {
                    group.addTask {
                        if number % 3 == 0 {
                            let error = await failure { () throws(RequestError) in
                                try await agent.send(HTTPRequest.to(server.url("/reset-after/8?\(mark)")))
                            }
                            return error?.code == .http2Stream(.cancel)
                        }
                        let reply = try await agent.send(HTTPRequest.to(server.url("/bytes/100000?\(mark)")))
                        return reply.bytes == Nginx.pattern(100_000)
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
            let connections = Set(try server.requests(mark).map(\.connection))
            #expect(connections.count <= 2)
        }
    }

    @Test("R83: a refused stream is tried again a few times", arguments: [HTTPMethod.get, .post])
    func refused(method: HTTPMethod) async throws {
        let mark = token()
        try await expectFault(
            [], .http2Stream(.refused), .waitingHead, processed: false, untouched: true, attempts: 3, received: 0
        ) {
            try $0.askHTTP2("/refuse/1000", mark)
            $0.probe.method = method
            $0.probe.body = method == .post ? .string(Canary.body) : nil
        }
        try expectRequests(mark, each: 3)
    }

    @Test("R83: the connection left over from a refusal serves later requests")
    func leftOver() async throws {
        let server = try FaultyHTTP2Server.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            for _ in 0..<30 {
                let error = await failure { () throws(RequestError) in
                    try await agent.send(HTTPRequest.to(server.url("/refuse/1000?\(mark)")))
                }
                #expect(error?.code == .http2Stream(.refused))
                let next = try await agent.send(HTTPRequest.to(server.url("/length/10")))
                #expect(next.status == 200)
            }
        }
    }

    @Test("R83: a stream that is refused once succeeds at the next attempt")
    func refusedOnce() async throws {
        let server = try FaultyHTTP2Server.shared
        try await withAgent(configuration()) { agent in
            let reply = try await agent.send(HTTPRequest.to(server.url("/refuse/1?id=\(token())")))
            #expect(reply.status == 200)
        }
    }

    @Test(
        "R84: a request that a GOAWAY declares unprocessed is sent again, whatever its method",
        arguments: [HTTPMethod.get, .post])
    func goaway(method: HTTPMethod) async throws {
        let mark = token()
        try await expectAnswer(setUp: {
            try $0.askHTTP2("/goaway", mark)
            $0.probe.method = method
        }) { response, _ in
            #expect(response.status == 200 && response.attempts == 2 && response.text.contains(mark))
        }
        try expectRequests(mark, each: 2)
    }

    @Test("R84: so is one on a connection that has served others", arguments: [HTTPMethod.get, .post])
    func goawayOnAKeptConnection(method: HTTPMethod) async throws {
        let server = try FaultyHTTP2Server.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            for play in Play.allCases {
                try await agent.send(HTTPRequest.to(server.url("/echo?\(mark)")))
                let id = "\(play.form)-\(play.way)-\(mark)"
                let request = HTTPRequest.to(server.url("/goaway?id=\(id)"), method)
                #expect(try await agent.outcome(of: request, play).get().status == 200)
                let requests = try server.requests("goaway?id=\(id)")
                #expect(requests.count == 2 && Set(requests.map(\.connection)).count == 2, "\(play)")
            }
        }
    }

    @Test("R84: a server that always sends GOAWAY is not retried for ever")
    func goawayAlways() async throws {
        let mark = token()
        try await expectFault(
            [], .http2Stream(.refused), .waitingHead, processed: false, untouched: true, attempts: 3, received: 0
        ) { try $0.askHTTP2("/goaway-always", mark) }
        try expectRequests(mark, each: 3)
    }

    @Test("R86: a body whose length differs from the announced one fails", arguments: ["/length/3", "/length/30"])
    func wrongLength(path: String) async throws {
        let mark = token()
        try await expectFault([], .malformedResponse, .waitingHead, .head, .body) { try $0.askHTTP2(path, mark) }
        try expectRequests(mark)
    }

    @Test(
        "R86: a line break or a NUL in a field fails",
        arguments: ["/field?value=a%0d%0aEvil:%201", "/field?value=a%00b"])
    func malformedField(path: String) async throws {
        let mark = token()
        try await expectFault([], .malformedResponse, .waitingHead, .head) { try $0.askHTTP2(path, mark) }
        try expectRequests(mark)
    }

    @Test("bodies without a length arrive whole, and the connection is kept")
    func unsized() async throws {
        let server = try FaultyHTTP2Server.shared
        try await withAgent(configuration()) { agent in
            for _ in 0..<3 {
                let reply = try await agent.send(HTTPRequest.to(server.url("/unsized/200000")))
                #expect(reply.bytes == Nginx.pattern(200_000) && reply.framing == .exact)
            }
            #expect(agent.statistics.connectionsOpened == 1)
        }
    }

    @Test("a body without a length is never taken for whole when the connection ends in it", arguments: 0..<5)
    func cut(round: Int) async throws {
        let server = try FaultyHTTP2Server.shared
        try await withAgent(configuration()) { agent in
            let errors = try await withThrowingTaskGroup(of: RequestError?.self) { group in
                for number in 0..<40 {
                    let path = number == 20 ? "/cut/1000" : "/unsized/200000"
                    group.addTask {
                        do throws(RequestError) {
                            let reply = try await agent.send(HTTPRequest.to(server.url(path)))
                            #expect(reply.bodyLength == 200_000)
                            return nil
                        } catch {
                            return error
                        }
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }.compactMap(\.self)
            }
            #expect(!errors.isEmpty)
        }
    }

    @Test("silence after the head is a timeout")
    func silence() async throws {
        try await expectFault([], .timeout(.read), .body) {
            try $0.askHTTP2("/silence", token())
            $0.probe.timeouts = Timeouts(idle: .seconds(1))
            $0.ends(after: .seconds(1))
        }
    }

    @Test("silence after the head leaves the other streams alone")
    func silenceBesideOthers() async throws {
        let server = try FaultyHTTP2Server.shared
        try await withAgent(configuration()) { agent in
            var request = HTTPRequest.to(server.url("/silence?\(token())"))
            request.timeouts = Timeouts(idle: .seconds(1))
            let error = await failure { () throws(RequestError) in try await agent.send(request) }
            #expect(error?.code == .timeout(.read))
            let next = try await agent.send(HTTPRequest.to(server.url("/echo")))
            #expect(next.status == 200)
        }
    }
}

extension FaultSetup {
    /// Requests the HTTP/2 server with faults, before and after; its requests are identified by `mark`.
    fileprivate mutating func askHTTP2(_ target: String, _ mark: String) throws {
        let server = try FaultyHTTP2Server.shared
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        configuration.tls.authorityFile = try Certificates.shared.authorityFile
        configuration.http2 = .negotiated
        elsewhere = server.url("")
        path = parts[0]
        query = parts.dropFirst().map { $0 + "&" }.joined() + "id=" + mark
        next = .url(server.url("/length/10"))
    }
}
