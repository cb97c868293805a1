import FerryTesting
import Testing

extension LoopbackTests {
    @Suite("LoopbackServer: handlers", .timeLimit(.minutes(1)))
    struct LoopbackHandlerTests {
        @Test func handlerAnswersItsMethodAndPath() async throws {
            let server = try LoopbackServer()
            server.handle("POST", "/orders") { request in
                LoopbackResponse(
                    status: 201, headers: ["X-Got": request.headers["x-id"] ?? "none"], text: request.text + "!")
            }
            let client = try RawClient(port: server.port)
            let answer = try await client.exchange(
                "POST /orders?x=1 HTTP/1.1\r\nX-Id: 7\r\nContent-Length: 3\r\n\r\nabc")
            #expect(answer.status == 201)
            #expect(answer["X-Got"] == "7")
            #expect(answer.text == "abc!")
            #expect(try await client.get("/orders").status == 404)
        }

        @Test func latestHandlerWinsOverOlderOnesAndRoutes() async throws {
            let server = try LoopbackServer()
            server.handle("/hel*") { _ in LoopbackResponse(text: "old") }
            server.handle("GET", "/hello") { _ in LoopbackResponse(text: "new") }
            let client = try RawClient(port: server.port)
            #expect(try await client.get("/hello").text == "new")
            #expect(try await client.get("/help").text == "old")
        }

        @Test func handlerMayAnswerLateAndLarge() async throws {
            let server = try LoopbackServer()
            let body = LoopbackServer.pattern(0..<3_000_000)
            server.handle("/large") { request in
                try? await server.waitForMark("go")
                return LoopbackResponse(body: body)
            }
            server.script(path: "/mark", [.mark("go"), .serve])
            let client = try RawClient(port: server.port)
            async let answer = client.get("/large")
            try await server.waitForRequests(1)
            let other = try RawClient(port: server.port)
            try await other.send("GET /mark HTTP/1.1\r\n\r\n")
            #expect(try await answer.body == body)
            #expect(try await client.exchange("HEAD /large HTTP/1.1\r\n\r\n", toHead: true).status == 200)
            server.stop()
        }

        @Test func handlerMayFrameItsBodyItself() async throws {
            let server = try LoopbackServer()
            server.handle("/lie") { _ in
                LoopbackResponse(headers: ["Content-Length": "100", "Connection": "close"], text: "abc")
            }
            let client = try RawClient(port: server.port)
            try await client.send("GET /lie HTTP/1.1\r\n\r\n")
            #expect(try await client.readResponse(toHead: true)["Content-Length"] == "100")
            #expect(try await client.receiveAll() == Array("abc".utf8))
        }

        @Test func answerForAClientThatLeftIsNothing() async throws {
            let server = try LoopbackServer()
            let gate = AsyncStream.makeStream(of: Void.self)
            let answered = AsyncStream.makeStream(of: Void.self)
            server.handle("/slow") { _ in
                for await _ in gate.stream { break }
                defer { answered.continuation.yield() }
                return LoopbackResponse(text: "late")
            }
            do {
                let client = try RawClient(port: server.port)
                try await client.send("GET /slow HTTP/1.1\r\n\r\n")
                try await server.waitForRequests(1)
            }
            try await server.waitForOpenConnections(atMost: 0)
            let next = try RawClient(port: server.port)
            #expect(try await next.get("/hello").status == 200)
            gate.continuation.yield()
            for await _ in answered.stream { break }
            #expect(try await next.get("/hello").text == "Hello, ferry")
        }

        @Test func manyAnswersComeFromManyTasks() async throws {
            let server = try LoopbackServer()
            server.handle("/n/*") { request in
                await Task.yield()
                return LoopbackResponse(text: request.path)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<40 {
                    group.addTask {
                        let client = try RawClient(port: server.port)
                        for round in 0..<10 {
                            #expect(try await client.get("/n/\(number)/\(round)").text == "/n/\(number)/\(round)")
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(server.requestCount == 400)
        }

        @Test func whatIsInstalledIsFoundByTheNextRequest() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            for round in 0..<200 {
                server.handle("/round") { _ in LoopbackResponse(text: "\(round)") }
                #expect(try await client.get("/round").text == "\(round)")
                server.script(
                    path: "/once", uses: 1, [.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"), .serve])
                #expect(try await client.get("/once").text == "x")
            }
        }

        @Test func handlerThatOutlivesItsServerIsNothing() async throws {
            let gate = AsyncStream.makeStream(of: Void.self)
            let done = AsyncStream.makeStream(of: Void.self)
            var server: LoopbackServer? = try LoopbackServer()
            server?.handle("/slow") { _ in
                for await _ in gate.stream { break }
                done.continuation.yield()
                return LoopbackResponse(text: "late")
            }
            let client = try RawClient(port: try #require(server).port)
            try await client.send("GET /slow HTTP/1.1\r\n\r\n")
            try await server?.waitForRequests(1)
            server = nil
            #expect(try await client.receiveAll().isEmpty)
            gate.continuation.yield()
            for await _ in done.stream { break }
        }
    }
}
