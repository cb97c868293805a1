import CFerry
import FerrySynchronization
import FerryTesting
import Testing

extension CoreTests {
    /// What accompanies a body: informational heads, trailers of a request, and a response that ends before it.
    @Suite struct Duplex {
        private func post(_ server: LoopbackServer, _ source: PullSource, _ flags: CoreRequest.Flags) -> CoreRequest {
            CoreRequest("POST", server.baseURL + "/x").with {
                $0.body = .pull(nil)
                $0.flags = flags
                $0.answer = .stream
                $0.onPull = { source.fill($0) }
            }
        }

        private static var native: CoreLoop.Options {
            var options = CoreLoop.Options()
            options.engine = FERRY_ENGINE_HTTP1
            return options
        }

        private func asks(_ text: String) -> @Sendable (UnsafeMutableRawBufferPointer) -> Int {
            { space in
                space.copyBytes(from: Array(text.utf8).prefix(space.count))
                return text.utf8.count
            }
        }

        @Test(arguments: [
            "X: 1", "X: 1\n", "X: 1\r\n\r\n", "X 1\r\n", ": 1\r\n", "X : 1\r\n", "X: a\rb\r\n", "X: \u{0}\r\n", "\r\n",
            "X: 1\r\nY", "X: 1\r\r\n",
        ]) func invalidTrailersAbortTheRequest(text: String) async throws {
            try await withCore { core, server in
                server.script(path: "/x", [.expectBody, .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")])
                var request = post(server, PullSource([1, 2, 3]), .trailers)
                request.onTrailers = asks(text)
                let result = try await core.run(request)
                #expect(result.fault == CoreFault(FERRY_E_UPLOAD_SOURCE) && result.status == 0)
                for wrong in [{ _ in FERRY_ABORT }, { $0.count + 1 }]
                    as [@Sendable (UnsafeMutableRawBufferPointer) -> Int]
                {
                    request.onTrailers = wrong
                    let result = try await core.run(request)
                    #expect(result.fault == CoreFault(FERRY_E_UPLOAD_SOURCE))
                }
            }
        }

        @Test func trailersRequireAChunkedBody() async throws {
            try await withCore { core, server in
                for body in [CoreRequest.Body.none, .bytes([1]), .pull(3)] {
                    var request = CoreRequest("POST", server.baseURL + "/x")
                    request.body = body
                    request.flags = .trailers
                    #expect(throws: CoreFault(FERRY_E_INVALID_REQUEST, FERRY_D_FRAMING)) {
                        _ = try core.submit(request)
                    }
                }
            }
        }

        @Test func libcurlCarriesNone() async throws {
            var options = CoreLoop.Options()
            options.engine = FERRY_ENGINE_LIBCURL
            let (core, server) = (try CoreLoop(options), try LoopbackServer())
            let result = try await core.run(post(server, PullSource([1, 2, 3]), .duplex))
            #expect(result.fault == CoreFault(FERRY_E_INVALID_REQUEST) && server.connectionCount == 0)
            await expectCleanStop(core)
        }

        @Test func theEndOfTheResponseIsReportedOnceBeforeThatOfTheRequest() async throws {
            try await withCore(Self.native) { core, server in
                server.script(
                    path: "/x",
                    [
                        .send(
                            "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                        ),
                        .send("2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"), .expectBody, .serve,
                    ])
                let source = PullSource(LoopbackServer.pattern(0..<100_000), pausesAt: 50_000)
                let id = try core.submit(post(server, source, [.duplex, .notifyInformational]))
                await core.record.until { record in
                    record.events[id, default: []].contains(.answered("X-T: 1\r\n"))
                }
                #expect(core.record.read { $0.results[id] } == nil)
                core.resumeSending(id)
                let result = await core.result(of: id)
                #expect(result.fault == .ok && result.bodySent == 100_000)
                let events = core.record.read { $0.events[id, default: []] }.filter { $0 != .pull }
                #expect(
                    events == [
                        .informational("HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n"), .head(status: 200), .body(2),
                        .answered("X-T: 1\r\n"), .finished,
                    ])
            }
        }

        @Test func withoutTheFlagTheEndIsNotReported() async throws {
            try await withCore { core, server in
                server.script(
                    path: "/x",
                    [
                        .send("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
                        .expectBody, .serve,
                    ])
                let request = post(server, PullSource(LoopbackServer.pattern(0..<1_000_000)), [])
                let id = try core.submit(request)
                let result = await core.result(of: id)
                #expect(result.fault == .ok)
                let events = core.record.read { $0.events[id, default: []] }.filter { $0 != .pull }
                #expect(events == [.head(status: 200), .body(2), .finished])
            }
        }

        private static func gzip(_ bytes: [UInt8]) throws -> [UInt8] {
            var encoder: OpaquePointer?
            try #require(ferry_encoder_make(Int32(FERRY_ENCODE_GZIP), &encoder) == FERRY_OK)
            let made = try #require(encoder)
            defer { ferry_encoder_free(made) }
            var (taken, count) = (0, 0)
            var out = [UInt8](repeating: 0, count: bytes.count + 100)
            try #require(ferry_encode(made, bytes, bytes.count, 1, &out, out.count, &taken, &count) == 1)
            return Array(out.prefix(count))
        }

        /// It arrives in one segment, and decodes to two pieces. The receiver pauses after each.
        @Test(arguments: [false, true]) func theEndOfACodedResponseIsReportedAfterTheLastPause(
            isCut: Bool
        ) async throws {
            try await withCore(Self.native) { core, server in
                let coded = Array(try Self.gzip([UInt8](repeating: 7, count: 100_000)).dropLast(isCut ? 4 : 0))
                let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(coded.count)\r\n\r\n"
                server.script(
                    path: "/x", [.sendBytes(Array(head.utf8) + coded), .expectBody, .serve])
                let ends = Atomic(false)
                let request = post(server, PullSource([]), [.duplex, .decode]).with {
                    $0.onBody = { _ in FERRY_PAUSE }
                    $0.onPull = { _ in ends.load(ordering: .relaxed) ? 0 : FERRY_PAUSE }
                }
                let id = try core.submit(request)
                await core.untilBody(id)
                for _ in 0..<2 {
                    core.resume(id)
                    await core.turn()
                }
                #expect(core.streamed(id).count == 100_000)
                // The cut is reported at once: the reader must not wait for the writer.
                if isCut {
                    await core.record.until { $0.results[id] != nil }
                } else {
                    await core.record.until { $0.events[id, default: []].contains(.answered("")) }
                    #expect(core.record.read { $0.results[id] } == nil)
                }
                ends.store(true, ordering: .relaxed)
                core.resumeSending(id)
                let result = await core.result(of: id)
                let cut = CoreFault(FERRY_E_CONTENT_DECODING, FERRY_D_DECODING_TRUNCATED)
                #expect(result.fault == (isCut ? cut : .ok))
            }
        }

        /// More of the response is there already: the receiver pauses again before the source could be asked.
        @Test(arguments: [FERRY_ENGINE_HTTP1, FERRY_ENGINE_LIBCURL], [false, true])
        func theSourceResumesAlthoughTheReceiverHasPausedAgain(engine: Int, isCoded: Bool) async throws {
            var options = CoreLoop.Options()
            options.engine = engine
            try await withCore(options) { core, server in
                let body = [UInt8](repeating: 7, count: isCoded ? 300_000 : 40_000)
                let sent = try isCoded ? Self.gzip(body) : body
                let coding = isCoded ? "Content-Encoding: gzip\r\n" : ""
                let head = "HTTP/1.1 200 OK\r\n\(coding)Content-Length: \(sent.count)\r\n\r\n"
                server.script(
                    path: "/x",
                    [.sendBytes(Array(head.utf8) + sent), .mark("sent"), .expectBody, .mark("read"), .serve])
                let source = PullSource(LoopbackServer.pattern(0..<100_000), piece: 10_000, pausesAt: 50_000)
                let request = CoreRequest("PUT", server.baseURL + "/x").with {
                    $0.body = .pull(100_000)
                    $0.answer = .stream
                    $0.flags = isCoded ? .decode : .holdBody
                    $0.deadline = 20_000
                    $0.onPull = { source.fill($0) }
                    $0.onBody = { _ in FERRY_PAUSE }
                }
                let id = try core.submit(request)
                try await server.waitForMark("sent")
                if isCoded { await core.untilBody(id) } else { await core.untilHead(id) }
                await core.record.until { state in (state.events[id] ?? []).count { $0 == .pull } >= 6 }
                for _ in 0..<20 { await core.turn() }
                let taken = core.streamed(id).count
                core.resume(id)
                await core.record.until { ($0.streamed[id]?.count ?? 0) > taken }
                core.resumeSending(id)
                await core.record.until { state in (state.events[id] ?? []).count { $0 == .pull } > 6 }
                // Our own engine has delivered bytes that are not coded in one piece, and may have ended by now.
                let isPaused = isCoded || engine == FERRY_ENGINE_LIBCURL
                #expect(!isPaused || core.streamed(id).count < body.count)
                while core.record.read({ $0.results[id] == nil }) {
                    core.resume(id)
                    await core.turn()
                }
                let result = await core.result(of: id)
                try #require(result.fault == .ok, "\(result.fault)")
                #expect(result.bodySent == 100_000 && core.streamed(id) == body)
                try await server.waitForMark("read")
            }
        }

        /// The receiver pauses after each piece, and resumes only as long as bytes are missing.
        @Test(arguments: [FERRY_ENGINE_HTTP1, FERRY_ENGINE_LIBCURL]) func aCodedStreamThatPausesAtItsLastPieceEnds(
            engine: Int
        ) async throws {
            var options = CoreLoop.Options()
            options.engine = engine
            try await withCore(options) { core, server in
                let body = [UInt8](repeating: 7, count: 300_000)
                let sent = try Self.gzip(body)
                let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(sent.count)\r\n\r\n"
                server.script(path: "/x", [.sendBytes(Array(head.utf8) + sent), .serve])
                let id = try core.submit(
                    CoreRequest("GET", server.baseURL + "/x").with {
                        $0.answer = .stream
                        $0.flags = .decode
                        $0.deadline = 20_000
                        $0.onBody = { _ in FERRY_PAUSE }
                    })
                await core.untilBody(id)
                while core.streamed(id).count < body.count {
                    let taken = core.streamed(id).count
                    core.resume(id)
                    await core.record.until { ($0.streamed[id]?.count ?? 0) > taken || $0.results[id] != nil }
                }
                let result = await core.result(of: id)
                #expect(result.fault == .ok && core.streamed(id) == body, "\(result.fault)")
            }
        }

        /// The receiver waits for the writer, and the writer for the server, which waits for the receiver.
        @Test func theIdleTimeoutCountsWhileNothingCanBeSentAndTheReceiverPauses() async throws {
            try await withCore(Self.native, seesClose: false) { core, server in
                server.script(
                    path: "/x", [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"), .wait("x")])
                let request = post(server, PullSource([UInt8](repeating: 7, count: 50_000_000)), .duplex).with {
                    $0.onBody = { _ in FERRY_PAUSE }
                    $0.idle = 300
                    $0.deadline = 10_000
                }
                let result = try await core.run(request)
                #expect(result.fault == .timeout(FERRY_D_TIMEOUT_READ), "\(result.fault)")
            }
        }

        /// A receiver that pauses may take any time, once everything is sent.
        @Test func theIdleTimeoutDoesNotCountWhileTheReceiverPausesAfterTheBody() async throws {
            try await withCore(Self.native) { core, server in
                server.script(
                    path: "/x",
                    [
                        .expectBody, .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"),
                        .wait("rest"), .send("2\r\nok\r\n0\r\n\r\n"), .serve,
                    ])
                let request = post(server, PullSource([1, 2, 3]), .duplex).with {
                    $0.onBody = { _ in FERRY_PAUSE }
                    $0.idle = 100
                }
                let id = try core.submit(request)
                await core.untilBody(id)
                try await core.pass(milliseconds: 400, server)
                #expect(core.record.read { $0.results[id] } == nil)
                server.signal("rest")
                core.resume(id)
                await core.record.until { $0.streamed[id]?.count == 4 }
                core.resume(id)
                #expect(await core.result(of: id).fault == .ok)
            }
        }

        /// A server that responds at once without 100 Continue reads the body beside its response.
        @Test func aSuccessEndsTheWaitForContinue() async throws {
            try await withCore(Self.native) { core, server in
                server.script(
                    path: "/x",
                    [
                        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .expectBody,
                        .send("2\r\nok\r\n0\r\n\r\n"), .serve,
                    ])
                var request = post(server, PullSource([1, 2, 3]), .duplex)
                request.add("Expect", "100-continue")
                request.idle = 2_000
                let result = try await core.run(request)
                #expect(result.fault == .ok && result.bodySent == 3, "\(result.fault)")
                #expect(core.streamed(result.id) == Array("ok".utf8))
            }
        }

        @Test func theIdleTimeoutCountsWhileTheSourceHasNothing() async throws {
            try await withCore(Self.native) { core, server in
                server.script(path: "/x", [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")])
                var request = post(server, PullSource([1, 2, 3], pausesAt: 3), .duplex)
                request.idle = 100
                let result = try await core.run(request)
                #expect(result.fault.code == FERRY_E_TIMEOUT)
            }
        }
    }
}
