import CFerry
import FerrySynchronization
import FerryTesting
import Testing

extension CoreTests {
    /// Responses that arrive while the source of an upload has no bytes, or before they are expected.
    @Suite struct EarlyAnswers {
        /// Provides three bytes, and then none for ever.
        private func starving(_ server: LoopbackServer, idle: Int = 60_000) -> CoreRequest {
            let left = Mutex(3)
            return CoreRequest("POST", server.baseURL + "/early").with {
                $0.idle = idle
                $0.body = .pull(1_000)
                $0.onPull = { space in
                    left.withLock { left in
                        if left == 0 { return FERRY_PAUSE }
                        space.copyBytes(from: [UInt8](repeating: 0x61, count: left))
                        defer { left = 0 }
                        return left
                    }
                }
            }
        }

        private static let answers = [
            "Content-Length: 2\r\n\r\nno", "Transfer-Encoding: chunked\r\n\r\n1\r\nn\r\n1\r\no\r\n0\r\n\r\n",
            "Connection: close\r\nContent-Length: 2\r\n\r\nno", "Content-Length: 0\r\n\r\n",
        ]

        private func expectAnswer(_ result: CoreResult, _ status: Int, _ answer: String) {
            #expect(result.fault == .ok && result.status == status, "\(result.fault) \(result.message ?? "")")
            #expect(result.text == (answer.contains(" 0\r\n\r\n") ? "" : "no"))
            #expect(result.isProcessed && result.bodySent <= 3 && result.phase == FERRY_PHASE_DONE)
        }

        /// RFC 9112, 9.6: the server announces that it will close, and reads the request before it does.
        @Test(arguments: ["Connection: close\r\nContent-Length: 2\r\n\r\n", "Connection: close\r\n\r\n"])
        func anUploadGoesOnBesideASuccessOfAServerThatWillClose(head: String) async throws {
            try await withCore { core, server in
                server.script(
                    path: "/early",
                    [.expectHead, .send("HTTP/1.1 200 OK\r\n" + head), .expectBody, .send("ok"), .close])
                let request = CoreRequest("POST", server.baseURL + "/early").with {
                    $0.body = .bytes([UInt8](repeating: 0x61, count: 8_000_000))
                    $0.idle = 10_000
                }
                let result = try await core.run(request)
                #expect(result.fault == .ok && result.status == 200 && result.text == "ok", "\(result.fault)")
                #expect(result.bodySent == 8_000_000)
            }
        }

        /// The response is complete, and only the server's reading is missing.
        @Test func aServerThatNoLongerReadsHasAnswered() async throws {
            try await withCore(seesClose: false) { core, server in
                server.script(
                    path: "/early",
                    [
                        .expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"), .stopReading,
                    ])
                let request = CoreRequest("PUT", server.baseURL + "/early").with {
                    $0.body = .bytes([UInt8](repeating: 0x61, count: 50_000_000))
                    $0.idle = 300
                }
                let result = try await core.run(request)
                #expect(result.fault == .ok && result.status == 200 && result.text == "no", "\(result.fault)")
                #expect(result.bodySent < 50_000_000)
            }
        }

        /// The end of the connection is not that of the response, though nobody waits for the rest of the request.
        @Test(arguments: [
            "Content-Length: 9\r\n\r\nno", "Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n",
            "Transfer-Encoding: chunked\r\n\r\n9\r\nno",
        ])
        func aTruncatedResponseToAnUploadThatWaitsIsAnError(answer: String) async throws {
            try await withCore { core, server in
                server.script(
                    path: "/early", [.expectHead, .expectBytes(3), .send("HTTP/1.1 200 OK\r\n" + answer), .close])
                let result = try await core.run(starving(server, idle: 2_000))
                #expect(result.fault == CoreFault(FERRY_E_INCOMPLETE_BODY) && result.status == 200, "\(result.fault)")
                #expect(result.body == nil)
            }
        }

        @Test(
            "a response is delivered although the source never provides its bytes", arguments: answers + ["\r\nno"],
            ["413 Content Too Large", "200 OK"])
        func aClosedConnectionIsTheEnd(answer: String, status: String) async throws {
            try await withCore { core, server in
                server.script(
                    path: "/early", [.expectHead, .expectBytes(3), .send("HTTP/1.1 \(status)\r\n" + answer), .close])
                let code = Int(status.prefix(3))!
                expectAnswer(try await core.run(starving(server)), code, answer)
                // A response that is streamed, and held after its head.
                let streamed = starving(server).with {
                    $0.answer = .stream
                    $0.flags.insert(.holdBody)
                }
                let id = try core.submit(streamed)
                await core.untilHead(id)
                for _ in 0..<10 { await core.turn() }
                #expect(core.streamed(id).isEmpty)
                core.resume(id)
                let result = await core.result(of: id)
                #expect(result.fault == .ok && result.status == code, "\(result.fault)")
                #expect(core.streamed(id) == Array((answer.contains(" 0\r\n\r\n") ? "" : "no").utf8))
            }
        }

        @Test("a response that refuses the upload ends the transfer", arguments: answers)
        func refusalsOnOpenConnections(answer: String) async throws {
            try await withCore { core, server in
                server.script(
                    path: "/early", [.expectHead, .expectBytes(3), .send("HTTP/1.1 413 No\r\n" + answer), .keepOpen])
                expectAnswer(try await core.run(starving(server)), 413, answer)
            }
        }

        @Test("a successful response waits for the source until the idle time", arguments: answers)
        func acceptedOnOpenConnections(answer: String) async throws {
            try await withCore { core, server in
                server.script(
                    path: "/early", [.expectHead, .expectBytes(3), .send("HTTP/1.1 200 OK\r\n" + answer), .keepOpen])
                expectAnswer(try await core.run(starving(server, idle: 150)), 200, answer)
            }
        }

