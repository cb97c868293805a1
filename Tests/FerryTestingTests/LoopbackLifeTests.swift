import FerryTesting
import Glibc
import Testing

extension LoopbackTests {
    @Suite("LoopbackServer: life", .timeLimit(.minutes(2)))
    struct LoopbackLifeTests {
        @Test func countersTellWhatHappened() async throws {
            let server = try LoopbackServer()
            let first = try RawClient(port: server.port)
            let second = try RawClient(port: server.port)
            _ = try await first.get("/hello")
            _ = try await first.get("/hello")
            _ = try await second.get("/json")
            #expect(server.connectionCount == 2)
            #expect(server.openConnectionCount == 2)
            #expect(server.requestCount == 3)
            #expect(server.receivedByteCount == 2 * 35 + 34)
            #expect(server.handshakeCount == 0)
        }

        @Test func requestsAreRecordedWithTheirBodies() async throws {
            var options = LoopbackServer.Options()
            options.recordedRequests = 2
            options.recordedBodyBytes = 4
            let server = try LoopbackServer(options)
            let client = try RawClient(port: server.port)
            _ = try await client.get("/status/404")
            _ = try await client.exchange("PUT /echo?q=1 HTTP/1.1\r\nX-A:  1 \r\nContent-Length: 6\r\n\r\nabcdef")
            _ = try await client.exchange(
                "POST /upload HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\n\r\n")
            let requests = server.requests
            #expect(requests.count == 2)
            #expect(server.requestCount == 3)
            #expect(requests[0].method == "PUT")
            #expect(requests[0].target == "/echo?q=1")
            #expect(requests[0].path == "/echo")
            #expect(requests[0].query == "q=1")
            #expect(requests[0].headers["x-a"] == "1")
            #expect(requests[0].text == "abcd")
            #expect(requests[0].bodyLength == 6)
            #expect(requests[1].text == "z")
            #expect(requests[1].connection == 1)
        }

        @Test func waitingForWhatHasHappenedReturns() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            _ = try await client.get("/hello")
            try await server.waitForConnections(1)
            try await server.waitForRequests(1)
            try await server.waitForReceivedBytes(10)
        }

        @Test func cancelledWaitThrowsCancellation() async throws {
            let server = try LoopbackServer()
            let task = Task { try await server.waitForRequests(1) }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }

        @Test func stopEndsWaitsAndConnections() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            try await client.send("GET /delay/100000 HTTP/1.1\r\n\r\n")
            try await server.waitForRequests(1)
            let task = Task { try await server.waitForRequests(100) }
            server.stop()
            server.stop()
            await #expect(throws: LoopbackError.stopped) { try await task.value }
            await #expect(throws: LoopbackError.stopped) { try await server.waitForRequests(100) }
            #expect((try? await client.receiveAll().isEmpty) ?? true)
            #expect(throws: SocketError.self) { try RawClient(port: server.port) }
            #expect(server.requests.count == 1, "records outlive the stop")
            server.signal("late")
            server.handle("/late") { _ in LoopbackResponse() }
            server.script([.close])
        }

        @Test func aThousandConnectionsAtOnce() async throws {
            raiseDescriptorLimit()
            let server = try LoopbackServer()
            let clients = try (0..<1_000).map { _ in try RawClient(port: server.port) }
            try await server.waitForConnections(1_000)
            for client in clients { try await client.send("GET /delay/50 HTTP/1.1\r\n\r\n") }
            for client in clients { #expect(try await client.readResponse().text == "Hello, ferry") }
            #expect(server.openConnectionCount == 1_000)
            #expect(server.requestCount == 1_000)
        }

        @Test func refusingServerRefuses() throws {
            var options = LoopbackServer.Options()
            options.accepting = .refused
            let server = try LoopbackServer(options)
            let error = #expect(throws: SocketError.self) { try RawClient(port: server.port) }
            #expect(error?.number == ECONNREFUSED)
        }

        @Test func fullBacklogLetsConnectsHang() throws {
            var options = LoopbackServer.Options()
            options.accepting = .none
            let server = try LoopbackServer(options)
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
            defer { close(descriptor) }
            var to = sockaddr_in()
            to.sin_family = sa_family_t(AF_INET)
            to.sin_port = server.port.bigEndian
            inet_pton(AF_INET, "127.0.0.1", &to.sin_addr)
            let result = withUnsafePointer(to: &to) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            #expect(result == -1 && errno == EINPROGRESS)
            // Only waiting can show that nothing happens.
            var look = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            #expect(poll(&look, 1, 200) == 0)
        }

        @Test func listensOnIPv6AndOnAGivenPort() async throws {
            var options = LoopbackServer.Options()
            options.address = "::1"
            let server = try LoopbackServer(options)
            #expect(server.baseURL == "http://[::1]:\(server.port)")
            #expect(try await RawClient(port: server.port, address: "::1").get("/hello").status == 200)
            options.port = server.port
            #expect(throws: LoopbackError.self) { try LoopbackServer(options) }
            server.stop()
            #expect(try LoopbackServer(options).port == options.port)
            options.address = "no address"
            #expect(throws: LoopbackError.self) { try LoopbackServer(options) }
        }

        @Test func withLoopbackServerStopsIt() async throws {
            let port = try await withLoopbackServer { server in
                let status = try await RawClient(port: server.port).get("/hello").status
                #expect(status == 200)
                return server.port
            }
            #expect(throws: SocketError.self) { try RawClient(port: port) }
        }

        @Test func handlerThatHoldsTheServerIsLetGoByStop() async throws {
            weak var gone: LoopbackServer?
            do {
                let server = try LoopbackServer()
                server.handle("/self") { _ in LoopbackResponse(text: server.baseURL) }
                #expect(try await RawClient(port: server.port).get("/self").text == server.baseURL)
                gone = server
                server.stop()
            }
            while gone != nil { await Task.yield() }
        }

        @Test func noDescriptorIsLeft() async throws {
            func once() async throws {
                let server = try LoopbackServer(.init(certificate: ServerCertificate()))
                let plain = try LoopbackServer()
                var options = LoopbackServer.Options()
                options.accepting = .none
                let deaf = try LoopbackServer(options)
                let clients = try (0..<10).map { try RawClient(port: $0 % 2 == 0 ? plain.port : server.port) }
                try await plain.waitForConnections(5)
                for client in clients { try await client.send("GET /delay/100000 HTTP/1.1\r\n\r\n") }
                if deaf.port % 2 == 0 { plain.stop() }
            }
            try await once()
            let before = openDescriptors()
            for _ in 0..<20 { try await once() }
            #expect(openDescriptors() <= before)
        }
    }
}
