import FaultTable
import FerrySynchronization
import FerryTesting
import FerryTransport
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Row R48 and related ones: bodies that break, and servers that refuse them.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct BrokenUploadTests {
    /// It fails as `uploadSource`, however it is sent, and the server never sees a whole message: no end of a body, and
    /// so no response.
    private func expectAborted(
        _ body: () throws -> RequestBody, reaches: Bool = true, sourceLocation: SourceLocation = #_sourceLocation,
        check: (RequestError) -> Void = { _ in }
    ) async throws {
        try await expectFault(
            [.expectBody, .mark("whole"), .send(answer("no"))], .uploadSource, reaches ? .send : .preparing,
            processed: reaches, attempts: reaches ? 1 : 0, received: 0, sourceLocation: sourceLocation
        ) {
            $0.probe.method = .put
            $0.probe.body = try body()
        } after: { server in
            // The request after the error has one.
            if !reaches { #expect(server.connectionCount == 1, sourceLocation: sourceLocation) }
        } error: {
            check($0)
        }
    }

    private static let lengths: [UInt64?] = [nil, 10_000_000]
    /// Random bytes, in pieces of 100,000.
    private static let incompressible = (0..<20).map { _ in
        let words = (0..<12_500).map { _ in UInt64.random(in: 0 ... .max) }
        return words.withUnsafeBytes { [UInt8]($0) }
    }

    @Test("R48: a stream that throws midway breaks the upload, with a length and without", arguments: lengths)
    func midway(length: UInt64?) async throws {
        let pieces = Pieces(
            pieces: (0..<20).map { _ in [UInt8](repeating: 0x61, count: 100_000) }, failsAtEnd: true)
        try await expectAborted {
            .stream(length: length) { pieces }
        } check: { error in
            #expect(error.cause is Oops)
            #expect(error.message == "the stream of the body threw Oops")
            #expect(error.bytesSent > 0)
        }
    }

    @Test("R48: a compressed stream that throws midway", arguments: CompressedBodyTests.codings, lengths)
    func compressed(coding: RequestBody.Coding, length: UInt64?) async throws {
        let pieces = Pieces(pieces: Self.incompressible, failsAtEnd: true)
        try await expectAborted {
            .stream(length: length) { pieces }.compressed(coding)
        } check: { error in
            #expect(error.cause is Oops && error.message == "the stream of the body threw Oops")
            #expect(error.bytesSent > 0)
        }
    }

    /// After the fault, the encoder must not write the bytes that it still holds.
    @Test(
        "R48: a compressed stream that throws behind its last byte, or breaks its length", arguments: [nil, UInt64(5)])
    func compressedAtTheEnd(length: UInt64?) async throws {
        try await expectAborted {
            .stream(length: length) { Pieces(pieces: [[1, 2, 3]], failsAtEnd: length == nil) }.compressed(.gzip)
        }
    }

    @Test("R48: a stream that throws at once breaks the upload", arguments: [nil, UInt64(10)])
    func atOnce(length: UInt64?) async throws {
        try await expectAborted {
            .stream(length: length) { Pieces(pieces: [], failsAtEnd: true) }
        } check: {
            #expect($0.cause is Oops)
        }
    }

    @Test("R48: a stream that throws after its last byte breaks the upload", arguments: [nil, UInt64(3)])
    func atTheEnd(length: UInt64?) async throws {
        try await expectAborted { .stream(length: length) { Pieces(pieces: [[1, 2, 3]], failsAtEnd: true) } }
    }

    @Test(
        "R48: a stream that does not match its announced length breaks the upload",
        arguments: [[[1, 2]], [], [[1, 2, 3, 4]], [[1, 2, 3], [4]]] as [[[UInt8]]])
    func length(pieces: [[UInt8]]) async throws {
        try await expectAborted {
            .stream(length: 3) { Pieces(pieces: pieces) }
        } check: { error in
            #expect(error.message.contains("announced"))
        }
    }

    @Test("R48: a missing file, or a path that is no file, fails before anything is sent")
    func missing() async throws {
        let folder = NSTemporaryDirectory()
        for (path, number) in [(folder + "ferry-is-not-there", ENOENT), (folder, EISDIR), ("/dev/zero", 0)] {
            try await expectAborted({ .file(path) }, reaches: false) { error in
                #expect(error.errno == Int(number))
                #expect(error.message.contains(path))
                #expect(!error.mayHaveBeenProcessed)
            }
        }
    }

    /// Many times: the missing bytes may be requested, read ahead, or lent to the loop, which cannot send them yet.
    @Test("R48: a file that becomes shorter while it is sent breaks the upload", arguments: [false, true], 1...8)
    func shrinking(inForm: Bool, time: Int) async throws {
        let server = try LoopbackServer()
        server.script(path: "/upload", [.mark("head"), .wait("cut"), .expectBody, .send(answer("no"))])
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        // More than the sockets and the blocks hold together.
        let file = try TemporaryFile(size: 64 << 20)
        var form = Multipart()
        form.append("file", file: file.path)
        let outcome = Outcome<Response>()
        agent.start(put("/upload", inForm ? .multipart(form) : .file(file.path)), completion: outcome.take)
        try await server.waitForMark("head")
        file.resize(1000)
        server.signal("cut")
        let error = try #require(await outcome.error)
        #expect(error.code == .uploadSource && error.phase == .send && error.bytesSent > 0 && error.bytesReceived == 0)
        #expect(error.message == "\(file.path) became shorter during the upload")
        await agent.shutdown()
        try await server.waitForOpenConnections(atMost: 0)
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
    }

    @Test("R48: a form with a part that fails breaks the upload") func form() async throws {
        var form = Multipart()
        form.append("a", "1")
        form.append("b", length: 100, stream: { Pieces(pieces: [[1, 2, 3]], failsAtEnd: true) })
        form.append("c", "2")
        let known = form
        form.append("d", stream: { Pieces(pieces: []) })
        for form in [known, form] {
            try await expectAborted {
                .multipart(form)
            } check: {
                #expect($0.cause is Oops)
            }
        }
        var missing = Multipart()
        missing.append("a", file: "/nowhere/at/all")
        try await expectAborted({ .multipart(missing) }, reaches: false)
    }

    // MARK: Servers that refuse it

    @Test(
        "R70: an upload of 50 MB from a file or a stream to a server that stops reading times out",
        arguments: [true, false])
    func stopsReading(isFile: Bool) async throws {
        let file = try TemporaryFile(size: 50_000_000)
        let pieces = [[UInt8]](repeating: [UInt8](repeating: 0x61, count: 100_000), count: 500)
        try await expectFault([.expectHead, .stopReading], .timeout(.write), .send, received: 0) {
            $0.probe.method = .put
            $0.probe.body = isFile ? .file(file.path) : .stream { Pieces(pieces: pieces) }
            $0.probe.timeouts = Timeouts(idle: .milliseconds(200))
            $0.seesClose = false
            $0.bound = .seconds(5)
        }
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
    }

    @Test("R80: a response that comes before the end of the upload is delivered") func answersEarly() async throws {
        let server = try LoopbackServer()
        server.script(
            path: "/upload",
            [.send("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"), .keepOpen])
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let file = try TemporaryFile(size: 50_000_000)
        let error = try #require(
            await fault { () throws(RequestError) in try await agent.send(put("/upload", .file(file.path))) })
        #expect(error.code == .invalidStatusCode(413) && error.response?.body == Array("no".utf8))
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
        await agent.shutdown()
    }

    @Test func aResetMidwayIsTheServersFaultAndNotTheSources() async throws {
        let server = try LoopbackServer()
        server.script(path: "/upload", [.expectBytes(100_000), .reset])
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let file = try TemporaryFile(size: 50_000_000)
        let error = try #require(
            await fault { () throws(RequestError) in try await agent.send(put("/upload", .file(file.path))) })
        #expect(error.code == .connectionReset && error.mayHaveBeenProcessed, "\(error)")
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
        await agent.shutdown()
    }

    // MARK: Ends caused by the caller

    /// How a run is ended from outside.
    enum End: CaseIterable, Sendable {
        case cancel
        case cancelAll
        case deadline
        case shutdown
        case letGo
    }

    private final class Flag: Sendable { let value = Atomic(false) }

    @Test("However a run ends, its stream is cancelled and its file closed", arguments: End.allCases)
    func ends(end: End) async throws {
        let server = try LoopbackServer()
        var agent: NetworkAgent? = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let file = try TemporaryFile(size: 1000)
        let (cancels, clocks) = (Tally(), try #require(agent?.core.transport.clocks))
        let isOnLoop = Flag()
        var form = Multipart()
        form.append("file", file: file.path)
        form.append(
            "stream",
            stream: {
                AsyncStream<[UInt8]> { continuation in
                    continuation.yield([1, 2, 3])
                    continuation.onTermination = {
                        // It may block.
                        if clocks.contains(where: \.isCurrent) { isOnLoop.value.store(true, ordering: .relaxed) }
                        if case .cancelled = $0 { cancels.add() }
                    }
                }
            })
        var put = put("/upload", .multipart(form))
        if end == .deadline { put.deadline = .seconds(2) }
        let outcome = Outcome<Response>()
        let run = agent?.start(put, completion: outcome.take)
        // The head, the file and the first piece.
        try await server.waitForReceivedBytes(1200)
        switch end {
        case .cancel: run?.cancel()
        case .cancelAll: agent?.cancelAll()
        case .deadline, .letGo: break
        case .shutdown: await agent?.shutdown(grace: .zero)
        }
        if end == .letGo {
            agent = nil
            run?.cancel()
        }
        let codes: [End: RequestError.Code] = [.deadline: .timeout(.deadline), .shutdown: .shutdown]
        #expect(await outcome.code == codes[end, default: .cancelled])
        #expect(await eventually { cancels.value == 1 && openDescriptors(of: file.path).isEmpty })
        await agent?.shutdown()
        #expect(outcome.count == 1 && !isOnLoop.value.load(ordering: .relaxed))
    }

    @Test func aSlowStreamIsNotAnIdleServer() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        var put = put("/upload", .stream(once: stream))
        put.timeouts = Timeouts(idle: .milliseconds(500))
        let outcome = Outcome<Response>()
        agent.start(put, completion: outcome.take)
        continuation.yield([1, 2, 3])
        try await server.waitForRequests(1)
        await agent.pass(.milliseconds(1500), server)
        #expect(outcome.count == 0)
        continuation.finish()
        #expect(await outcome.code == nil)
        #expect(server.requests[0].body == [1, 2, 3])
        await agent.shutdown()
    }

    @Test func aRefusedRunClosesWhatItHadOpened() async throws {
        let file = try TemporaryFile(size: 1000)
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        await agent.shutdown()
        #expect(
            await code { () throws(RequestError) in try await agent.send(put("/x", .file(file.path))) } == .shutdown)
        #expect(openDescriptors(of: file.path).isEmpty)
        var broken = put("/x", .file(file.path))
        broken.headers = ["X": "a\r\nb"]
        #expect(await code { () throws(RequestError) in try await agent.send(broken) } == .invalidRequest(.headerValue))
        #expect(openDescriptors(of: file.path).isEmpty)
    }
}
