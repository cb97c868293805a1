import CFerry
import FerrySynchronization
import FerryTesting
import Testing

extension CoreTests {
    /// A server that responds during an upload, and then resets the connection.
    @Suite struct RefusedUploads {
        /// More than the sockets' buffers take.
        private static let large = [UInt8](repeating: 7, count: 50 * 1_048_576)

        private func upload(_ server: LoopbackServer, isPulled: Bool) -> CoreRequest {
            CoreRequest("POST", server.baseURL + "/refused").with {
                $0.idle = 5_000
                if !isPulled {
                    $0.body = .bytes(Self.large)
                    return
                }
                let left = Mutex(50 * 1_048_576)
                $0.body = .pull(50 * 1_048_576)
                $0.onPull = { space in
                    left.withLock { left in
                        let count = min(left, space.count)
                        left -= count
                        return count
                    }
                }
            }
        }

        @Test(
            arguments: [
                answer("no", status: "413 Content Too Large", "Connection: close"),
                "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nn\r\n1;a=b\r\no\r\n0\r\nX: y\r\n\r\n",
                "HTTP/1.1 100 Continue\r\n\r\n" + answer("no", status: "403 Forbidden"),
            ], [false, true])
        func theAnswerIsDelivered(answer: String, isPulled: Bool) async throws {
            try await withCore { core, server in
                server.script(path: "/refused", [.expectHead, .send(answer), .reset])
                let status = answer.contains("413") ? 413 : answer.contains("404") ? 404 : 403
                for round in 0..<25 {
                    let result = try await core.run(upload(server, isPulled: isPulled))
                    #expect(result.fault == .ok && result.status == status, "\(round): \(result.fault)")
                    #expect(result.text == "no" && result.isProcessed)
                    #expect(result.bodySent < 50 * 1_048_576)
                }
                // None of these connections is reused.
                #expect(server.connectionCount == 25)
            }
        }

        @Test func afterSomeOfItWasRead() async throws {
            try await withCore { core, server in
                server.script(
                    path: "/refused",
                    [.expectHead, .expectBytes(3_000_000), .send(answer("no", status: "413 Content Too Large")), .drop])
                for round in 0..<10 {
                    let result = try await core.run(upload(server, isPulled: round % 2 == 0))
                    #expect(result.fault == .ok && result.status == 413 && result.text == "no", "\(round)")
                    #expect(result.bodySent >= 3_000_000 - 300_000)
                }
            }
        }

        /// The informational response is read before the final one has been sent.
        @Test(arguments: ["100 Continue", "103 Early Hints"]) func afterAnInformationalResponse(
            status: String
        ) async throws {
            try await withCore { core, server in
                server.script(
                    path: "/refused",
                    [
                        .expectHead, .send("HTTP/1.1 \(status)\r\n\r\n"), .expectBytes(1_000_000),
                        .send(answer("no", status: "413 Content Too Large")), .reset,
                    ])
                for round in 0..<25 {
                    let request = upload(server, isPulled: round % 2 == 0).with {
                        if status.hasPrefix("100") { $0.add("Expect", "100-continue") }
                    }
                    let result = try await core.run(request)
                    #expect(result.fault == .ok && result.status == 413, "\(round): \(result.fault)")
                    #expect(result.text == "no")
                }
            }
        }

        /// It comes when the body is on its way, and libcurl may meet the reset before it.
        @Test(arguments: [FERRY_ENGINE_HTTP1, FERRY_ENGINE_LIBCURL])
        func aLateRefusalOfTheExpectationRepeatsTheRequest(engine: Int) async throws {
            var options = CoreLoop.Options()
            options.engine = engine
            try await withCore(options) { core, server in
                let body = [UInt8](repeating: 7, count: 16 * 1_048_576)
                for round in 0..<25 {
                    server.script(
                        path: "/refused", uses: 1,
                        [
                            .expectHead, .send("HTTP/1.1 100 Continue\r\n\r\n"), .expectBytes(1_000_000),
                            .send(answer("no", status: "417 Expectation Failed")), .reset,
                        ])
                    server.script(
                        path: "/refused", uses: 1,
                        [.expectHead, .expectBody, .send(answer("ok", status: "200 OK", "Connection: close")), .close])
                    let request = CoreRequest("POST", server.baseURL + "/refused").with {
                        $0.body = .bytes(body)
                        $0.idle = 5_000
                        $0.add("Expect", "100-continue")
                    }
                    let result = try await core.run(request)
                    #expect(result.fault == .ok && result.status == 200, "\(round): \(result.fault)")
                    #expect(result.text == "ok" && result.attempts == 2, "\(round)")
                    let expectations = server.requests.suffix(2).map { $0.headers["Expect"] }
                    #expect(expectations == ["100-continue", nil], "\(round)")
                }
            }
        }

