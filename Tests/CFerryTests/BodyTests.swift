import CFerry
import FerryTesting
import Foundation
import Testing

extension CoreTests {
    /// Collected bodies and their limits.
    @Suite struct Bodies {
        @Test(arguments: [0, 1, 63, 1_024, 1_025, 16_384, 65_536, 300_000, 5_000_000])
        func everySizeArrivesWithSpareBytesBehindIt(size: Int) async throws {
            try await withCore { core, server in
                for path in ["/bytes/\(size)", "/chunked/\(size)", "/until-close/\(size)"] {
                    let result = try await core.get(server.baseURL + path)
                    #expect(result.fault == .ok, "\(path)")
                    #expect(result.bodyLength == UInt64(size) && result.bodyReceived == UInt64(size))
                    #expect(result.body ?? [] == LoopbackServer.pattern(0..<size))
                    #expect((result.body == nil) == (size == 0))
                    if size > 0 { #expect(result.spare == Array(repeating: 0, count: 64)) }
                    #expect(result.isCloseFramed == path.hasPrefix("/until"))
                    #expect(result.contentLength == (path.hasPrefix("/bytes") ? Int64(size) : -1))
                }
            }
        }

        @Test(arguments: ["204 No Content", "304 Not Modified"])
        func statusesWithoutABodyHaveNoneWhateverTheirLength(status: String) async throws {
            try await withCore { core, server in
                server.script(path: "/none", [.send("HTTP/1.1 \(status)\r\nContent-Length: 5\r\n\r\n"), .serve])
                let result = try await core.get(server.baseURL + "/none")
                #expect(result.fault == .ok && result.body == nil && result.contentLength == 5)
            }
        }

        @Test func aBodyBehind204NeverBecomesTheNextAnswer() async throws {
            try await withCore { core, server in
                server.script(
                    path: "/none",
                    [.send("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n" + answer("POISON")), .serve])
                for _ in 0..<50 {
                    let result = try await core.get(server.baseURL + "/none")
                    #expect(result.fault == .ok && result.body == nil)
                    let next = try await core.get(server.baseURL + "/hello")
                    #expect(next.text == "Hello, ferry")
                }
            }
        }

        @Test func aBodyCutShort() async throws {
            try await withCore { core, server in
                server.script(path: "/cut", [.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), .close])
                server.script(
                    path: "/chunk",
                    [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), .close])
                for path in ["/cut", "/chunk"] {
                    let result = try await core.get(server.baseURL + path)
                    #expect(result.fault == CoreFault(FERRY_E_INCOMPLETE_BODY), "\(path)")
                    #expect(result.status == 200 && result.body == nil && result.phase == FERRY_PHASE_BODY)
                    #expect(result.bodyReceived == (path == "/cut" ? 3 : 5))
                }
            }
        }

        @Test func aResetInsideTheBody() async throws {
            try await withCore { core, server in
                // The head has to be read before the RST, which discards unread bytes.
                server.script(
                    path: "/reset",
                    [.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), .wait("read"), .reset])
                let id = try core.submit(CoreRequest("GET", server.baseURL + "/reset").with { $0.answer = .stream })
                await core.untilBody(id)
                server.signal("read")
                let result = await core.result(of: id)
                #expect(result.fault == CoreFault(FERRY_E_CONNECTION_RESET))
                #expect(result.osErrno == ECONNRESET || result.osErrno == 0)
            }
        }

        @Test func closedBeforeAnyAnswer() async throws {
            try await withCore { core, server in
                server.script(path: "/none", [.drop])
                let result = try await core.get(server.baseURL + "/none")
                #expect(result.fault == CoreFault(FERRY_E_CONNECTION_CLOSED))
                #expect(result.phase == FERRY_PHASE_WAIT_HEAD && result.isProcessed && result.attempts == 1)
                #expect(result.status == 0 && result.headReceived == 0)
            }
        }

        @Test(arguments: [1_000, 100_000])
        func theLimitHoldsForEveryFraming(limit: Int) async throws {
            try await withCore { core, server in
                for (path, isFine) in [
                    ("/bytes/\(limit)", true), ("/chunked/\(limit)", true), ("/until-close/\(limit)", true),
                    ("/bytes/\(limit + 1)", false), ("/chunked/\(limit + 1)", false),
                    ("/until-close/\(limit + 1)", false),
                ] {
                    let result = try await core.run(
                        CoreRequest("GET", server.baseURL + path).with { $0.maxBody = limit })
                    #expect(result.fault == (isFine ? .ok : CoreFault(FERRY_E_BODY_TOO_LARGE)), "\(path)")
                    if !isFine { #expect(result.body == nil && result.bodyLength <= UInt64(limit)) }
                }
            }
        }

        @Test func announcedTooLargeIsRefusedBeforeItComes() async throws {
            try await withCore { core, server in
                server.script(
                    path: "/big", [.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n"), .keepOpen])
                let result = try await core.run(CoreRequest("GET", server.baseURL + "/big").with { $0.maxBody = 1_000 })
                #expect(result.fault == CoreFault(FERRY_E_BODY_TOO_LARGE))
                #expect(result.contentLength == 1_000_000_000_000 && result.status == 200)
                let head = try await core.run(
                    CoreRequest("HEAD", server.baseURL + "/bytes/5000").with { $0.maxBody = 10 })
                #expect(head.fault == .ok)
            }
        }

        @Test func anAnnouncedLengthIsNotTrustedWithMemory() async throws {
            try await withCore { core, server in
                server.script(
                    path: "/lie", [.send("HTTP/1.1 200 OK\r\nContent-Length: 900000000000000\r\n\r\nabc"), .close])
                let result = try await core.get(server.baseURL + "/lie")
                #expect(result.fault == CoreFault(FERRY_E_INCOMPLETE_BODY))
            }
        }

        @Test func metricsGrowInTheOrderOfEvents() async throws {
            try await withCore { core, server in
                let first = try await core.get(server.baseURL + "/delay/20")
                let m = first.metrics
                #expect(m.connect > 0 && m.first_byte >= 20_000 && m.first_byte >= m.connect && m.total >= m.first_byte)
                #expect(m.tls == 0)
                let second = try await core.get(server.baseURL + "/hello")
                #expect(second.isReused && second.metrics.connect == 0)
                #expect(second.headSent < first.headSent * 2)
            }
        }
    }
}
