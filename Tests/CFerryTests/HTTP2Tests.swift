import CFerry
import FerryTesting
import Testing

/// Frames of RFC 9113, and the bytes that a client sends before its first request.
enum Frame {
    static func make(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        let length = UInt32(payload.count)
        return [UInt8(length >> 16 & 0xff), UInt8(length >> 8 & 0xff), UInt8(length & 0xff), type, flags]
            + big(stream) + payload
    }

    static func big(_ value: UInt32) -> [UInt8] {
        [UInt8(value >> 24), UInt8(value >> 16 & 0xff), UInt8(value >> 8 & 0xff), UInt8(value & 0xff)]
    }

    static let settings = make(4, 0, 0, [])

    /// Status 200 and these fields, none of them indexed.
    static func headers(_ stream: UInt32, _ fields: [(String, String)] = [], isLast: Bool = false) -> [UInt8] {
        var block: [UInt8] = [0x88]
        for (name, value) in fields {
            block += [0, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)] + Array(value.utf8)
        }
        return make(1, isLast ? 5 : 4, stream, block)
    }

    static func data(_ stream: UInt32, _ text: String, isLast: Bool = true) -> [UInt8] {
        make(0, isLast ? 1 : 0, stream, Array(text.utf8))
    }

    static func reset(_ stream: UInt32, _ code: UInt32) -> [UInt8] { make(3, 0, stream, big(code)) }
    static func goAway(_ last: UInt32, _ code: UInt32 = 0) -> [UInt8] { make(7, 0, 0, big(last) + big(code)) }

    /// Preface, settings, window, and the start of the first request.
    static let opening = 24 + 27 + 13 + 9 + 5
}

extension CoreTests {
    /// HTTP/2 by prior knowledge, against frames that a script sends.
    @Suite struct HTTP2 {
        private func withFrames(
            _ body: (CoreLoop, LoopbackServer) async throws -> Void
        ) async throws {
            var options = CoreLoop.Options()
            options.http2 = FERRY_HTTP2_PRIOR_KNOWLEDGE
            try await withHTTP2Core(options, body)
        }

        private func withHTTP2Core(
            _ options: CoreLoop.Options, _ body: (CoreLoop, LoopbackServer) async throws -> Void
        ) async throws {
            let server = try LoopbackServer()
            defer { server.stop() }
            let core = try CoreLoop(options)
            try await body(core, server)
            await expectCleanStop(core)
            try await server.waitForOpenConnections(atMost: 0)
        }

        private func script(_ frames: [UInt8]...) -> LoopbackScript {
            LoopbackScript([.expectBytes(Frame.opening), .sendBytes(Frame.settings + frames.flatMap { $0 })])
        }

        private func get(_ server: LoopbackServer, _ method: String = "GET") -> CoreRequest {
            CoreRequest(method, server.baseURL + "/x").with {
                $0.idle = 3_000
                if method == "POST" { $0.body = .bytes([1, 2, 3]) } else { $0.flags = .idempotent }
            }
        }

        @Test func anAnswer() async throws {
            try await withFrames { core, server in
                server.script(script(Frame.headers(1, [("content-type", "text/plain")]), Frame.data(1, "Hello")))
                let result = try await core.run(get(server))
                #expect(result.fault == .ok && result.status == 200 && result.version == 20, "\(result.fault)")
                #expect(result.text == "Hello" && result.values("Content-Type") == ["text/plain"])
                #expect(result.attempts == 1 && !result.isReused)
            }
        }

        /// Frames of the connection, or of others on it, do not count as activity of this one.
        @Test func pingsDoNotKeepAStreamFromItsIdleTime() async throws {
            try await withFrames { core, server in
                var steps: [LoopbackScript.Step] = [.expectBytes(Frame.opening), .sendBytes(Frame.settings)]
                for _ in 0..<20 {
                    steps += [.pause(.milliseconds(50)), .sendBytes(Frame.make(6, 0, 0, [0, 1, 2, 3, 4, 5, 6, 7]))]
                }
                steps += [.sendBytes(Frame.headers(1) + Frame.data(1, "late"))]
                server.script(LoopbackScript(steps))
                let result = try await core.run(get(server).with { $0.idle = 300 })
                #expect(result.fault == .timeout(FERRY_D_TIMEOUT_RESPONSE_HEAD), "\(result.fault)")
            }
        }

