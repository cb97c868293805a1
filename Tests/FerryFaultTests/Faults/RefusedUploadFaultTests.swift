import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Responses that arrive before the upload has ended: row R80.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct RefusedUploadFaultTests {
    enum Body: CaseIterable, Sendable {
        case memory, file, stream
    }

    private static let size = 50_000_000
    private static let large = [UInt8](repeating: 0x61, count: size)

    private func made(_ body: Body, _ file: TemporaryFile) -> RequestBody {
        switch body {
        case .memory: .bytes(Self.large)
        case .file: .file(file.path)
        case .stream:
            .stream { Pieces(pieces: [[UInt8]](repeating: [UInt8](repeating: 0x61, count: 100_000), count: 500)) }
        }
    }

    private static func answers(_ status: String) -> [String] {
        [
            head(status, "Connection: close\r\nContent-Length: 2\r\n") + "no",
            head(status, "Transfer-Encoding: chunked\r\n") + "1\r\nn\r\n1\r\no\r\n0\r\n\r\n",
        ]
    }

    @Test(
        "R80: the response to a refused upload is delivered, not the reset after it",
        arguments: Body.allCases, ["413 Content Too Large", "404 Not Found"])
    func refused(body: Body, status: String) async throws {
        let file = try TemporaryFile(size: Self.size)
        let code = Int(status.prefix(3)) ?? 0
        for answer in Self.answers(status) {
            for begins in [0, 1_000_000] {
                let script: LoopbackScript = [.expectHead, .expectBytes(begins), .send(answer), .reset]
                // A body that is held or streamed may be lost with the reset, but the status is not.
                for forms in [[Form.buffered], [.streamed, .download]] {
                    try await expectFault(script, .invalidStatusCode(code), .processing) {
                        $0.probe.method = .post
                        $0.probe.body = made(body, file)
                        $0.forms = forms
                    } after: { server in
                        #expect(server.requests.count { $0.path == "/fault" } == 1)
                    } error: { error in
                        #expect(error.response?.body == Array("no".utf8) || !forms.contains(.buffered))
                        #expect(error.bytesSent < UInt64(Self.size))
                    }
                }
            }
        }
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
    }

    @Test("R80: so is a successful response", arguments: Body.allCases)
    func accepted(body: Body) async throws {
        let file = try TemporaryFile(size: Self.size)
        try await expectAnswer(
            [.expectHead, .expectBytes(1_000_000), .send(Self.answers("200 OK")[0]), .reset],
            setUp: {
                $0.probe.method = .post
                $0.probe.body = made(body, file)
                $0.forms = [.buffered]
            }
        ) { response, server in
            #expect(response.status == 200 && response.text == "no")
            #expect(server.requests.count { $0.path == "/fault" } == 1)
        }
    }

    @Test("R80: so is a response that is streamed or written to a file", arguments: Body.allCases)
    func acceptedAsItComes(body: Body) async throws {
        let file = try TemporaryFile(size: Self.size)
        for answer in Self.answers("200 OK") {
            try await expectAnswer(
                [.expectHead, .expectBytes(1_000_000), .send(answer), .reset],
                setUp: {
                    $0.probe.method = .post
                    $0.probe.body = made(body, file)
                    $0.forms = [.streamed, .download]
                }
            ) { response, server in
                #expect(response.status == 200 && response.text == "no")
                #expect(server.requests.count { $0.path == "/fault" } == 1)
            }
        }
    }

    @Test("R80: a response without a body is complete with its head", arguments: Body.allCases)
    func acceptedWithoutABody(body: Body) async throws {
        let file = try TemporaryFile(size: Self.size)
        for answer in [
            head("200 OK", "Content-Length: 0\r\n"), head("204 No Content"),
            head("201 Created", "Transfer-Encoding: chunked\r\n") + "0\r\n\r\n",
        ] {
            try await expectAnswer(
                [.expectHead, .expectBytes(1_000_000), .send(answer), .reset],
                setUp: {
                    $0.probe.method = .post
                    $0.probe.body = made(body, file)
                    // Of these statuses only 200 produces a file.
                    if !answer.hasPrefix("HTTP/1.1 200") { $0.forms = [.buffered, .streamed] }
                }
            ) { response, server in
                #expect(response.status / 100 == 2 && response.text.isEmpty)
                #expect(server.requests.count { $0.path == "/fault" } == 1)
            }
        }
    }

    /// Provides some bytes, and then waits for ever.
    private static var starving: RequestBody {
        .stream { Pieces(pieces: [[0x61, 0x62, 0x63]], hangsAtEnd: true) }
    }

    @Test("R80: a source without further bytes does not delay it, nor does a connection that stays open")
    func sourceThatWaits() async throws {
        for answer in Self.answers("413 Content Too Large") {
            for end in [LoopbackScript.Step.close, .keepOpen] {
                try await expectFault(
                    [.expectHead, .expectBytes(8), .send(answer), end], .invalidStatusCode(413), .processing
                ) {
                    $0.probe.method = .post
                    $0.probe.body = Self.starving
                } error: { error in
                    #expect(error.response?.status == 413)
                }
            }
        }
    }

    @Test("R80: nor a successful one, when the server closes or the idle time has passed")
    func acceptedWhileTheSourceWaits() async throws {
        let answers = [
            answer("no"), head("200 OK", "Transfer-Encoding: chunked\r\n") + "2\r\nno\r\n0\r\n\r\n",
        ]
        for answer in answers {
            for end in [LoopbackScript.Step.close, .keepOpen] {
                try await expectAnswer(
                    [.expectHead, .expectBytes(8), .send(answer), end],
                    setUp: {
                        $0.probe.method = .post
                        $0.probe.body = Self.starving
                        if end == .keepOpen { $0.probe.timeouts = Timeouts(idle: .milliseconds(200)) }
                    }
                ) { response, _ in
                    #expect(response.status == 200 && response.text == "no")
                }
            }
        }
    }

    @Test("R80: a retry sends the upload again")
    func retried() async throws {
        let file = try TemporaryFile(size: 5_000_000)
        try await withFlow {
            $0.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .milliseconds(1), jitter: .none)
        } _: { server, agent in
            let busy = head("503 X", "Content-Length: 0\r\n")
            server.script(path: "/upload", uses: 1, [.send(busy), .reset])
            let call = HTTPRequest(.put, "/upload", body: .file(file.path))
            let reply = try await agent.send(call)
            #expect(reply.attempts == 2)
            #expect(server.requests.last?.bodyLength == 5_000_000)
        }
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
    }
}
