import Ferry
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Bodies that are streamed.
@Suite(.timeLimit(.minutes(2))) struct NginxStreamTests {
    @Test("256 megabytes need only a few megabytes of memory")
    func memory() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            try await agent.send(HTTPRequest.to(nginx.url("/1m.bin")))
            let before = ProcessHoldings.memory
            let response = try await agent.stream(HTTPRequest.to(nginx.url("/zeros.bin")))
            #expect(response.status == 200 && response.contentLength == Int64(Nginx.zeros))
            var count = 0
            var (most, next) = (0, 0)
            for try await piece in response.body {
                count += piece.count
                // Asking the kernel takes some time.
                if count > next {
                    most = max(most, ProcessHoldings.memory - before)
                    next += 16 * 1024 * 1024
                }
            }
            #expect(count == Nginx.zeros)
            #expect(most < 8 * 1024 * 1024, "\(most) bytes")
        }
    }

    @Test("a kept connection that is not read for a while does not count as idle")
    func pausedOnKeptConnection() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            var request = HTTPRequest.to(nginx.url("/zeros.bin"))
            request.headers["Range"] = "bytes=0-4194303"
            for _ in 0..<100 {
                let response = try await agent.stream(request)
                var count = 0
                for try await piece in response.body { count += piece.count }
                #expect(count == 4 * 1024 * 1024)
            }
            #expect(agent.statistics.connectionsOpened == 1 && agent.statistics.guardedConnections == 0)
        }
    }

    @Test("a slow reader slows nginx down, and one that leaves early closes the connection")
    func backpressure() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent { agent in
            try await readSome(of: nginx.url("/zeros.bin?\(mark)"), agent)
            let line = try #require(try await nginx.log(mark, count: 1).first)
            // The rest is in the buffers of two sockets at most.
            let buffers = try ["tcp_rmem", "tcp_wmem"].compactMap {
                try String(contentsOfFile: "/proc/sys/net/ipv4/\($0)", encoding: .utf8)
                    .split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) }
            }
            let bound = 8 * 1024 * 1024 + buffers.reduce(0, +)
            #expect(buffers.count == 2 && line.sent < bound && bound < Nginx.zeros, "\(line.sent), \(bound)")
            let next = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt")))
            #expect(next.text == "Hello, ferry")
        }
    }

    /// Reads four megabytes with pauses, and releases the response.
    private func readSome(of url: String, _ agent: NetworkAgent) async throws {
        let response = try await agent.stream(HTTPRequest.to(url))
        var count = 0
        for try await piece in response.body {
            count += piece.count
            if count > 4 * 1024 * 1024 { break }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    @Test("a compressed body is decompressed piece by piece")
    func compressed() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let response = try await agent.stream(HTTPRequest.to(nginx.url("/long.txt")))
            #expect(response.headers["Content-Encoding"] == "gzip")
            let body = try await response.body.collect(upTo: 100_000)
            #expect(String(decoding: body, as: UTF8.self) == String(repeating: "compress me well, ", count: 4000))
        }
    }

    @Test("a rejected status throws before the body is read")
    func status() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.stream(HTTPRequest.to(nginx.url("/private/secret.txt")))
            }
            #expect(error?.code == .invalidStatusCode(401))
            #expect(error?.response?.body.isEmpty == false)
        }
    }

    @Test("redirects are followed before the head is delivered")
    func redirected() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let response = try await agent.stream(HTTPRequest.to(nginx.url("/chain/1")))
            let body = try await response.body.collect(upTo: 100)
            #expect(body == Data("Hello, ferry".utf8) && response.redirects.count == 3)
        }
    }

    @Test("a reader that is cancelled closes the connection")
    func cancelled() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent { agent in
            let reading = Task {
                let response = try await agent.stream(HTTPRequest.to(nginx.url("/slow/1m.bin?\(mark)")))
                for try await _ in response.body {}
            }
            _ = try await eventually("an answer on its way beside this one") {
                try await agent.send(HTTPRequest.to(nginx.url("/status"))).text.contains("Writing: 2") ? true : nil
            }
            reading.cancel()
            let error = await #expect(throws: RequestError.self) { try await reading.value }
            #expect(error?.code == .cancelled)
            let line = try #require(try await nginx.log(mark, count: 1).first)
            #expect(line.sent < 1024 * 1024)
        }
    }
}
