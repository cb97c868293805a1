import FaultTable
import FerryTesting
import Testing

@testable import Ferry

/// Answers that come before the upload has ended: row R80.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct RefusedUploadFaultTests {
    enum Body: CaseIterable, Sendable {
        case memory, file, stream
    }

    private static let size = 50_000_000

    private func made(_ body: Body, _ file: TemporaryFile) -> RequestBody {
        switch body {
        case .memory: .bytes([UInt8](repeating: 0x61, count: Self.size))
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
        "R80: the answer to an upload that is not wanted is delivered, and not the reset behind it",
        arguments: Body.allCases, ["413 Content Too Large", "404 Not Found"])
    func refused(body: Body, status: String) async throws {
        let file = try TemporaryFile(size: Self.size)
        let code = Int(status.prefix(3)) ?? 0
        for answer in Self.answers(status) {
            for begins in [0, 1_000_000] {
                let script: LoopbackScript = [.expectHead, .expectBytes(begins), .send(answer), .reset]
                // What is held behind its head, or read piece by piece, may go with the reset: the status does not.
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

    @Test("R80: so is one that says all is well", arguments: Body.allCases)
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

    /// What waits to be taken lies in libcurl, which throws it away with its connection.
    @Test("R80: one that is read as it comes begins at least, and is whole or an error", arguments: Body.allCases)
    func acceptedAsItComes(body: Body) async throws {
        let file = try TemporaryFile(size: Self.size)
        var setup = FaultSetup()
        setup.probe.method = .post
        setup.probe.body = made(body, file)
        setup.forms = [.streamed, .download]
        for answer in Self.answers("200 OK") {
            let script: LoopbackScript = [.expectHead, .expectBytes(1_000_000), .send(answer), .reset]
            try await forEachPlay(script, setup, #_sourceLocation) { play, outcome, stage in
                switch outcome {
                case .success(let answer): #expect(answer.status == 200 && answer.text == "no", "\(play)")
                case .failure(let error):
                    #expect(error.code == .connectionReset && error.phase == .body, "\(play): \(error)")
                    #expect(error.mayHaveBeenProcessed)
                }
                #expect(stage.server.requests.count { $0.path == "/fault" } == 1)
                return FaultNote.held
            }
        }
    }

    @Test("R80: a retry of it sends the upload anew")
    func retried() async throws {
        let file = try TemporaryFile(size: 5_000_000)
        try await withFlow {
            $0.retryPolicy = .exponential(attempts: 2, base: .milliseconds(1), jitter: .none)
        } _: { server, agent in
            let busy = head("503 X", "Content-Length: 0\r\n")
            server.script(path: "/upload", uses: 1, [.send(busy), .reset])
            var call = Call("/upload", method: .put)
            call.body = .file(file.path)
            let reply = try await agent.send(call)
            #expect(reply.attempts == 2)
            #expect(server.requests.last?.bodyLength == 5_000_000)
        }
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
    }
}
