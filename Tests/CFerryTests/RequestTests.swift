import CFerry
import FerryTesting
import Testing

extension CoreTests {
    /// Which parts of a request arrive, and in what form.
    @Suite struct Requests {
        /// The server's record of the latest request.
        private func last(_ server: LoopbackServer) -> LoopbackRequest { server.requests.last! }

        @Test func getSendsOnlyHostByItself() async throws {
            try await withCore { core, server in
                let result = try await core.get(server.baseURL + "/hello?a=%2F&b=%20")
                #expect(result.fault == .ok)
                #expect(result.text == "Hello, ferry")
                let request = last(server)
                #expect(request.target == "/hello?a=%2F&b=%20")
                #expect(request.headers.fields.map(\.name) == ["Host"])
                #expect(request.headers["Host"] == "127.0.0.1:\(server.port)")
                #expect(result.attempts == 1 && result.version == 11 && result.phase == FERRY_PHASE_DONE)
                #expect(result.peer == "127.0.0.1" && result.peerPort == Int(server.port))
                #expect(result.headSent > 0 && result.isProcessed && !result.isReused)
            }
        }

        @Test func fragmentIsLeftOutAndAnEmptyPathBecomesASlash() async throws {
            try await withCore { core, server in
                for (suffix, target) in [
                    ("", "/"), ("?q=1", "/?q=1"), ("#f", "/"), ("/a#b?c", "/a"), ("/../x", "/../x"),
                ] {
                    _ = try await core.get(server.baseURL + suffix)
                    #expect(last(server).target == target)
                }
                let upper = try await core.get("HTTP://127.0.0.1:\(server.port)/hello")
                #expect(upper.fault == .ok && upper.isReused)
            }
        }

        @Test func headHasLengthAndNoBody() async throws {
            try await withCore { core, server in
                let result = try await core.run(CoreRequest("HEAD", server.baseURL + "/bytes/1000"))
                #expect(result.fault == .ok)
                #expect(result.contentLength == 1000 && result.body == nil && result.bodyLength == 0)
                #expect(last(server).method == "HEAD")
                let next = try await core.get(server.baseURL + "/bytes/3")
                #expect(next.body == [97, 98, 99] && next.isReused)
            }
        }

        @Test func headWithABodyDoesNotWaitForTheAnswersBody() async throws {
            try await withCore { core, server in
                var request = CoreRequest("HEAD", server.baseURL + "/bytes/1000")
                request.body = .bytes([1, 2, 3])
                request.total = 3000
                do {
                    let result = try await core.run(request)
                    #expect(result.fault == .ok && result.bodyLength == 0)
                } catch let refusal as CoreFault {
                    #expect(refusal.code == FERRY_E_INVALID_REQUEST)
                }
            }
        }

        @Test(arguments: ["POST", "PUT", "PATCH", "DELETE", "GET", "PROPFIND"])
        func bodyFromMemoryArrivesWhole(method: String) async throws {
            try await withCore { core, server in
                for size in [0, 1, 70_000, 3_000_000] {
                    let body = LoopbackServer.pattern(0..<size)
                    var request = CoreRequest(method, server.baseURL + "/upload")
                    request.body = .bytes(body)
                    let result = try await core.run(request)
                    #expect(result.fault == .ok)
                    #expect(result.bodySent == UInt64(size))
                    let seen = last(server)
                    #expect(seen.method == method && seen.bodyLength == UInt64(size))
                    #expect(seen.headers.fields.map(\.name) == ["Host", "Content-Length"])
                    #expect(seen.headers["Content-Length"] == "\(size)")
                    #expect(seen.body == Array(body.prefix(65_536)))
                }
            }
        }

        @Test(arguments: ["DELETE", "OPTIONS", "PURGE", "POST"])
        func otherMethodsWithoutABodySendNone(method: String) async throws {
            try await withCore { core, server in
                let result = try await core.run(CoreRequest(method, server.baseURL + "/status/200"))
                #expect(result.fault == .ok)
                #expect(last(server).method == method)
                #expect(last(server).headers["Transfer-Encoding"] == nil)
                #expect(last(server).headers["Content-Type"] == nil)
            }
        }

