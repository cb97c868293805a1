import FerrySynchronization
import FerryTesting
import FerryTransport
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Bodies that are compressed as they are sent. Zlib and libzstd undo it: the server sends the same bytes back with
/// their `Content-Encoding`.
@Suite(.timeLimit(.minutes(2))) struct CompressedBodyTests {
    static let codings: [RequestBody.Coding] = [.gzip, .zstd]

    private func withAgent(
        _ configure: (inout NetworkConfiguration) -> Void = { _ in },
        _ body: (LoopbackServer, NetworkAgent) async throws -> Void
    ) async throws {
        try await withServer {
            $0.acceptedEncodings = [.gzip, .zstd]
            configure(&$0)
        } _: { server, agent in
            server.handle("/upload") { request in
                LoopbackResponse(
                    headers: ["Content-Encoding": request.headers["Content-Encoding"] ?? "identity"],
                    body: request.body)
            }
            try await body(server, agent)
        }
    }

    /// Every other 512 bytes are the same.
    private static func sample(_ count: Int) -> [UInt8] {
        var random: UInt32 = 1
        return (0..<count).map { place in
            random = random &* 1_664_525 &+ 1_013_904_223
            return place / 512 % 2 == 0 ? UInt8(place % 64) : UInt8(random >> 24)
        }
    }

    @Test(arguments: codings) func bodiesInMemoryAreDecodedToTheOriginal(coding: RequestBody.Coding) async throws {
        try await withAgent { server, agent in
            let bytes = Self.sample(200_000)
            let bodies: [(RequestBody, [UInt8], String?)] = [
                (.bytes(bytes, contentType: "a/b"), bytes, "a/b"), (.data(Data(bytes)), bytes, nil),
                (.string("hällo"), Array("hällo".utf8), "text/plain; charset=utf-8"),
                (.json(["n": 1]), Array(#"{"n":1}"#.utf8), "application/json"), (.bytes([]), [], nil),
            ]
            for (body, expected, type) in bodies {
                #expect(try await agent.send(put("/upload", body.compressed(coding))).response.bytes == expected)
                let sent = try #require(server.requests.last)
                #expect(sent.headers["Content-Encoding"] == coding.name && sent.headers["Content-Type"] == type)
                #expect(sent.headers["Content-Length"] == "\(sent.bodyLength)" && sent.body != expected)
                if expected.count > 1000 { #expect(sent.bodyLength < expected.count * 3 / 4) }
            }
        }
    }

    @Test(arguments: codings) func streamedBodiesAreDecodedToTheOriginal(coding: RequestBody.Coding) async throws {
        try await withAgent { server, agent in
            let bytes = Self.sample(5_000_000)
            let file = try TemporaryFile(bytes)
            let pieces = stride(from: 0, to: bytes.count, by: 70_001).map {
                Array(bytes[$0..<min(bytes.count, $0 + 70_001)])
            }
            for body in [
                RequestBody.file(file.path), .stream { Pieces(pieces: pieces) },
                .stream(length: UInt64(bytes.count)) { Pieces(pieces: pieces) }, .stream(once: Pieces(pieces: pieces)),
            ] {
                let response = try await agent.send(put("/upload", body.compressed(coding))).response
                #expect(response.bytes == bytes)
                let sent = try #require(server.requests.last)
                #expect(sent.headers["Transfer-Encoding"] == "chunked" && sent.headers["Content-Length"] == nil)
                #expect(sent.bodyLength < bytes.count * 3 / 4)
            }
            var form = Multipart(boundary: "B")
            form.append("file", file: file.path, filename: "f")
            var put = put("/upload", .multipart(form).compressed(coding))
            put.arguments = ["a": 1]
            let text = try await agent.send(put).response.bytes
            #expect(text.starts(with: Array("--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n".utf8)))
            #expect(text.count > bytes.count && text.suffix(9) == Array("\r\n--B--\r\n".utf8).suffix(9))
            #expect(await eventually { openDescriptors(of: file.path).isEmpty })
        }
    }

    @Test(arguments: codings) func emptyFilesAndStreamsAreWholeBodies(coding: RequestBody.Coding) async throws {
        try await withAgent { server, agent in
            let file = try TemporaryFile([])
            for body in [RequestBody.file(file.path), .stream { Pieces(pieces: []) }] {
                #expect(try await agent.send(put("/upload", body.compressed(coding))).response.bytes.isEmpty)
                #expect(server.requests.last?.body.isEmpty == false)
            }
        }
    }

    @Test(arguments: codings, [307, 308]) func redirectsAndRetriesSendTheSameBytes(
        coding: RequestBody.Coding, status: Int
    ) async throws {
        try await withAgent {
            $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1), jitter: .none)
        } _: { server, agent in
            server.script(
                path: "/first", uses: 1,
                [.expectBody, .send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"), .serve])
            server.handle("/first") { _ in
                LoopbackResponse(status: status, headers: ["Location": "/upload"], text: "")
            }
            let bytes = Self.sample(300_000)
            let file = try TemporaryFile(bytes)
            for (index, body) in [RequestBody.bytes(bytes), .file(file.path)].enumerated() {
                if index > 0 {
                    server.script(
                        path: "/first", uses: 1,
                        [.expectBody, .send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"), .serve])
                }
                #expect(try await agent.send(put("/first", body.compressed(coding))).response.bytes == bytes)
                let sent = server.requests.suffix(3)
                #expect(sent.map(\.path) == ["/first", "/first", "/upload"] || index > 0)
                #expect(Set(sent.map(\.body)).count == 1 && Set(sent.map(\.bodyLength)).count == 1)
                #expect(sent.allSatisfy { $0.headers["Content-Encoding"] == coding.name })
            }
        }
    }

    @Test func aRedirectWithoutTheBodyDropsTheCoding() async throws {
        try await withAgent { server, agent in
            let put = put("/redirect-to?status=303&url=/hello", .string("a").compressed())
            try await agent.send(put)
            let last = try #require(server.requests.last)
            #expect(last.method == "GET" && last.headers["Content-Encoding"] == nil && last.body.isEmpty)
        }
    }

    @Test func anAdaptersOwnBodyHasItsOwnCoding() async throws {
        struct Exchange: RequestAdapter {
            func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
                switch run.userInfo["body"] as? String {
                case "plain": request.body = .string("new")
                case "zstd": request.body = .string("new").compressed(.zstd)
                default: request.headers["X-Seen"] = request.headers["Content-Encoding"]
                }
            }
        }
        try await withAgent {
            $0.adapters = [Exchange()]
        } _: { server, agent in
            let file = try TemporaryFile(Array("old".utf8))
            for body in [RequestBody.string("old"), .file(file.path)] {
                for (change, text, coding) in [
                    (nil, "old", "gzip"), ("plain", "new", nil), ("zstd", "new", "zstd"),
                ] as [(String?, String, String?)] {
                    var request = HTTPRequest(.put, "/upload", body: body.compressed(.gzip))
                    request.userInfo["body"] = change
                    let response = try await agent.send(request).response
                    #expect(response.text == text)
                    let sent = try #require(server.requests.last)
                    #expect(sent.headers["Content-Encoding"] == coding)
                    #expect(sent.headers["X-Seen"] == (change == nil ? "gzip" : nil))
                }
            }
        }
    }

    @Test func anotherContentEncodingFieldIsRefusedBeforeSending() async throws {
        try await withAgent { server, agent in
            var put = put("/upload", .string("a").compressed(.zstd))
            put.headers = ["content-encoding": "gzip"]
            let error = await fault { () throws(RequestError) in try await agent.send(put) }
            #expect(error?.code == .invalidRequest(.body) && server.requestCount == 0)
            #expect(error?.message == "the Content-Encoding field conflicts with the compression of the body to zstd")
            put.headers = ["content-encoding": "zstd"]
            let text = try await agent.send(put).response.text
            #expect(text == "a")
            #expect(server.requests.last?.headers["Content-Encoding"] == "zstd")
        }
    }

    /// The application may keep the handle of its run.
    @Test(arguments: codings) func aSourceThatIsClosedKeepsNoEncoder(coding: RequestBody.Coding) async {
        let source = CompressingSource(Endless(), coding)
        source.open {}
        var space = [UInt8](repeating: 0, count: 10)
        #expect(
            await eventually {
                if case .bytes = space.withUnsafeMutableBytes({ source.fill($0) }) { true } else { false }
            })
        #expect(source.hasEncoder)
        source.close()
        #expect(await eventually { !source.hasEncoder })
    }

    /// A source that never ends, and counts what it gives.
    private final class Endless: BodySource {
        let length: UInt64? = nil
        let given = Atomic<Int>(0)
        let isClosed = Atomic(false)

        func failure(sending errno: Int32) -> (any Error)? { nil }
        func open(resume: @escaping @Sendable () -> Void) {}

        func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
            for index in space.indices { space[index] = UInt8.random(in: 0...255) }
            given.add(space.count, ordering: .relaxed)
            return .bytes(space.count)
        }

        func close() { isClosed.store(true, ordering: .relaxed) }
    }

    /// What cannot be compressed has to be held as it is.
    @Test(arguments: codings) func theSourceIsReadOnlyAsFastAsTheSocketTakes(coding: RequestBody.Coding) async throws {
        let endless = Endless()
        let source = CompressingSource(endless, coding)
        let (resumes, continuation) = AsyncStream.makeStream(of: Void.self)
        source.open { continuation.yield() }
        var iterator = resumes.makeAsyncIterator()
        var taken = 0
        var space = [UInt8](repeating: 0, count: 10_000)
        while taken < 2_000_000 {
            switch space.withUnsafeMutableBytes({ source.fill($0) }) {
            case .bytes(let count): taken += count
            case .later: await iterator.next()
            default: Issue.record("an end of what has none")
            }
            // A block of zstd's, 128 KiB, is in the encoder; one of ours lies ready, and one is on its way.
            let given = endless.given.load(ordering: .relaxed)
            #expect(given <= taken + 512 * 1024)
        }
        source.close()
        let isClosed = endless.isClosed.load(ordering: .relaxed)
        let end = space.withUnsafeMutableBytes { source.fill($0) }
        #expect(isClosed && end.isFailed)
    }

    @Test func compressedBodiesAreNotRecordedBecauseTheyCannotBeMasked() async throws {
        let recorder = Recorder()
        try await withAgent {
            $0.recorder = recorder
        } _: { _, agent in
            let body = RequestBody.json(["password": "canary"])
            try await agent.send(put("/upload", body.compressed()))
            let pieces = Pieces(pieces: [Array(#"{"password":"canary"}"#.utf8)])
            try await agent.send(put("/upload", .stream(contentType: "application/json") { pieces }.compressed()))
        }
        #expect(recorder.archive.entries.count == 2)
        for entry in recorder.archive.entries {
            #expect(entry.request.postData?.mimeType == "application/json" && entry.request.postData?.text == nil)
        }
    }

    @Test func theCacheSeparatesCodings() async throws {
        try await withAgent {
            $0.cache = CacheConfiguration { MemoryCacheStorage(maxBytes: 1 << 20) }
        } _: { server, agent in
            var request = HTTPRequest(.post, "/upload", body: .string("a"))
            request.cachePolicy = .timeToLive(.seconds(600), write: .synchronous)
            for coding in [nil, RequestBody.Coding.gzip, .zstd, nil, .gzip, .zstd] {
                request.body = coding.map { RequestBody.string("a").compressed($0) } ?? .string("a")
                let text = try await agent.send(request).response.text
                #expect(text == "a")
            }
            #expect(server.requestCount == 3)
        }
    }

    @Test func curlIsGivenWhatIsSent() async throws {
        try await withAgent { _, agent in
            let file = try TemporaryFile(Array("a".utf8))
            let command = try agent.curlCommand(for: put("/upload", .file(file.path).compressed()), redacted: false)
            #expect(command.contains("Content-Encoding: gzip") && !command.contains(file.path))
        }
    }
}

extension TransferFill {
    fileprivate var isFailed: Bool { if case .failed = self { true } else { false } }
}