        @Test(
            arguments: [
                (2, FERRY_D_HTTP2_INTERNAL), (8, FERRY_D_HTTP2_CANCEL), (11, FERRY_D_HTTP2_ENHANCE_YOUR_CALM),
                (3, FERRY_D_HTTP2_OTHER),
            ] as [(UInt32, Int)], [0, 1, 2])
        func aStreamThatIsReset(code: (UInt32, Int), after: Int) async throws {
            for method in ["GET", "POST"] {
                try await withFrames { core, server in
                    let before = after == 0 ? [] : Frame.headers(1)
                    let some = after == 2 ? Frame.data(1, "some", isLast: false) : []
                    server.script(script(before, some, Frame.reset(1, code.0)))
                    let result = try await core.run(get(server, method))
                    #expect(result.fault == CoreFault(FERRY_E_HTTP2_STREAM, code.1), "\(result.message ?? "")")
                    #expect(result.isProcessed && result.attempts == 1)
                }
            }
        }

        @Test(arguments: ["GET", "POST"])
        func aServerThatWantsTheOlderProtocol(method: String) async throws {
            try await withFrames { core, server in
                server.script(connection: 1, script(Frame.reset(1, 13)))
                let result = try await core.run(
                    get(server, method).with { $0.url = Array((server.baseURL + "/hello").utf8) })
                #expect(result.fault == .ok && result.version == 11 && result.attempts == 2, "\(result.fault)")
            }
        }

        @Test(arguments: ["GET", "POST"])
        func aStreamThatIsAlwaysRefused(method: String) async throws {
            try await withFrames { core, server in
                server.script(script(Frame.reset(1, 7)))
                let result = try await core.run(get(server, method))
                #expect(result.fault == CoreFault(FERRY_E_HTTP2_STREAM, FERRY_D_HTTP2_REFUSED), "\(result.fault)")
                #expect(!result.isProcessed && result.attempts == 3 && server.connectionCount <= 4)
            }
        }

        @Test(arguments: ["GET", "POST"])
        func aStreamThatIsRefusedOnce(method: String) async throws {
            try await withFrames { core, server in
                server.script(connection: 1, script(Frame.reset(1, 7)))
                server.script(connection: 2, script(Frame.headers(1), Frame.data(1, "second")))
                let result = try await core.run(get(server, method))
                #expect(result.fault == .ok && result.text == "second" && result.attempts == 2)
            }
        }

        @Test(arguments: ["GET", "POST"], [false, true])
        func aServerThatGoesAwayWithoutALook(method: String, closes: Bool) async throws {
            try await withFrames { core, server in
                let last: [LoopbackScript.Step] = closes ? [.close] : []
                server.script(
                    connection: 1,
                    LoopbackScript([.expectBytes(Frame.opening), .sendBytes(Frame.settings + Frame.goAway(0))] + last))
                server.script(connection: 2, script(Frame.headers(1), Frame.data(1, "second")))
                let result = try await core.run(get(server, method))
                #expect(result.fault == .ok && result.text == "second", "\(result.fault) \(result.message ?? "")")
                #expect(result.attempts == 2 && server.connectionCount == 2)
            }
        }

        /// A server that reloads ends its kept connections, and a process of it that is about to end may still take a
        /// new one.
        @Test(arguments: ["GET", "POST"])
        func aServerThatGoesAwayTwice(method: String) async throws {
            try await withFrames { core, server in
                let away: [LoopbackScript.Step] = [
                    .expectBytes(Frame.opening), .sendBytes(Frame.settings + Frame.goAway(0)), .close,
                ]
                for number in 1...2 { server.script(connection: number, LoopbackScript(away)) }
                server.script(connection: 3, script(Frame.headers(1), Frame.data(1, "third")))
                let result = try await core.run(get(server, method))
                #expect(result.fault == .ok && result.text == "third", "\(result.fault) \(result.message ?? "")")
                #expect(result.attempts == 3 && server.connectionCount == 3)
            }
        }

        @Test(arguments: ["GET", "POST"])
        func aServerThatAlwaysGoesAway(method: String) async throws {
            try await withFrames { core, server in
                server.script(
                    LoopbackScript([.expectBytes(Frame.opening), .sendBytes(Frame.settings + Frame.goAway(0)), .close]))
                let result = try await core.run(get(server, method))
                #expect(result.fault == CoreFault(FERRY_E_HTTP2_STREAM, FERRY_D_HTTP2_REFUSED), "\(result.fault)")
                #expect(!result.isProcessed && result.attempts == 3 && server.connectionCount == 3)
            }
        }