        /// libcurl continues sending after these, until the reset.
        @Test(arguments: [
            "200 OK\r\nContent-Length: 0\r\n\r\n", "204 No Content\r\n\r\n",
            "201 Created\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ])
        func oneThatIsWelcomeToo(answer: String) async throws {
            try await withCore { core, server in
                server.script(
                    path: "/refused", [.expectHead, .expectBytes(1_000_000), .send("HTTP/1.1 " + answer), .reset])
                for round in 0..<10 {
                    let result = try await core.run(upload(server, isPulled: round % 2 == 0))
                    #expect(result.fault == .ok && result.status == Int(answer.prefix(3)), "\(result.fault)")
                    #expect(result.text == (answer.contains("ok") ? "ok" : ""))
                }
                #expect(server.connectionCount == 10)
            }
        }

        @Test func underTLSToo() async throws {
            try await withSecureCore(probes: true) { core, server in
                // An RST discards what OpenSSL has not read: it comes after the head has been read.
                for round in 0..<5 {
                    server.script(
                        path: "/refused", uses: 1,
                        [
                            .expectHead, .send(answer("no", status: "413 Content Too Large")), .wait("\(round)"),
                            .drop,
                        ])
                    let request = upload(server, isPulled: round % 2 == 0).with { $0.flags.insert(.notifyHead) }
                    let id = try core.submit(request)
                    await core.untilHead(id)
                    server.signal("\(round)")
                    let result = await core.result(of: id)
                    #expect(result.fault == .ok && result.status == 413 && result.text == "no", "\(round)")
                }
            }
        }

        @Test func aStreamedAnswerToo() async throws {
            try await withCore { core, server in
                server.script(path: "/refused", [.expectHead, .send(answer("no", status: "404 Not Found")), .reset])
                for _ in 0..<10 {
                    let result = try await core.run(upload(server, isPulled: true).with { $0.answer = .stream })
                    #expect(result.fault == .ok && result.status == 404)
                    #expect(core.events(result.id).count { $0 == .head(status: 404) } == 1)
                    #expect(core.streamed(result.id) == Array("no".utf8))
                }
            }
        }

        /// The same is refused whether libcurl reads it or the core after it.
        @Test(
            arguments: [
                ("\u{12}\r\nno\r\n0\r\n\r\n", FERRY_D_CHUNK), ("2\r\nno\r\n0\r\nno colon\r\n\r\n", FERRY_D_TRAILER),
                ("2\r\nno\r\n0\r\nX-T: a\u{1}\r\n\r\n", FERRY_D_TRAILER),
            ])
        func whatBreaksTheRulesIsRefused(chunks: String, detail: Int) async throws {
            try await withCore { core, server in
                let answer = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
                server.script(path: "/refused", [.expectHead, .send(answer), .reset])
                for round in 0..<25 {
                    let result = try await core.run(upload(server, isPulled: round % 2 == 0))
                    // An invalid chunk makes a late response invalid.
                    let isReset = result.fault == CoreFault(FERRY_E_CONNECTION_RESET)
                    #expect(
                        result.fault == .malformed(detail) || (isReset && detail == FERRY_D_CHUNK),
                        "\(round): \(result.fault)")
                    #expect(result.body == nil)
                }
            }
        }

        @Test func endlessTrailersAreRefused() async throws {
            try await withCore { core, server in
                server.script(
                    path: "/refused",
                    [
                        .expectHead,
                        .send("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n"),
                        .repeating("X-T: 1\r\n", times: 5_000), .send("\r\n"), .reset,
                    ])
                for round in 0..<10 {
                    let result = try await core.run(upload(server, isPulled: round % 2 == 0))
                    #expect(result.fault == CoreFault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES), "\(result.fault)")
                }
            }
        }

        @Test(arguments: ["HTTP/1.1 413 No\r\nContent-Length: 100\r\n\r\nno", "HTTP/1.1 413 No\r\nConte", ""])
        func halfAnAnswerIsNone(half: String) async throws {
            try await withCore { core, server in
                server.script(path: "/refused", [.expectHead, .send(half), .reset])
                for round in 0..<10 {
                    let result = try await core.run(upload(server, isPulled: round % 2 == 0))
                    #expect(result.fault == CoreFault(FERRY_E_CONNECTION_RESET), "\(result.fault)")
                    #expect(result.body == nil)
                }
            }
        }
    }
}
