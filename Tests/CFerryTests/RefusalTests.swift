import CFerry
import FerryTesting
import Testing

extension CoreTests {
    /// What ferry_submit refuses before a byte is sent.
    @Suite struct Refusals {
        /// Submits and expects this refusal; nothing of it reaches the server.
        private func expect(_ fault: CoreFault, _ change: @Sendable (inout CoreRequest, LoopbackServer) -> Void)
            async throws
        {
            try await withCore { core, server in
                var request = CoreRequest("POST", server.baseURL + "/upload")
                change(&request, server)
                #expect(throws: fault) { try core.submit(request) }
                await core.turn()
                #expect(server.receivedByteCount == 0 && server.connectionCount == 0)
            }
        }

        @Test(arguments: ["a\r\nEvil: 1", "a\nb", "a\rb", "a\0b", "\u{7f}", "\u{1}"])
        func controlBytesInAValue(value: String) async throws {
            try await expect(CoreFault(FERRY_E_INVALID_REQUEST, FERRY_D_HEADER_VALUE)) { request, _ in
                request.add("X-A", value)
            }
        }

        @Test(arguments: ["", "a b", "a:", "a\r\nb", "a\0", "\u{e9}", "X;", "(x)"])
        func namesThatAreNoTokens(name: String) async throws {
            try await expect(CoreFault(FERRY_E_INVALID_REQUEST, FERRY_D_HEADER_NAME)) { request, _ in
                request.add(name, "v")
            }
        }

        @Test(arguments: ["CONNECT", "", "G ET", "GET\r\n", "GET\0", "GÉT", "GET /x HTTP/1.1\r\nEvil: 1\r\n\r\n"])
        func methodsThatCannotBeSent(method: String) async throws {
            try await expect(CoreFault(FERRY_E_INVALID_REQUEST, FERRY_D_METHOD)) { request, _ in
                request.method = Array(method.utf8)
            }
        }

        @Test(arguments: ["/a b", "/a\r\nEvil: 1", "/a\n", "/a\0b", "/\u{7f}", "/\u{e9}", "/a\tb"])
        func controlBytesInTheURL(path: String) async throws {
            try await expect(CoreFault(FERRY_E_INVALID_URL)) { request, server in
                request.url = Array((server.baseURL + path).utf8)
            }
        }

        @Test(arguments: ["user@", "user:secret@", "\\@", "evil\\"])
        func userinfoAndBackslashes(userinfo: String) async throws {
            try await expect(CoreFault(FERRY_E_INVALID_URL)) { request, server in
                request.url = Array("http://\(userinfo)127.0.0.1:\(server.port)/".utf8)
            }
        }

        @Test(arguments: [
            "file:///etc/passwd", "gopher://127.0.0.1/", "dict://127.0.0.1/", "ftp://127.0.0.1/", "127.0.0.1", "",
            "/hello", "httpx://a/", "ws://127.0.0.1/", "http:/127.0.0.1/",
        ])
        func otherSchemes(url: String) async throws {
            try await expect(CoreFault(FERRY_E_UNSUPPORTED_SCHEME)) { request, _ in request.url = Array(url.utf8) }
        }

        @Test(arguments: ["http://", "http:///path", "http://?q", "https://#f"])
        func noHost(url: String) async throws {
            try await expect(CoreFault(FERRY_E_INVALID_URL)) { request, _ in request.url = Array(url.utf8) }
        }

        @Test func aURLLongerThanLibcurlTakes() async throws {
            try await expect(CoreFault(FERRY_E_INVALID_URL)) { request, _ in
                request.url += Array(repeating: 97, count: 8_000_001)
            }
        }