        @Test("without a response the close ends a request whose source has nothing", arguments: [true, false])
        func closedWithoutAnAnswer(isHalf: Bool) async throws {
            try await withCore { core, server in
                let close: [LoopbackScript.Step] = isHalf ? [.halfClose, .expectClose] : [.close]
                server.script(path: "/early", LoopbackScript([.expectHead, .expectBytes(3)] + close))
                let request = starving(server, idle: 20_000).with { $0.deadline = 10_000 }
                let result = try await core.run(request)
                #expect(result.fault == CoreFault(FERRY_E_CONNECTION_CLOSED) && result.status == 0, "\(result.fault)")
            }
        }

        @Test("a source that resumes in time sends the rest", arguments: answers.filter { !$0.contains("close") })
        func theUploadGoesOn(answer: String) async throws {
            try await withCore { core, server in
                server.script(
                    path: "/early",
                    [
                        .expectHead, .send("HTTP/1.1 200 OK\r\n" + answer), .mark("sent"), .expectBody, .mark("read"),
                        .serve,
                    ]
                )
                let source = PullSource(LoopbackServer.pattern(0..<100_000), piece: 10_000, pausesAt: 50_000)
                let id = try core.submit(
                    CoreRequest("PUT", server.baseURL + "/early").with {
                        $0.body = .pull(100_000)
                        $0.onPull = { source.fill($0) }
                    })
                try await server.waitForMark("sent")
                try await server.waitForReceivedBytes(50_000)
                for _ in 0..<20 { await core.turn() }
                #expect(core.record.read { $0.results[id] } == nil)
                core.resumeSending(id)
                let result = await core.result(of: id)
                #expect(result.fault == .ok && result.status == 200 && result.bodySent == 100_000)
                // The response does not show how much the server has read.
                try await server.waitForMark("read")
                #expect(server.requests.first { $0.path == "/early" }?.bodyLength == 100_000)
            }
        }

        /// libcurl is done with it; the bytes that its rate holds back are in the core, and its limits still apply.
        @Test func anAnswerThatIsHeldByItsRateKeepsItsDeadline() async throws {
            try await withCore { core, server in
                let body = String(repeating: "x", count: 40_000)
                server.script(
                    path: "/early",
                    [.expectHead, .expectBytes(3), .send(answer(body, status: "413 Content Too Large")), .keepOpen])
                // The idle time causes a check while its rate still owes for its first 16 KB, for 8 seconds.
                let request = starving(server, idle: 50).with {
                    $0.maxRate = 2_000
                    $0.deadline = 1_500
                }
                let result = try await core.run(request)
                #expect(result.fault == .timeout(FERRY_D_TIMEOUT_DEADLINE), "\(result.fault)")
                #expect(result.status == 413 && result.body == nil)
            }
        }

        @Test func anAnswerThatIsHeldByItsRateComesWhole() async throws {
            try await withCore { core, server in
                let body = String(repeating: "x", count: 40_000)
                server.script(
                    path: "/early",
                    [.expectHead, .expectBytes(3), .send(answer(body, status: "413 Content Too Large")), .keepOpen])
                let result = try await core.run(starving(server, idle: 20).with { $0.maxRate = 100_000 })
                #expect(result.fault == .ok && result.status == 413 && result.text == body, "\(result.fault)")
            }
        }

        /// The reset meets a response that is not expected yet.
        @Test(arguments: [
            "Content-Length: 2\r\n\r\nno", "Transfer-Encoding: chunked\r\n\r\n1\r\nn\r\n1\r\no\r\n0\r\n\r\n",
        ])
        func anAnswerThatIsHeldOutlivesItsConnection(answer: String) async throws {
            try await withCore { core, server in
                server.script(
                    path: "/held",
                    [.expectHead, .expectBytes(1_000_000), .send("HTTP/1.1 200 OK\r\n" + answer), .reset])
                for _ in 0..<10 {
                    let id = try core.submit(
                        CoreRequest("POST", server.baseURL + "/held").with {
                            $0.answer = .stream
                            $0.flags.insert(.holdBody)
                            $0.body = .bytes([UInt8](repeating: 7, count: 50_000_000))
                        })
                    await core.untilHead(id)
                    await core.untilStatistics { $0.sockets == 0 }
                    #expect(core.streamed(id).isEmpty && core.record.read { $0.results[id] } == nil)
                    core.resume(id)
                    let result = await core.result(of: id)
                    #expect(result.fault == .ok && result.status == 200, "\(result.fault)")
                    #expect(core.streamed(id) == Array("no".utf8) && result.bodyReceived == 2)
                }
            }
        }

        /// The idle time takes it out of libcurl, as its source may never resume; later its receiver does not.
        @Test func theDeadlineOfAWholeAnswerThatIsHeldIsKept() async throws {
            try await withCore { core, server in
                server.script(
                    path: "/early",
                    [
                        .expectHead, .expectBytes(3), .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"),
                        .wait("more"), .send("world"), .keepOpen,
                    ])
                let request = starving(server, idle: 200).with {
                    $0.answer = .stream
                    $0.onBody = { _ in FERRY_PAUSE }
                    $0.deadline = 1_000
                }
                let id = try core.submit(request)
                await core.untilBody(id)
                server.signal("more")
                let result = await core.result(of: id)
                #expect(result.fault == .timeout(FERRY_D_TIMEOUT_DEADLINE), "\(result.fault)")
                #expect(core.streamed(id) == Array("hello".utf8))
            }
        }
    }
}
