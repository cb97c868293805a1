import CAllocations
import CCoreParts
import CFerry
import FerryTesting
import Glibc
import Testing

extension CoreTests {
    /// Kept connections: counted, guarded against bytes that belong to no request, and never a reason to send twice.
    @Suite struct Reuse {
        /// An earlier socket with its number: requests were read there, and their connections ended.
        @Test func aSocketThatWasClosedWithoutTellingIsNotWatchedUnderItsNumber() {
            #expect(!parts_watches_another())
        }

        /// It has no other limit that is checked.
        @Test func theConnectLimitHoldsForTheNextAttempt() async throws {
            let (options, serverOptions) = try secureOptions()
            try await withCore(options, server: serverOptions, probes: false) { core, server in
                let hello = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                server.script(connection: 1, [.expectHead, .send(hello), .expectHead, .close])
                server.script(connection: 2, [.stallHandshake])
                #expect(try await core.get(server.baseURL + "/x").fault == .ok)
                let request = CoreRequest("GET", server.baseURL + "/x").with {
                    $0.flags = .idempotent
                    $0.connect = 300
                }
                let result = try await core.run(request)
                #expect(result.fault == .timeout(FERRY_D_TIMEOUT_TLS), "\(result.fault)")
            }
        }

        /// The second attempt cannot connect: its error is reported, and that the first may have been processed.
        @Test func nothingOfALostAttemptIsToldOfTheNext() async throws {
            try await withCore(probes: false, seesClose: false) { core, server in
                server.script(path: "/lost", [.expectHead, .mark("seen"), .wait("never")])
                #expect(try await core.get(server.baseURL + "/hello").fault == .ok)
                let id = try core.submit(
                    CoreRequest("GET", server.baseURL + "/lost").with { $0.flags = .idempotent })
                try await server.waitForMark("seen")
                server.stop()
                let result = await core.result(of: id)
                #expect(result.fault == CoreFault(FERRY_E_CONNECT, FERRY_D_CONNECT_REFUSED), "\(result.fault)")
                #expect(!result.isReused && result.isProcessed && result.headSent == 0)
            }
        }

        /// The server would take the next request for the body that is still due.
        @Test(arguments: ["200 OK", "417 Expectation Failed"]) func aConnectionWithHalfARequestIsNotUsedAgain(
            status: String
        ) async throws {
            try await withCore { core, server in
                server.script(connection: 1, [.expectHead, .send(answer("", status: status)), .keepOpen])
                var request = CoreRequest("PUT", server.baseURL + "/upload")
                request.body = .bytes([1, 2, 3])
                request.flags = .idempotent
                request.idle = 2_000
                request.add("Expect", "100-continue")
                let result = try await core.run(request)
                #expect(result.fault == .ok && result.status == 200, "\(result.fault)")
                let next = try await core.run(
                    CoreRequest("GET", server.baseURL + "/hello").with { $0.idle = 2_000 })
                #expect(next.fault == .ok && next.text == "Hello, ferry" && server.connectionCount > 1)
            }
        }

        /// The source has already said that its body is empty: the second attempt is framed like the first.
        @Test func anEmptyBodyInChunksIsSentAgainInChunks() async throws {
            try await withCore(probes: false) { core, server in
                server.script(connection: 1, [.expectHead, .send(answer("ok")), .expectHead, .expectBody, .close])
                server.script(connection: 2, [.expectHead, .expectBody, .mark("whole"), .send(answer("ok"))])
                #expect(try await core.get(server.baseURL + "/x").fault == .ok)
                let source = PullSource([])
                let result = try await core.run(
                    CoreRequest("PUT", server.baseURL + "/x").with {
                        $0.flags = [.idempotent, .trailers]
                        $0.body = .pull(nil)
                        $0.onPull = { source.fill($0) }
                        $0.onTrailers = { _ in 0 }
                        $0.idle = 2_000
                    })
                #expect(result.fault == .ok && server.requestCount == 3, "\(result.fault)")
                let fields = server.requests.last?.headers.fields.map(\.name) ?? []
                #expect(fields.contains("Transfer-Encoding") && !fields.contains("Content-Length"), "\(fields)")
            }
        }