        @Test(arguments: ["http://127.0.0.1:99999/", "http://[::1/", "http://a:b/", "http://exa mple/", "http://%00/"])
        func whatOnlyLibcurlSeesComesAsAResultOrARefusal(url: String) async throws {
            try await withCore { core, _ in
                do {
                    let result = try await core.get(url)
                    #expect(result.fault == CoreFault(FERRY_E_INVALID_URL))
                    #expect(result.phase == FERRY_PHASE_QUEUED && !result.isProcessed)
                } catch let refusal as CoreFault {
                    #expect(refusal == CoreFault(FERRY_E_INVALID_URL))
                }
            }
        }

        @Test(arguments: ["3", "-2", "+2", "0x2", "", "2 ", "99999999999999999999", "2, 2"])
        func contentLengthThatIsNotTheBodys(value: String) async throws {
            try await expect(CoreFault(FERRY_E_INVALID_REQUEST, FERRY_D_FRAMING)) { request, _ in
                request.body = .bytes([1, 2])
                request.add("content-length", value)
            }
        }

        @Test func contentLengthWithABodyOfUnknownLength() async throws {
            try await expect(CoreFault(FERRY_E_INVALID_REQUEST, FERRY_D_FRAMING)) { request, _ in
                request.body = .pull(nil)
                request.add("Content-Length", "2")
            }
        }

        @Test(arguments: ["chunked", "identity", "gzip, chunked", ""])
        func transferEncodingIsTheCores(value: String) async throws {
            try await expect(CoreFault(FERRY_E_INVALID_REQUEST, FERRY_D_FRAMING)) { request, _ in
                request.add("transfer-encoding", value)
            }
        }

        @Test(arguments: [("a.test", "b.test"), ("a.test", "a.test"), ("", "a.test")])
        func aSecondHost(first: String, second: String) async throws {
            try await expect(CoreFault(FERRY_E_INVALID_REQUEST, FERRY_D_FRAMING)) { request, _ in
                request.add("Host", first)
                request.add("host", second)
            }
        }

        @Test func fieldsCutShort() async throws {
            try await withCore { core, server in
                let request = CoreRequest("GET", server.baseURL + "/")
                for broken: [UInt8] in [
                    [1], [1, 0, 0, 0, 9, 0, 0, 0, 65], [255, 255, 255, 255, 255, 255, 255, 255, 65],
                ] {
                    let code = request.withCore(id: 1000) { core.submitRaw($0.pointee, headers: broken) }
                    #expect(code == FERRY_E_INVALID_REQUEST)
                }
            }
        }

        @Test func anIdOfZeroAnUnknownPriorityAndUnknownKinds() async throws {
            try await withCore { core, server in
                let request = CoreRequest("GET", server.baseURL + "/")
                var codes: [Int] = []
                codes.append(request.withCore(id: 0) { core.submitRaw($0.pointee) })
                codes.append(request.with { $0.priority = 3 }.withCore(id: 1001) { core.submitRaw($0.pointee) })
                codes.append(
                    request.withCore(id: 1002) { raw in
                        var raw = raw.pointee
                        raw.body_kind = 3
                        return core.submitRaw(raw)
                    })
                codes.append(
                    request.withCore(id: 1003) { raw in
                        var raw = raw.pointee
                        raw.response_kind = 3
                        return core.submitRaw(raw)
                    })
                #expect(codes == Array(repeating: FERRY_E_INVALID_REQUEST, count: 4))
            }
        }

        @Test func aLoopWithoutOnFinishedDoesNotStart() {
            var options = ferry_options()
            var made: OpaquePointer?
            #expect(Int(ferry_loop_start(&options, &made)) == FERRY_E_INVALID_REQUEST)
            #expect(made == nil)
        }
    }
}

extension CoreLoop {
    /// ferry_submit with raw arguments.
    fileprivate func submitRaw(_ request: ferry_request, headers: [UInt8]? = nil) -> Int {
        var request = request
        guard let headers else { return Int(ferry_submit(pointer.raw, &request, nil)) }
        return headers.withUnsafeBytes { bytes in
            request.headers = bytes.baseAddress
            request.headers_length = bytes.count
            return Int(ferry_submit(pointer.raw, &request, nil))
        }
    }
}
