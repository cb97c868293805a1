import FaultTable
import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Connections that end too early or send too much: rows R16 to R21.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct ConnectionFaultTests {
    @Test("R16: a request may have been processed if the connection closes without a byte")
    func closedWithoutAnswer() async throws {
        try await expectFault([.expectHead, .close], .connectionClosed, .waitingHead, received: 0)
    }

    @Test("R16: also after the server has sent 100 Continue")
    func closedAfterContinue() async throws {
        let promise = "HTTP/1.1 100 Continue\r\n\r\n"
        try await expectFault(
            [.expectHead, .send(promise), .close], .connectionClosed, .waitingHead, received: promise.utf8.count)
    }

    @Test(
        "R16: a truncated head is an error",
        arguments: ["H", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\nX: y", "HTTP/1.1 200 OK\r\nX: y\r\n"])
    func headCutShort(text: String) async throws {
        try await expectFault([.expectHead, .send(text), .close], .connectionClosed, .waitingHead, .head)
    }

    @Test(
        "R16: a truncated head is an error over TLS, with and without close_notify",
        arguments: [LoopbackScript.Step.close, .drop])
    func closedWithoutAnswerTLS(end: LoopbackScript.Step) async throws {
        let certificate = try ServerCertificate()
        try await expectFault([.expectHead, end], .connectionClosed, .waitingHead) {
            $0.server.certificate = certificate
            $0.configuration.tls.authorityFile = certificate.authorityFile
        }
    }

    @Test("R17: a body that ends with its connection is accepted, and marked so", arguments: [0, 3, 1_000_000])
    func untilClose(size: Int) async throws {
        try await expectAnswer(
            [.expectHead, .send(head()), .pattern(bytes: size), .close], setUp: { $0.keeps = false }
        ) { response, server in
            #expect(response.bytes == LoopbackServer.pattern(0..<size))
            #expect(response.framing == .untilClose)
            #expect(server.connectionCount == 2)
        }
    }

    @Test("R17: bodies with a length or chunks are not marked so")
    func exactBodies() async throws {
        for script: LoopbackScript in [
            [.expectHead, .send(answer("abc")), .close], [.expectHead, .send(answer("abc")), .serve],
            [.expectHead, .send(head("200 OK", "Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n0\r\n\r\n"), .close],
        ] {
            try await expectAnswer(script) { response, _ in
                #expect(response.text == "abc")
                #expect(response.framing == .exact)
            }
        }
    }

    @Test(
        "R18: a reset instead of the end is an error",
        arguments: ["", "Content-Length: 10\r\n", "Transfer-Encoding: chunked\r\n"])
    func resetInBody(fields: String) async throws {
        let body = fields.hasPrefix("Transfer") ? "3\r\nabc\r\n" : "abc"
        try await expectFault(
            [.expectHead, .send(head("200 OK", fields) + body), .reset], .connectionReset, .body, .waitingHead)
    }

    @Test("R18: a reset before any byte is an error")
    func resetBeforeHead() async throws {
        try await expectFault([.expectHead, .reset], .connectionReset, .waitingHead, received: 0)
    }

    @Test("R20: bytes after a whole response never become a response", arguments: [1, 2, 50])
    func excess(count: Int) async throws {
        let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"
        // In one piece: bytes that arrive after the next request was sent count as its response.
        let whole = answer("good") + String(repeating: poison, count: count)
        try await expectAnswer([.expectHead, .send(whole), .serve]) { response, server in
            #expect(response.text == "good")
            #expect(server.connectionCount == 2)
        }
    }

    @Test("R20: nor do a few stray bytes", arguments: ["\r\n", "x", "HTTP/1.1 200 OK\r\n", "0\r\n\r\n"])
    func strayBytes(text: String) async throws {
        try await expectAnswer([.expectHead, .send(answer("good") + text), .serve]) { response, server in
            #expect(response.text == "good")
        }
    }

    @Test(
        "R21: bytes on an idle connection never become a response",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON", "HTTP/1.1 200 OK\r\n", "x", "\r\n",
            "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        ], [false, true])
    func poisonedQueue(poison: String, overTLS: Bool) async throws {
        var options = LoopbackServer.Options()
        if overTLS { options.certificate = try ServerCertificate() }
        // Each form sends the first request after the poison.
        for play in Play.allCases {
            try await withFlow(server: options) { server, agent in
                server.script(
                    connection: 1,
                    [.expectHead, .send(answer("first")), .wait("go"), .send(poison), .mark("poisoned"), .serve])
                #expect(try await agent.send(Get("/1")).text == "first")
                server.signal("go")
                try await server.waitForMark("poisoned")
                let probe = HTTPRequest.probe("/hello?" + Canary.query)
                for play in [play, Play()] {
                    let reply = try await agent.outcome(of: probe, play).get()
                    #expect(reply.status == 200)
                    #expect(reply.text == "Hello, ferry")
                }
                #expect(server.connectionCount == 2)
            }
        }
    }

    @Test("R21: after many connections are poisoned at once each request gets its own response")
    func manyPoisoned() async throws {
        let server = try LoopbackServer()
        server.install(
            .init(
                .connections(1...20),
                [
                    .expectHead, .mark("asked"), .wait("answer"), .send(answer("first")), .wait("go"),
                    .repeating("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON", times: 3), .mark("poisoned"),
                    .serve,
                ]))
        let agent = NetworkAgent()
        let first = (0..<20).map { _ in Outcome<Response>() }
        for outcome in first { agent.start(Get(server.baseURL + "/1"), completion: outcome.take) }
        try await server.waitForMark("asked", count: 20)
        server.signal("answer")
        for outcome in first { #expect(try await outcome.result.get().text == "first") }
        server.signal("go")
        try await server.waitForMark("poisoned", count: 20)
        let second = (0..<20).map { _ in Outcome<Response>() }
        for outcome in second { agent.start(Get(server.baseURL + "/hello"), completion: outcome.take) }
        for outcome in second { #expect(try await outcome.result.get().text == "Hello, ferry") }
        await agent.shutdown()
    }
}
