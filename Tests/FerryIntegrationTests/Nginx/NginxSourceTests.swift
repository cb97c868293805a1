import Ferry
import FerrySynchronization
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Bodies from files, streams and forms, sent through nginx to the upstream.
@Suite(.timeLimit(.minutes(2))) struct NginxSourceTests {
    private struct Broken: Error {}

    /// Pieces of the pattern, provided on demand.
    private func pieces(_ count: Int, failing: Bool = false) -> AsyncThrowingStream<[UInt8], any Error> {
        let left = Mutex(count)
        return AsyncThrowingStream {
            let number = left.withLock { left in
                left -= 1
                return left
            }
            if number >= 0 { return Nginx.pattern(64 * 1024) }
            if failing { throw Broken() }
            return nil
        }
    }

    @Test("a file arrives unchanged, with its length")
    func file() async throws {
        let nginx = try Nginx.shared
        let folder = try ServerFolder()
        let bytes = Nginx.pattern(3_000_001)
        try folder.write(bytes, to: "upload")
        try await withAgent { agent in
            let echo = try await agent.send(
                HTTPRequest.echo(nginx.url("/echo"), .put, body: .file(folder.file("upload")))
            ).value
            #expect(echo.sha256 == sha256(bytes) && echo["Content-Length"] == "3000001")
        }
    }

    @Test("a stream of unknown length arrives in chunks")
    func chunked() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let body = RequestBody.stream { pieces(100) }
            let echo = try await agent.send(HTTPRequest.echo(nginx.url("/echo"), .post, body: body)).value
            let right = (0..<100).flatMap { _ in Nginx.pattern(64 * 1024) }
            #expect(echo.length == right.count && echo.sha256 == sha256(right))
            #expect(echo["Transfer-Encoding"] == "chunked" && echo["Content-Length"] == nil)
        }
    }

    @Test("a stream of known length announces it")
    func sized() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let body = RequestBody.stream(length: 10 * 65_536) { pieces(10) }
            let echo = try await agent.send(HTTPRequest.echo(nginx.url("/echo"), .post, body: body)).value
            #expect(echo.length == 655_360 && echo["Content-Length"] == "655360")
        }
    }

    @Test(
        "a stream that throws is aborted, and the upstream never gets a complete body", arguments: [nil, 20 * 65_536])
    func broken(length: UInt64?) async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent { agent in
            let body = RequestBody.stream(length: length) { pieces(10, failing: true) }
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/echo?\(mark)"), .post, body: body))
            }
            #expect(error?.code == .uploadSource && error?.cause is Broken)
            let line = try #require(try await nginx.log(mark, count: 1).first)
            #expect(line.status >= 400)
            let requests = try Upstream.shared.requests(to: mark)
            #expect(requests.isEmpty)
        }
    }

    @Test("Python's parser reads a form of text, bytes and a file")
    func multipart() async throws {
        let upstream = try Upstream.shared
        let folder = try ServerFolder()
        try folder.write("content of the file", to: "a \"quoted\" näme.txt")
        var form = Multipart()
        form.append("title", "Grüße\r\n--")
        form.append("data", Data([0, 1, 2, 255]), filename: "raw.bin")
        form.append("file", file: folder.file("a \"quoted\" näme.txt"), contentType: "text/plain")
        let body = RequestBody.multipart(form)
        try await withAgent { agent in
            let reply = try await agent.send(HTTPRequest.to(upstream.url + "/form", .post, body: body))
            let parts = try JSONDecoder().decode([FormPart].self, from: reply.body)
            let right = [
                FormPart(name: "title", filename: nil, type: "text/plain", sha256: sha256(Array("Grüße\r\n--".utf8))),
                FormPart(
                    name: "data", filename: "raw.bin", type: "application/octet-stream",
                    sha256: sha256([0, 1, 2, 255])),
                FormPart(
                    name: "file", filename: "a %22quoted%22 näme.txt", type: "text/plain",
                    sha256: sha256(Array("content of the file".utf8))),
            ]
            #expect(parts == right)
        }
    }

    /// A part as read by the upstream.
    private struct FormPart: Decodable, Equatable {
        var name: String
        var filename: String?
        var type: String
        var sha256: String
    }

    @Test("256 megabytes from a file need only a few megabytes of memory")
    func memory() async throws {
        let upstream = try Upstream.shared
        let folder = try ServerFolder()
        try folder.writeZeros(256 * 1024 * 1024, to: "zeros")
        try await withAgent { agent in
            try await agent.send(HTTPRequest.to(upstream.url + "/echo", .put, body: .bytes(Nginx.pattern(1024 * 1024))))
            let before = ProcessHoldings.memory
            let sampling = Task {
                var most = 0
                while !Task.isCancelled {
                    most = max(most, ProcessHoldings.memory)
                    try? await Task.sleep(for: .milliseconds(10))
                }
                return most
            }
            let request = HTTPRequest.echo(upstream.url + "/echo", .put, body: .file(folder.file("zeros")))
            let echo = try await agent.send(request).value
            #expect(echo.length == 256 * 1024 * 1024)
            sampling.cancel()
            let growth = await sampling.value - before
            #expect(growth < 8 * 1024 * 1024, "\(growth) bytes")
        }
    }
}