        @Test func oneConnectionForManyRequests() async throws {
            try await withCore { core, server in
                for i in 0..<100 {
                    let result = try await core.get(server.baseURL + "/hello")
                    #expect(result.isReused == (i > 0))
                }
                #expect(server.connectionCount == 1 && core.statistics.connections == 1)
                #expect(core.statistics.sockets == 1 && core.statistics.handles == easyHandles(1))
            }
        }

        /// libcurl allocates about thirty blocks a request, which this loop's last request has returned.
        @Test(.enabled(if: allocations_are_counted())) func aRequestIsMadeOfTheBlocksOfTheLast() async throws {
            try await withCore { core, server in
                func allocations(of count: Int) async throws -> Int {
                    await core.turn()
                    let before = core.record.read { $0.allocations }
                    for _ in 0..<count { _ = try await core.get(server.baseURL + "/hello") }
                    await core.turn()
                    return core.record.read { $0.allocations } - before
                }
                let first = try await allocations(of: 1)
                // Forty are for the copies that this test makes of results; without this there are sixty-six.
                let later = try await allocations(of: 100)
                #expect(later < 100 * 52, "\(later) blocks for a hundred")
                #expect(first > later / 100)
            }
        }

        @Test func manyAtOnceAreAllAnsweredRight() async throws {
            var options = CoreLoop.Options()
            options.maxPerHost = 200
            try await withCore(options) { core, server in
                let ids = try (0..<2_000).map { try core.submit(CoreRequest("GET", server.baseURL + "/bytes/\($0)")) }
                for (i, result) in await core.results(of: ids).enumerated() {
                    #expect(result.fault == .ok && result.body ?? [] == LoopbackServer.pattern(0..<i))
                }
                #expect(server.connectionCount <= 256)  // four shards of 64
            }
        }

        @Test(arguments: [false, true])
        func theServerClosesAnIdleConnection(isSecure: Bool) async throws {
            let (options, serverOptions) = try options(secure: isSecure)
            try await withCore(options, server: serverOptions) { core, server in
                server.script(path: "/bye", [.send(answer("bye")), .wait("close"), .close])
                _ = try await core.get(server.baseURL + "/bye")
                server.signal("close")
                try await server.waitForOpenConnections(atMost: 0)
                let get = try await core.get(server.baseURL + "/hello")
                #expect(get.fault == .ok && !get.isReused)
                #expect(server.requestCount == 2 && server.connectionCount == 2)
            }
        }

        /// A server that reads the request on a kept connection and closes without a response.
        private func dies(
            _ request: (LoopbackServer) -> CoreRequest, _ check: (CoreResult, LoopbackServer) -> Void
        ) async throws {
            try await withCore { core, server in
                server.script(path: "/die", uses: 1, [.expectBody, .drop])
                _ = try await core.get(server.baseURL + "/hello")
                check(try await core.run(request(server)), server)
            }
        }

        @Test func aGetIsSentOnceMore() async throws {
            try await dies({ CoreRequest("GET", $0.baseURL + "/die").with { $0.flags = .idempotent } }) {
                result, server in
                #expect(result.status == 404 && result.attempts == 2 && !result.isReused)
                #expect(server.requestCount == 3)
            }
        }

        @Test func aPostIsNotResent() async throws {
            let post = { (server: LoopbackServer) in
                CoreRequest("POST", server.baseURL + "/die").with { $0.body = .bytes([1, 2, 3]) }
            }
            try await dies(post) { result, server in
                #expect(result.fault == CoreFault(FERRY_E_CONNECTION_CLOSED))
                #expect(result.isProcessed && result.phase == FERRY_PHASE_WAIT_HEAD)
                #expect(server.requestCount == 2)
            }
        }

