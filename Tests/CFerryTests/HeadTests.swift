import CAllocations
import CFerry
import FerryTesting
import Testing

extension CoreTests {
    /// The head of a response: what is accepted, how it is stored, and what is refused.
    @Suite struct Heads {
        /// The result of a response with these bytes, after which the server closes.
        private func run(
            _ steps: LoopbackScript, _ change: @Sendable (inout CoreRequest) -> Void = { _ in },
            _ check: @escaping @Sendable (CoreResult) throws -> Void
        ) async throws {
            try await withCore { core, server in
                server.script(path: "/head", LoopbackScript(steps.steps + [.serve]))
                var request = CoreRequest("GET", server.baseURL + "/head")
                change(&request)
                try check(try await core.run(request))
            }
        }

        @Test func tableOfOffsetsKeepsOrderCaseAndDuplicates() async throws {
            try await run([
                .send("HTTP/1.1 207 Multi Status\r\nX-A: 1\r\nx-a:2\r\nX-B: \t padded \t\r\nX-E:\r\n"),
                .send("Set-Cookie: a=b; c\r\nSet-Cookie: d\r\nContent-Length: 2\r\n\r\nok"),
            ]) { result in
                #expect(result.fault == .ok && result.status == 207 && result.text == "ok")
                #expect(
                    result.fields.map(\.name) == [
                        "X-A", "x-a", "X-B", "X-E", "Set-Cookie", "Set-Cookie", "Content-Length",
                    ])
                #expect(result.fields.map(\.value) == ["1", "2", "padded", "", "a=b; c", "d", "2"])
                #expect(
                    String(decoding: result.head, as: UTF8.self).hasPrefix("HTTP/1.1 207 Multi Status\r\nX-A: 1\r\n"))
                #expect(result.head.suffix(4) == [13, 10, 13, 10])
                #expect(result.headReceived == UInt64(result.head.count))
                #expect(result.contentLength == 2)
            }
        }

        @Test(arguments: [
            ("X-A: 1\r\n folded\r\n", FERRY_D_HEADER), ("X-A: 1\n", FERRY_D_HEADER), ("X-A: a\0b\r\n", FERRY_D_HEADER),
            ("no colon\r\n", FERRY_D_HEADER), ("X-A : 1\r\n", FERRY_D_HEADER), (": 1\r\n", FERRY_D_HEADER),
            ("X-A: a\rb\r\n", FERRY_D_HEADER), ("Content-Length: -3\r\n", FERRY_D_LENGTH),
            ("Content-Length: 3, 3\r\n", FERRY_D_LENGTH), ("Content-Length: +3\r\n", FERRY_D_LENGTH),
            ("Content-Length: 0x3\r\n", FERRY_D_LENGTH), ("Content-Length:\r\n", FERRY_D_LENGTH),
            ("Content-Length: 99999999999999999999\r\n", FERRY_D_LENGTH),
            ("Content-Length: 3\r\nContent-Length: 5\r\n", FERRY_D_CONFLICTING_LENGTH),
            ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", FERRY_D_CONFLICTING_LENGTH),
            ("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", FERRY_D_CONFLICTING_LENGTH),
            ("Transfer-Encoding: gzip, chunked\r\n", FERRY_D_TRANSFER_ENCODING),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", FERRY_D_TRANSFER_ENCODING),
            ("Transfer-Encoding: xchunked\r\n", FERRY_D_TRANSFER_ENCODING),
        ])
        func malformedFields(fields: String, detail: Int) async throws {
            try await run([.send("HTTP/1.1 200 OK\r\n\(fields)\r\n5\r\nhello\r\n0\r\n\r\n"), .keepOpen]) { result in
                #expect(result.fault == .malformed(detail), "\(fields.debugDescription)")
                #expect(result.body == nil && result.bodyLength == 0)
                #expect(result.isProcessed)
            }
        }

        /// libcurl before 8.1.1 appends such a line to the last field of the previous response, which it has freed
        /// (curl/curl#11101).
        @Test func aFirstFieldThatBeginsWithABlankBehindAnotherResponse() async throws {
            try await withCore { core, server in
                let field = "X-Last: " + String(repeating: "v", count: 600)
                let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n"
                server.script(path: "/good", [.send(head + field + "\r\n\r\n"), .drop])
                server.script(path: "/bad", [.send("HTTP/1.1 200 OK\r\n X: y\r\nContent-Length: 0\r\n\r\n"), .drop])
                for _ in 0..<20 {
                    let good = try await core.get(server.baseURL + "/good")
                    #expect(good.fault == .ok)
                    let bad = try await core.get(server.baseURL + "/bad")
                    #expect(bad.fault == .malformed(FERRY_D_HEADER))
                }
            }
        }

        @Test func malformedHeadsCloseTheConnection() async throws {
            try await withCore { core, server in
                server.script(
                    path: "/head", [.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde")])
                let result = try await core.get(server.baseURL + "/head")
                #expect(result.fault == .malformed(FERRY_D_CONFLICTING_LENGTH))
                try await server.waitForOpenConnections(atMost: 0)
            }
        }

        @Test(arguments: [
            "hello world\n", "HTTP/0.9 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n", "HTTP/1.2 200 OK\r\n\r\n", "ICY 200 OK\r\n\r\n", "\r\n\r\n",
            "HTTP/1.1 200\nX: 1\n\n", "HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1 200_OK\r\n\r\n", "HTTp/1.1 200 OK\r\n\r\n",
        ])
        func brokenStatusLines(text: String) async throws {
            try await run([.send(text), .close]) { result in
                #expect(result.fault == .malformed(FERRY_D_STATUS_LINE), "\(text.debugDescription)")
                #expect(result.phase == FERRY_PHASE_WAIT_HEAD && result.version == 0, "\(text.debugDescription)")
            }
        }

        @Test(arguments: ["HTTP/1.1 200\r\n", "HTTP/1.1 200 \r\n", "HTTP/1.1 299 Ümlaut\r\n"])
        func unusualStatusLinesThatAreFine(line: String) async throws {
            try await run([.send(line + "Content-Length: 0\r\n\r\n")]) { #expect($0.fault == .ok) }
        }

        @Test func http10IsReadToItsCloseAndNotReused() async throws {
            try await withCore { core, server in
                server.script(path: "/ten", [.send("HTTP/1.0 200 OK\r\n\r\nabc"), .close])
                let result = try await core.get(server.baseURL + "/ten")
                #expect(result.fault == .ok && result.version == 10 && result.text == "abc" && result.isCloseFramed)
            }
        }

        @Test func switchingProtocolsIsRefused() async throws {
            try await run([.send("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"), .keepOpen]) { result in
                #expect(result.fault == .malformed(FERRY_D_UPGRADE))
            }
        }

        @Test func informationalAnswersArePassedOver() async throws {
            try await run([
                .send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"),
                .send(answer("ok", "X-A: 1")),
            ]) { result in
                #expect(result.fault == .ok && result.status == 200 && result.text == "ok")
                #expect(result.fields.map(\.name) == ["X-A", "Content-Length"])
                #expect(result.headReceived > UInt64(result.head.count))
                #expect(
                    result.informational
                        == "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
                #expect(result.trailers.isEmpty)
            }
        }

        @Test func onlyAnInformationalAnswerIsNoAnswer() async throws {
            try await run([.send("HTTP/1.1 100 Continue\r\n\r\n"), .close]) { result in
                #expect(result.fault == CoreFault(FERRY_E_CONNECTION_CLOSED))
                #expect(result.status == 0 && result.head.isEmpty)
                #expect(result.phase == FERRY_PHASE_WAIT_HEAD && result.isProcessed)
            }
        }

        @Test func aFloodOfInformationalAnswersEnds() async throws {
            try await run([.repeating("HTTP/1.1 100 Continue\r\n\r\n", times: 200_000), .send(answer("ok"))]) {
                result in
                #expect(result.fault == CoreFault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_INFORMATIONAL))
                #expect(result.headReceived < 10_000)
            }
        }

        @Test func oneFieldOf200KB() async throws {
            let field = "X-A: " + String(repeating: "a", count: 200_000) + "\r\n"
            for limit in [0, 1_000_000] {
                try await run([.send("HTTP/1.1 200 OK\r\n" + field + "\r\n"), .close], { $0.maxHead = limit }) {
                    result in
                    #expect(result.fault == CoreFault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES))
                }
            }
        }

        /// libcurl has a limit of its own, below the largest one that can be set.
        @Test func aThousandFieldsOfAKilobyte() async throws {
            let field = "X-A: " + String(repeating: "a", count: 1_000) + "\r\n"
            for limit in testedEngine == FERRY_ENGINE_LIBCURL ? [0, 10_000_000] : [0, 1_000_000] {
                try await run(
                    [.send("HTTP/1.1 200 OK\r\n"), .repeating(field, times: 1_000), .send("\r\n"), .close],
                    { $0.maxHead = limit }
                ) { result in
                    #expect(result.fault == CoreFault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES))
                }
            }
        }

        @Test func tooManyFields() async throws {
            try await run([.send("HTTP/1.1 200 OK\r\n"), .repeating("X: 1\r\n", times: 1_001), .send("\r\n"), .close]) {
                result in
                #expect(result.fault == CoreFault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES))
            }
        }

        @Test func theLimitOfTheHeadIsTheRequests() async throws {
            let text = "HTTP/1.1 200 OK\r\nX-A: \(String(repeating: "a", count: 400))\r\nContent-Length: 0\r\n\r\n"
            try await run([.send(text)], { $0.maxHead = text.utf8.count }) { #expect($0.fault == .ok) }
            try await run([.send(text)], { $0.maxHead = text.utf8.count - 1 }) { result in
                #expect(result.fault == CoreFault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES))
            }
        }

        @Test func trailersAreKeptBesideTheFields() async throws {
            try await run([
                .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n")
            ]) { result in
                #expect(result.fault == .ok && result.text == "hello")
                #expect(result.fields.map(\.name) == ["Transfer-Encoding"])
                #expect(result.trailers == "X-T: 1\r\n" && result.informational.isEmpty)
            }
        }

        @Test func trailersOfOneResponseAreNotTheNextOnes() async throws {
            try await withCore { core, server in
                server.script(
                    path: "/both",
                    [
                        .send("HTTP/1.1 103 Early Hints\r\nLink: y\r\n\r\n"),
                        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                        .send("1\r\na\r\n0\r\nA: 1\r\nB: 2\r\n\r\n"),
                        .serve,
                    ])
                let first = try await core.get(server.baseURL + "/both")
                #expect(first.trailers == "A: 1\r\nB: 2\r\n" && first.informational.hasPrefix("HTTP/1.1 103 "))
                let second = try await core.get(server.baseURL + "/hello")
                #expect(second.isReused && second.trailers.isEmpty && second.informational.isEmpty)
            }
        }

        /// It is not the server that is at fault.
        @Test(.enabled(if: allocations_are_counted())) func aTrailerWithoutMemoryIsNoMalformedResponse() async throws {
            // Its first byte needs a block.
            let trailer = "X-T: " + String(repeating: "a", count: 3_000) + "\r\n"
            try await withCore { core, server in
                server.script(
                    path: "/x",
                    [
                        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                        .send("5\r\nhello\r\n0\r\n\(trailer)\r\n"),
                    ])
                let request = CoreRequest("GET", server.baseURL + "/x").with {
                    $0.answer = .stream
                    $0.onBody = { _ in
                        allocations_refuse_next()
                        return FERRY_CONTINUE
                    }
                }
                let result = try await core.run(request)
                #expect(result.fault == CoreFault(FERRY_E_MEMORY), "\(result.fault)")
            }
        }

        @Test(arguments: ["bad trailer\r\n", "X-T: a\0\r\n", " folded\r\n"])
        func badTrailers(trailer: String) async throws {
            try await run([
                .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\(trailer)\r\n")
            ]) { result in
                #expect(result.fault == .malformed(FERRY_D_TRAILER), "\(trailer.debugDescription)")
                #expect(result.body == nil)
            }
        }

        @Test func endlessTrailers() async throws {
            try await run([
                .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"),
                .repeating("X-T: 1\r\n", times: 100_000),
            ]) { result in
                #expect(result.fault == CoreFault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES))
            }
        }

        @Test(arguments: [
            "ZZ\r\nhello\r\n", "FFFFFFFFFFFFFFFFF\r\nhello\r\n", "-5\r\nhello\r\n", "5\r\nhelloX\r\n0\r\n\r\n",
            "8000000000000000\r\nhello\r\n", "00000000000000005\r\nhello\r\n",
        ])
        func badChunks(chunks: String) async throws {
            try await run([.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)"), .keepOpen]) {
                result in
                #expect(result.fault == .malformed(FERRY_D_CHUNK), "\(chunks.debugDescription)")
            }
        }

        @Test func aChunksSizeMayBePadded() async throws {
            try await run([
                .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0000000000000005\r\nhello\r\n"),
                .send("0000000000000000\r\n\r\n"),
            ]) { result in
                #expect(result.fault == .ok && result.text == "hello")
            }
        }

        /// Some servers pad or sign every chunk. In total, that is more than one chunk may have.
        @Test(arguments: [
            "10   \t        ", "10;a=\"012345678\"", "100;chunk-signature=" + String(repeating: "0", count: 64),
        ])
        func theExtensionsOfALongBodyAreNotBoundedInTotal(size: String) async throws {
            let count = size.hasPrefix("100") ? 256 : 16
            let data = String(repeating: "x", count: count)
            try await run([
                .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                .repeating("\(size)\r\n\(data)\r\n", times: 3_000), .send("0\r\n\r\n"),
            ]) { result in
                #expect(result.fault == .ok && result.text.utf8.count == 3_000 * count)
            }
        }

        @Test(arguments: [20, 1_000, 100_000]) func aBodyThatIsMostlyExtensionsIsRefused(length: Int) async throws {
            var options = CoreLoop.Options()
            options.engine = FERRY_ENGINE_HTTP1
            try await withCore(options) { core, server in
                let chunk = "1;\(String(repeating: "x", count: length))\r\nx\r\n"
                server.script(
                    path: "/x",
                    [
                        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                        .repeating(chunk, times: 10_000), .keepOpen,
                    ])
                let result = try await core.get(server.baseURL + "/x")
                #expect(result.fault == .malformed(FERRY_D_CHUNK) && result.bodyReceived < 16_384)
            }
        }

        @Test func aChunkMayBeAnnouncedAsLargeAsAFile() async throws {
            try await run([
                .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\nhello"), .close,
            ]) { result in
                #expect(result.fault == CoreFault(FERRY_E_INCOMPLETE_BODY))
            }
        }
    }
}