        @Test func fieldsStandOnTheWireAsGiven() async throws {
            try await withCore { core, server in
                var request = CoreRequest("POST", server.baseURL + "/upload")
                request.add("X-Plain", "a:b; c")
                request.add("x-empty", "")
                request.add("X-Blank", " \t ")
                request.add("X-Twice", "1")
                request.add("X-Twice", "2")
                request.add("X-Latin", "\u{e9}")
                request.add("Content-Type", "text/x")
                request.add("Host", "other.example")
                request.add("Accept", "text/html")
                request.add("Content-Length", "2")
                request.body = .bytes([1, 2])
                let result = try await core.run(request)
                #expect(result.fault == .ok)
                let headers = last(server).headers
                #expect(headers.values(of: "X-Plain") == ["a:b; c"])
                #expect(headers.fields.contains { $0.name == "x-empty" && $0.value.isEmpty })
                #expect(headers.values(of: "X-Blank") == [""])
                #expect(headers.values(of: "X-Twice") == ["1", "2"])
                #expect(headers.values(of: "X-Latin") == ["\u{e9}"])
                #expect(headers.values(of: "Content-Type") == ["text/x"])
                #expect(headers.values(of: "Host") == ["other.example"])
                #expect(headers.values(of: "Accept") == ["text/html"])
                #expect(headers.values(of: "Content-Length") == ["2"])
                #expect(headers["Expect"] == nil)
            }
        }

        /// Only a field without a value would have a meaning for libcurl. The head is larger than the loop's buffer.
        @Test func aValueThatEndsWithAColonArrivesInALargeHead() async throws {
            try await withCore { core, server in
                var request = CoreRequest("GET", server.baseURL + "/hello")
                request.add("X-Key", "abc:")
                for number in 0..<10 { request.add("X-\(number)", String(repeating: "x", count: 7_000)) }
                let result = try await core.run(request)
                #expect(result.fault == .ok)
                let headers = last(server).headers
                #expect(headers.values(of: "X-Key") == ["abc:"] && headers.values(of: "X-9").first?.count == 7_000)
            }
        }

        /// RFC 9110, 10.1.1.
        @Test(arguments: [[UInt8](repeating: 7, count: 100_000), nil] as [[UInt8]?])
        func anExpectationThatIsRefusedIsGivenUp(bytes: [UInt8]?) async throws {
            try await withCore { core, server in
                let refusal = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 3\r\n\r\nno!"
                server.script(path: "/upload", uses: 1, [.expectHead, .send(refusal), .serve])
                let result = try await core.run(expecting(server, bytes))
                #expect(result.fault == .ok && result.status == 200 && result.attempts == 2)
                #expect(result.bodySent == 100_000)
                let seen = server.requests.filter { $0.target == "/upload" }
                #expect(seen.map { $0.headers["Expect"] } == ["100-continue", nil])
                #expect(seen.map(\.bodyLength).last == 100_000)
            }
        }

        @Test func anExpectationIsGivenUpOnce() async throws {
            try await withCore { core, server in
                let refusal = "HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno!"
                server.script(path: "/upload", [.expectHead, .send(refusal), .close])
                let result = try await core.run(expecting(server, nil))
                #expect(result.fault == .ok && result.status == 417 && result.text == "no!")
                #expect(result.attempts == 2 && server.connectionCount == 2)
            }
        }

        /// libcurl by itself sends the request again and again, with the same field, and delivers each head.
        @Test(arguments: [[UInt8](repeating: 7, count: 100_000), nil] as [[UInt8]?], [false, true])
        func theReceiverSeesOneHead(bytes: [UInt8]?, closes: Bool) async throws {
            try await withCore(probes: false) { core, server in
                let field = closes ? "Connection: close\r\n" : ""
                let refusal = "HTTP/1.1 417 Expectation Failed\r\n\(field)Content-Length: 3\r\n\r\nno!"
                server.script(path: "/upload", [.expectHead, .send(refusal), closes ? .close : .keepOpen])
                let request = expecting(server, bytes).with {
                    $0.flags = .idempotent
                    $0.answer = .stream
                    $0.idle = 2_000
                }
                let result = try await core.run(request)
                #expect(result.fault == .ok && result.status == 417, "\(result.fault)")
                #expect(core.events(result.id).filter { $0 == .head(status: 417) }.count == 1)
                #expect(core.streamed(result.id) == Array("no!".utf8))
                #expect(server.requests.filter { $0.target == "/upload" }.count == result.attempts)
            }
        }