        @Test func aPostThatMayHaveBeenLookedAtIsNotSentAgain() async throws {
            try await withFrames { core, server in
                server.script(
                    LoopbackScript([
                        .expectBytes(Frame.opening), .sendBytes(Frame.settings + Frame.goAway(1)), .close,
                    ]))
                let result = try await core.run(get(server, "POST"))
                #expect(result.fault != .ok && result.isProcessed && server.connectionCount == 1, "\(result.fault)")
            }
        }

        /// Some versions of libcurl have no message for that, as for a refused stream. (7.88 keeps no HTTP/2 connection
        /// without TLS.)
        @Test func aKeptConnectionThatBreaksIsNoRefusal() async throws {
            try await withFrames { core, server in
                server.script(
                    LoopbackScript([
                        .expectBytes(Frame.opening),
                        .sendBytes(Frame.settings + Frame.headers(1) + Frame.data(1, "first")),
                        .expectBytes(40), .close,
                    ]))
                #expect(try await core.run(get(server)).text == "first")
                let result = try await core.run(get(server, "POST"))
                #expect(result.fault == .ok ? !result.isReused : result.isProcessed, "\(result.fault)")
                #expect(result.attempts == 1 && server.connectionCount == (result.fault == .ok ? 2 : 1))
            }
        }

        @Test(arguments: ["Hel", "Hello, ferry and more"])
        func aLengthThatIsNotTheBodys(body: String) async throws {
            try await withFrames { core, server in
                server.script(script(Frame.headers(1, [("content-length", "10")]), Frame.data(1, body)))
                let result = try await core.run(get(server))
                #expect(result.fault == .malformed(FERRY_D_NONE), "\(result.fault) \(result.message ?? "")")
                #expect(result.body == nil)
            }
        }

        @Test(arguments: ["a\r\nEvil: 1", "a\nb", "a\u{0}b"])
        func controlBytesInAField(value: String) async throws {
            try await withFrames { core, server in
                server.script(script(Frame.headers(1, [("x-odd", value)]), Frame.data(1, "Hello")))
                let result = try await core.run(get(server))
                #expect(result.code == FERRY_E_MALFORMED_RESPONSE, "\(result.fault) \(result.message ?? "")")
            }
        }

        @Test func aServerThatDoesNotSpeakIt() async throws {
            try await withFrames { core, server in
                for text in ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""] {
                    server.script([.expectBytes(24), .send(text), .close])
                    let result = try await core.run(get(server))
                    #expect(result.fault != .ok && result.status == 0, "\(result.fault)")
                }
            }
        }

        @Test func withoutItNothingChanges() async throws {
            for http2 in [FERRY_HTTP2_NEVER, FERRY_HTTP2_NEGOTIATED] {
                var options = CoreLoop.Options()
                options.http2 = http2
                try await withCore(options) { core, server in
                    let result = try await core.get(server.baseURL + "/hello")
                    #expect(result.fault == .ok && result.version == 11)
                }
                try await withSecureCore({ options, _ in options.http2 = http2 }, probes: true) { core, server in
                    for round in 0..<2 {
                        let result = try await core.get(server.baseURL + "/hello")
                        #expect(result.fault == .ok && result.version == 11 && result.isReused == (round == 1))
                    }
                    let pulled = try await core.run(
                        CoreRequest("POST", server.baseURL + "/echo/body").with {
                            let source = PullSource([1, 2, 3], piece: 2)
                            $0.body = .pull(nil)
                            $0.onPull = { source.fill($0) }
                        })
                    #expect(pulled.fault == .ok && pulled.body == [1, 2, 3])
                }
            }
        }

        @Test func theGuardStillHoldsForHTTP1() async throws {
            try await withSecureCore({ options, _ in options.http2 = FERRY_HTTP2_NEGOTIATED }, probes: true) {
                core, server in
                server.script(
                    path: "/first", [.send(answer("first")), .wait("go"), .send(answer("POISON")), .mark("sent")])
                _ = try await core.get(server.baseURL + "/first")
                server.signal("go")
                try await server.waitForMark("sent")
                let next = try await core.get(server.baseURL + "/hello")
                #expect(next.text == "Hello, ferry")
            }
        }
    }
}
