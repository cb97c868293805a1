import FaultTable
import Ferry
import Testing

/// Faults inside a connection of HTTP/2: rows R82 to R86.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct HTTP2FaultTests {
    private func configuration() throws -> NetworkConfiguration {
        var configuration = try NetworkConfiguration.trusting
        configuration.http2 = .negotiated
        return configuration
    }

    @Test(
        "R82: a stream that is reset fails, before and after a part of the body",
        arguments: [
            ("/reset/8", RequestError.Code.http2Stream(.cancel)), ("/reset/2", .http2Stream(.internal)),
            ("/reset/11", .http2Stream(.enhanceYourCalm)), ("/reset-after/8", .http2Stream(.cancel)),
            ("/reset-after/2", .http2Stream(.internal)),
        ])
    func reset(path: String, code: RequestError.Code) async throws {
        let server = try FaultyHTTP2Server.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            for form in HTTP2Form.allCases {
                let error = try await form.failure(of: Get(server.url("\(path)?\(form)-\(mark)")), by: agent)
                #expect(error?.code == code && error?.mayHaveBeenProcessed == true, "\(form)")
                let requests = try server.requests("\(form)-\(mark)")
                #expect(requests.count == 1, "\(form)")
            }
        }
    }

    @Test("R82: the other streams of the connection finish")
    func others() async throws {
        let server = try FaultyHTTP2Server.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            try await agent.send(Get(server.url("/echo?\(mark)")))
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<60 {
                    group.addTask {
                        if number % 3 == 0 {
                            let error = await failure { () throws(RequestError) in
                                try await agent.send(Get(server.url("/reset-after/8?\(mark)")))
                            }
                            return error?.code == .http2Stream(.cancel)
                        }
                        let reply = try await agent.send(Get(server.url("/bytes/100000?\(mark)")))
                        return reply.bytes == Nginx.pattern(100_000)
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
            let connections = Set(try server.requests(mark).map(\.connection))
            #expect(connections.count <= 2)
        }
    }

    @Test("R83: a stream that is refused is tried again, a few times")
    func refused() async throws {
        let server = try FaultyHTTP2Server.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            for form in HTTP2Form.allCases {
                let request = Full(server.url("/refuse/100?id=\(form)-\(mark)"), .post, body: .string("x"))
                let error = try await form.failure(of: request, by: agent)
                #expect(error?.code == .http2Stream(.refused) && error?.mayHaveBeenProcessed == false, "\(form)")
                let count = try server.requests("\(form)-\(mark)").count
                #expect(count >= 1 && count <= 6, "\(form)")
            }
            let reply = try await agent.send(Get(server.url("/refuse/1?id=once-\(mark)")))
            #expect(reply.status == 200)
        }
    }

    @Test(
        "R84: what a GOAWAY says was not processed is sent once more, whatever the method",
        arguments: [HTTPMethod.get, .post])
    func goaway(method: HTTPMethod) async throws {
        let server = try FaultyHTTP2Server.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            for form in HTTP2Form.allCases {
                try await agent.send(Get(server.url("/echo?\(mark)")))
                let error = try await form.failure(
                    of: Full(server.url("/goaway?id=\(form)-\(mark)"), method), by: agent)
                #expect(error == nil, "\(form): \(error.map(String.init(describing:)) ?? "")")
                let requests = try server.requests("goaway?id=\(form)-\(mark)")
                #expect(requests.count == 2 && Set(requests.map(\.connection)).count == 2, "\(form)")
            }
        }
    }

    @Test("R84: a server that always says so is not asked for ever")
    func goawayAlways() async throws {
        let server = try FaultyHTTP2Server.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(Get(server.url("/goaway-always?\(mark)")))
            }
            #expect(error != nil)
            let requests = try server.requests(mark)
            #expect(requests.count <= 6)
        }
    }

    @Test(
        "R86: a body of another length than announced, and a line break in a field, are no answer",
        arguments: ["/length/3", "/length/30", "/field?value=a%0d%0aEvil:%201", "/field?value=a%00b"])
    func malformed(path: String) async throws {
        let server = try FaultyHTTP2Server.shared
        try await withAgent(configuration()) { agent in
            for form in HTTP2Form.allCases {
                let error = try await form.failure(of: Get(server.url(path)), by: agent)
                let found = error.map(String.init(describing:)) ?? "none"
                #expect(error?.code.name == "malformedResponse", "\(form): \(found)")
            }
            let next = try await agent.send(Get(server.url("/length/10")))
            #expect(next.bodyLength == 10)
        }
    }

    @Test("bodies without a length arrive whole, and the connection is kept")
    func unsized() async throws {
        let server = try FaultyHTTP2Server.shared
        try await withAgent(configuration()) { agent in
            for _ in 0..<3 {
                let reply = try await agent.send(Get(server.url("/unsized/200000")))
                #expect(reply.bytes == Nginx.pattern(200_000) && reply.framing == .exact)
            }
            #expect(agent.statistics.connectionsOpened == 1)
        }
    }

    @Test("of bodies without a length that a connection ends in none is taken for whole", arguments: 0..<5)
    func cut(round: Int) async throws {
        let server = try FaultyHTTP2Server.shared
        try await withAgent(configuration()) { agent in
            let errors = try await withThrowingTaskGroup(of: RequestError?.self) { group in
                for number in 0..<40 {
                    let path = number == 20 ? "/cut/1000" : "/unsized/200000"
                    group.addTask {
                        do throws(RequestError) {
                            let reply = try await agent.send(Get(server.url(path)))
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

    @Test("silence after the head is a timeout, and leaves the other streams alone")
    func silence() async throws {
        let server = try FaultyHTTP2Server.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            var request = Full(server.url("/silence?\(mark)"))
            request.timeouts = Timeouts(idle: .milliseconds(300))
            let error = await failure { () throws(RequestError) in try await agent.send(request) }
            #expect(error?.code == .timeout(.read))
            let next = try await agent.send(Get(server.url("/echo?\(mark)")))
            #expect(next.status == 200)
        }
    }
}