        /// Kept connections that are dead use up attempts. The receiver then still sees one head, and a response.
        @Test func anExpectationIsGivenUpAfterConnectionsThatAreDead() async throws {
            try await withCore(probes: false) { core, server in
                let warm = try (0..<3).map { _ in try core.submit(CoreRequest("GET", server.baseURL + "/delay/50")) }
                _ = await core.results(of: warm)
                let refusal = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 3\r\n\r\nno!"
                // After a connection that is dead, Ferry's own engine opens one.
                let dead = testedEngine == FERRY_ENGINE_HTTP1 ? 1 : 2
                for _ in 0..<dead { server.script(path: "/upload", uses: 1, [.expectHead, .drop]) }
                server.script(path: "/upload", uses: 1, [.expectHead, .send(refusal), .keepOpen])
                let request = expecting(server, [UInt8](repeating: 7, count: 100_000)).with {
                    $0.flags = .idempotent
                    $0.answer = .stream
                    $0.idle = 2_000
                }
                let result = try await core.run(request)
                #expect(result.fault == .ok && [200, 417].contains(result.status), "\(result.fault)")
                let heads = core.events(result.id).filter { if case .head = $0 { true } else { false } }
                #expect(heads == [.head(status: result.status)])
            }
        }

        /// Such a body cannot be sent again.
        @Test func afterAPartOfAPulledBodyTheRequestIsNotRepeated() async throws {
            try await withCore(probes: false) { core, server in
                let refusal = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 3\r\n\r\nno!"
                server.script(path: "/upload", [.expectHead, .expectBytes(1000), .send(refusal), .keepOpen])
                let request = expecting(server, nil).with {
                    $0.body = .pull(100_000)
                    $0.flags = .idempotent
                }
                let result = try await core.run(request)
                #expect(result.attempts == 1)
                // libcurl would have to rewind a body that it still sends, and gives up: libcurl 8 after the head.
                let isLost =
                    testedEngine != FERRY_ENGINE_HTTP1
                    && [FERRY_E_CONNECTION_CLOSED, FERRY_E_INCOMPLETE_BODY].map { CoreFault($0) }
                        .contains(result.fault)
                #expect(isLost || (result.fault == .ok && result.status == 417), "\(result.fault)")
                #expect(isLost || result.text == "no!")
                #expect(server.requestCount == 1)
            }
        }

        /// 100,000 bytes, pulled if none are given.
        private func expecting(_ server: LoopbackServer, _ bytes: [UInt8]?) -> CoreRequest {
            CoreRequest("POST", server.baseURL + "/upload").with {
                $0.add("Expect", "100-continue")
                $0.body = bytes.map { .bytes($0) } ?? .pull(100_000)
                $0.onPull = { space in
                    space.initializeMemory(as: UInt8.self, repeating: 7)
                    return space.count
                }
            }
        }

        @Test func contentLengthZeroOfTheCallersIsSent() async throws {
            try await withCore { core, server in
                var request = CoreRequest("POST", server.baseURL + "/upload")
                request.add("Content-Length", "0")
                let result = try await core.run(request)
                #expect(result.fault == .ok)
                #expect(last(server).headers.values(of: "Content-Length") == ["0"])
            }
        }

        @Test func userAgentAndEncodingsComeFromTheOptionsUnlessTheRequestHasItsOwn() async throws {
            var options = CoreLoop.Options()
            options.userAgent = "ferry-tests"
            options.encodings = "gzip, deflate"
            try await withCore(options) { core, server in
                _ = try await core.get(server.baseURL + "/hello")
                #expect(last(server).headers["User-Agent"] == "ferry-tests")
                #expect(last(server).headers["Accept-Encoding"] == "gzip, deflate")
                var request = CoreRequest("GET", server.baseURL + "/hello")
                request.add("user-agent", "mine")
                request.add("accept-encoding", "identity")
                _ = try await core.run(request)
                #expect(last(server).headers.values(of: "User-Agent") == ["mine"])
                #expect(last(server).headers.values(of: "Accept-Encoding") == ["identity"])
            }
        }

        @Test func bytesAreCopiedBeforeSubmitReturns() async throws {
            try await withCore { core, server in
                // `CoreRequest.withCore` frees everything it points to as soon as ferry_submit has returned.
                var request = CoreRequest("POST", server.baseURL + "/upload")
                request.body = .bytes(Array(repeating: 7, count: 50_000))
                for _ in 0..<20 { request.add("X-\(request.headers.count)", String(repeating: "v", count: 100)) }
                let ids = try (0..<20).map { _ in try core.submit(request) }
                for result in await core.results(of: ids) { #expect(result.fault == .ok) }
                #expect(server.requests.allSatisfy { $0.body == Array(repeating: 7, count: 50_000) })
            }
        }
    }
}