        @Test func aPostThatIsIdempotentIsResent() async throws {
            let post = { (server: LoopbackServer) in
                CoreRequest("POST", server.baseURL + "/die").with {
                    $0.body = .bytes([1, 2, 3])
                    $0.flags = .idempotent
                }
            }
            try await dies(post) { result, server in
                #expect(result.fault == .ok && result.attempts == 2)
                #expect(server.requestCount == 3 && server.requests[2].body == [1, 2, 3])
            }
        }

        /// Also if it notices only while it sends: libcurl by itself repeats no request of which it has sent a part.
        @Test func anUploadOfWhichAPartWasSentIsResent() async throws {
            let body = LoopbackServer.pattern(0..<8_000_000)
            try await withCore { core, server in
                server.script(path: "/die", uses: 1, [.expectHead, .reset])
                server.handle("/die") { LoopbackResponse(text: "\($0.bodyLength)") }
                _ = try await core.get(server.baseURL + "/hello")
                let request = CoreRequest("PUT", server.baseURL + "/die").with {
                    $0.body = .bytes(body)
                    $0.flags = .idempotent
                }
                let result = try await core.run(request)
                #expect(result.fault == .ok && result.attempts == 2 && result.text == "8000000")
                server.script(path: "/die", uses: 1, [.expectHead, .reset])
                let other = try await core.run(request.with { $0.flags = [] })
                #expect(other.fault.code != FERRY_OK && other.attempts == 1)
            }
        }

        @Test func aServerThatDiesAtEveryRequestIsNotAskedForEver() async throws {
            try await withCore { core, server in
                server.script(path: "/die", [.drop])
                // Kept connections, so that a retry may use another one.
                let warm = try (0..<8).map { _ in try core.submit(CoreRequest("GET", server.baseURL + "/delay/50")) }
                _ = await core.results(of: warm)
                let before = server.requestCount
                let result = try await core.run(
                    CoreRequest("GET", server.baseURL + "/die").with { $0.flags = .idempotent })
                #expect(result.fault == CoreFault(FERRY_E_CONNECTION_CLOSED))
                #expect(server.requestCount - before <= 3)
            }
        }

        @Test func aFreshConnectionThatDiesIsNotRetried() async throws {
            try await withCore { core, server in
                server.script(path: "/die", [.drop])
                let result = try await core.run(
                    CoreRequest("GET", server.baseURL + "/die").with { $0.flags = .idempotent })
                #expect(result.fault == CoreFault(FERRY_E_CONNECTION_CLOSED) && result.attempts == 1)
                #expect(server.requestCount == 1)
            }
        }

        @Test func aCancelledTransferClosesItsConnection() async throws {
            try await withCore { core, server in
                server.script(path: "/none", [.keepOpen])
                let id = try core.submit(CoreRequest("GET", server.baseURL + "/none"))
                try await server.waitForRequests(1)
                core.cancel(id)
                let result = await core.result(of: id)
                #expect(result.fault == .cancelled && result.phase == FERRY_PHASE_WAIT_HEAD && result.isProcessed)
                try await server.waitForOpenConnections(atMost: 0)
            }
        }

