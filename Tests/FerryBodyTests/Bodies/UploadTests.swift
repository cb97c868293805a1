import FerryTesting
import FerryTransport
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Pulled bodies over the network.
@Suite(.timeLimit(.minutes(2))) struct UploadTests {
    /// Sends by await and by closure, both with the same result, and returns the request as the server received it.
    private func sent(_ request: HTTPRequest<Response>) async throws -> LoopbackRequest {
        var options = LoopbackServer.Options()
        options.recordedBodyBytes = 64 << 20
        let server = try LoopbackServer(options)
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        try await agent.send(request)
        let outcome = Outcome<Response>()
        agent.start(request, completion: outcome.take)
        _ = try await outcome.result.get()
        #expect(await eventually { agent.statistics.running == 0 })
        await agent.shutdown()
        let requests = server.requests
        #expect(requests.count == 2)
        #expect(requests[0] == requests[1])
        return requests[0]
    }

    @Test(arguments: [0, 1, 100_000, 5_000_001])
    func aFileArrivesWithItsLength(size: Int) async throws {
        let bytes = LoopbackServer.pattern(0..<size)
        let file = try TemporaryFile(bytes)
        let request = try await sent(put("/upload", .file(file.path)))
        #expect(request.body == bytes)
        #expect(request.headers["Content-Length"] == "\(size)")
        #expect(request.headers["Content-Type"] == "application/octet-stream")
        #expect(request.headers["Transfer-Encoding"] == nil)
        #expect(request.headers["Expect"] == nil)
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
    }

    @Test func aRangeOfAFileArrivesUnderItsOwnType() async throws {
        let bytes = LoopbackServer.pattern(0..<1000)
        let file = try TemporaryFile(bytes)
        let request = try await sent(put("/upload", .file(file.path, range: 10..<500, contentType: "text/plain")))
        #expect(request.body == Array(bytes[10..<500]))
        #expect(request.headers["Content-Type"] == "text/plain")
        let untyped = try await sent(put("/upload", .file(file.path, contentType: nil)))
        #expect(untyped.headers["Content-Type"] == nil)
    }

    @Test(arguments: [nil, UInt64(3_000_000)])
    func aStreamArrivesWithALengthOrInChunks(length: UInt64?) async throws {
        let pieces = Pieces(pieces: (0..<30).map { LoopbackServer.pattern($0 * 100_000..<($0 + 1) * 100_000) })
        let request = try await sent(put("/upload", .stream(length: length, contentType: "a/b") { pieces }))
        #expect(request.body == LoopbackServer.pattern(0..<3_000_000))
        #expect(request.headers["Content-Length"] == length.map { "\($0)" })
        #expect(request.headers["Transfer-Encoding"] == (length == nil ? "chunked" : nil))
        #expect(request.headers["Content-Type"] == "a/b")
    }

    @Test func anEmptyStreamIsAnEmptyBody() async throws {
        #expect(try await sent(put("/upload", .stream { Pieces(pieces: []) })).body.isEmpty)
        let announced = try await sent(put("/upload", .stream(length: 0) { Pieces(pieces: []) }))
        #expect(announced.headers["Content-Length"] == "0")
    }

    @Test(
        "A form arrives by every method that carries a body", arguments: ["POST", "PUT", "PATCH", "DELETE", "GET", "X"])
    func form(method: String) async throws {
        let bytes = LoopbackServer.pattern(0..<400_000)
        let file = try TemporaryFile(bytes)
        var form = Multipart(boundary: "B")
        form.append("file", file: file.path, filename: "f")
        form.append("text", "t")
        var put = put("/upload", .multipart(form))
        put.method = HTTPMethod(method)
        put.arguments = ["n": ["k": 1]]
        put.argumentEncoding = .form
        let request = try await sent(put)
        #expect(request.method == method)
        #expect(request.target == "/upload")
        #expect(request.headers["Content-Type"] == "multipart/form-data; boundary=B")
        #expect(request.headers["Content-Length"] == "\(request.body.count)")
        let source = try form.following(["n": ["k": 1]]).makeSource()
        #expect(try #require(await drained(source)) == request.body)
    }

    @Test func argumentsGoIntoTheFormOrTheQueryAsTheyAreToldTo() async throws {
        var form = Multipart(boundary: "B")
        form.append("p", "1")
        var put = put("/upload", .multipart(form))
        put.arguments = ["a": 1]
        for (encoding, method, inQuery) in [
            (.automatic, .put, false), (.form, .get, false), (.json, .post, false), (.query, .put, true),
            (.automatic, .delete, true),
        ] as [(ArgumentEncoding, HTTPMethod, Bool)] {
            put.argumentEncoding = encoding
            put.method = method
            let request = try await sent(put)
            #expect(request.target == (inQuery ? "/upload?a=1" : "/upload"), "\(encoding) \(method)")
            #expect(request.text.contains("name=\"a\"") == !inQuery, "\(encoding) \(method)")
        }
    }

    @Test func anOwnContentTypeWinsAndAnOwnLengthMustBeRight() async throws {
        let file = try TemporaryFile([1, 2, 3])
        var put = put("/upload", .file(file.path))
        put.headers = ["Content-Type": "x/y", "Content-Length": "3"]
        let request = try await sent(put)
        #expect(request.headers.values(of: "Content-Type") == ["x/y"])
        #expect(request.headers.values(of: "Content-Length") == ["3"])
        put.headers = ["Content-Length": "4"]
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        #expect(await code { () throws(RequestError) in try await agent.send(put) } == .invalidRequest(.framing))
        // The file of a member, and of a run with adapters, is opened later.
        let batch = BatchRequest([put])
        let member = await code { () throws(RequestError) in _ = try await agent.send(batch) }
        #expect(member == .invalidRequest(.framing))
        var adapting = NetworkConfiguration.test
        adapting.adapters = [Unchanged()]
        let other = NetworkAgent(configuration: adapting, stub: StubTransport(always: .response()))
        #expect(await code { () throws(RequestError) in try await other.send(put) } == .invalidRequest(.framing))
        put.headers = ["Content-Length": "3"]
        #expect(await code { () throws(RequestError) in try await other.send(put) } == nil)
        put.headers = ["Content-Length": "4"]
        put.body = .stream { Pieces(pieces: [[1]]) }
        #expect(await code { () throws(RequestError) in try await agent.send(put) } == .invalidRequest(.framing))
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
    }

    private struct Unchanged: RequestAdapter {
        func adapt(_ request: inout OutgoingRequest, of run: RunInfo) {}
    }

    @Test func aStreamThatIsThereOnceIsSentOnce() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let put = put("/upload", .stream(once: Pieces(pieces: [[1, 2, 3]])))
        try await agent.send(put)
        #expect(await code { () throws(RequestError) in try await agent.send(put) } == .bodyNotReplayable)
        #expect(server.requestCount == 1)
        #expect(server.requests[0].body == [1, 2, 3])
        await agent.shutdown()
    }

    @Test func aStreamThatNobodyReadIsThereStill() async throws {
        let gone = try LoopbackServer(.init())
        gone.stop()
        let server = try LoopbackServer()
        let agent = NetworkAgent()
        var put = put(gone.baseURL + "/upload", .stream(once: Pieces(pieces: [[1, 2, 3]])))
        #expect(await code { () throws(RequestError) in try await agent.send(put) } == .connect(.refused))
        put.path = server.baseURL + "/upload"
        try await agent.send(put)
        #expect(server.requests[0].body == [1, 2, 3])
        await agent.shutdown()
    }

    @Test func theStubSeesWholeBodies() async throws {
        let file = try TemporaryFile(LoopbackServer.pattern(0..<600_000))
        let stub = StubTransport { .response(body: "\($0.body.count)") }
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let request = put("/x", .file(file.path))
        #expect(try await agent.send(request).text == "600000")
        #expect(stub.requests[0].body == LoopbackServer.pattern(0..<600_000))
        let stream = put("/x", .stream { Pieces(pieces: [[1], [2], [3]]) })
        #expect(try await agent.send(stream).text == "3")
        let failing = put("/x", .stream { Pieces(pieces: [[1]], failsAtEnd: true) })
        #expect(await code { () throws(RequestError) in try await agent.send(failing) } == .uploadSource)
        await agent.shutdown()
    }

    @Test func waitingUploadsHaveReadNothing() async throws {
        let made = Tally()
        let stub = StubTransport(always: .hold)
        stub.suspend()
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let put = put(
            "/x",
            .stream { () -> Pieces in
                made.add()
                return Pieces(pieces: [])
            })
        let outcome = Outcome<Response>()
        let task = agent.start(put, completion: outcome.take)
        await stub.waitForRequests(1)
        #expect(made.value == 0)
        task.cancel()
        #expect(await outcome.code == .cancelled)
        #expect(made.value == 0)
        await agent.shutdown()
    }

    @Test func manyUploadsAtOnceEachArriveWhole() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let file = try TemporaryFile(LoopbackServer.pattern(0..<1_000_000))
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for index in 0..<100 {
                group.addTask {
                    let body: RequestBody =
                        index % 2 == 0
                        ? .file(file.path)
                        : .stream {
                            Pieces(
                                pieces: (0..<10).map { LoopbackServer.pattern($0 * 100_000..<($0 + 1) * 100_000) })
                        }
                    let reply = try await agent.send(put("/upload", body))
                    return reply.text.contains("\"bytes\":1000000")
                }
            }
            var texts = 0
            for try await isWhole in group where isWhole { texts += 1 }
            #expect(texts == 100)
        }
        #expect(Set(server.requests.map(\.bodyLength)) == [1_000_000])
        await agent.shutdown()
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
    }
}