        @Test(arguments: [false, true])
        func anIdleConnectionIsClosedWithoutANextRequest(isSecure: Bool) async throws {
            var (options, serverOptions) = try options(secure: isSecure)
            options.idle = 100
            serverOptions.address = "127.0.0.1"
            try await withCore(options, server: serverOptions) { core, server in
                for round in 1...3 {
                    // By name, so that the shard has to learn it again.
                    let url = server.baseURL.replacing("127.0.0.1", with: "localhost") + "/hello"
                    let ids = try (0..<5).map { _ in try core.submit(CoreRequest("GET", url)) }
                    for result in await core.results(of: ids) { #expect(result.fault == .ok) }
                    try await server.waitForOpenConnections(atMost: 0)
                    await core.untilStatistics { $0.sockets == 0 && $0.handles == 0 }
                    #expect(server.requestCount == round * 5)
                }
            }
        }

        @Test func aConnectionAtWorkIsNotIdle() async throws {
            var options = CoreLoop.Options()
            options.idle = 50
            try await withCore(options) { core, server in
                let slow = try await core.get(server.baseURL + "/delay/400")
                #expect(slow.fault == .ok && server.connectionCount == 1)
            }
        }

        @Test func nothingOfOneTransferShowsInTheNext() async throws {
            // With more shards, users that authenticate would have handles of their own.
            var options = CoreLoop.Options()
            options.maxTransfers = 64
            try await withCore(options) { core, server in
                let plain = CoreRequest("GET", server.baseURL + "/echo")
                _ = try await core.run(plain)
                let bare = server.requests.last!
                var odd: [CoreRequest] = []
                odd.append(plain.with { $0.method = Array("HEAD".utf8) })
                odd.append(
                    plain.with {
                        $0.method = Array("POST".utf8); $0.body = .bytes([1, 2, 3]); $0.add("Content-Type", "a/b")
                    })
                odd.append(plain.with { $0.method = Array("DELETE".utf8) })
                odd.append(
                    plain.with {
                        $0.method = Array("GET".utf8); $0.body = .bytes([])
                    })
                odd.append(
                    plain.with {
                        $0.method = Array("PUT".utf8); $0.body = .pull(nil); $0.onPull = { _ in 0 }
                    })
                odd.append(
                    plain.with {
                        $0.add("Host", "other.example"); $0.add("Authorization", "secret"); $0.add("Cookie", "a=b")
                    })
                odd.append(plain.with { $0.maxBody = 1 })
                odd.append(plain.with { $0.maxHead = 20 })
                odd.append(plain.with { $0.url += Array("/status/500".utf8) })
                odd.append(plain.with { $0.answer = .stream })
                odd.append(
                    plain.with {
                        $0.url = Array((server.baseURL + "/delay/1000").utf8); $0.total = 50
                    })
                odd.append(
                    plain.with {
                        $0.url = Array((server.baseURL + "/gzip/50").utf8); $0.flags = .decode
                    })
                odd.append(plain.with { $0.flags = .publicOnly })
                odd.append(plain.through(server, user: "ann", password: "b"))
                odd.append(plain.through(server, user: "ann", password: "b", schemes: FERRY_SCHEME_DIGEST))
                odd.append(plain.through(server, FERRY_PROXY_SOCKS5, user: "ann").with { $0.idle = 50 })
                odd.append(plain.with { $0.extras = CoreExtras(proxy: .init(address: "127.0.0.1:1")) })
                odd.append(
                    plain.with {
                        $0.extras = CoreExtras(
                            credentials: .init(
                                user: "ann", password: "b", schemes: FERRY_SCHEME_BASIC | FERRY_SCHEME_DIGEST))
                        $0.url = Array((server.baseURL + "/basic-auth/ann/b").utf8)
                    })
                odd.append(plain.with { $0.extras = CoreExtras(encodings: "br", encodingsKind: FERRY_ENCODINGS_THESE) })
                odd.append(plain.with { $0.extras = CoreExtras(encodingsKind: FERRY_ENCODINGS_NONE) })
                for (i, request) in odd.enumerated() {
                    let strange = try await core.run(request)
                    let result = try await core.run(plain)
                    #expect(result.fault == .ok && result.status == 200, "after \(i)")
                    #expect(result.attempts == 1 && result.message == nil && result.osErrno == 0, "after \(i)")
                    #expect(!result.isDecoded && result.body != nil && result.bodySent == 0, "after \(i)")
                    #expect(server.requests.last?.headers == bare.headers, "after \(i)")
                    #expect(
                        server.requests.last?.method == "GET" && server.requests.last?.bodyLength == 0, "after \(i)")
                    #expect(strange.id != result.id)
                }
                #expect(core.statistics.handles == easyHandles(1))
            }
        }
    }
}
