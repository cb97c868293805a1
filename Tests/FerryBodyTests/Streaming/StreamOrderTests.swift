import FerryTesting
import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The order in which hooks and observers are told of the end of a stream.
@Suite(.timeLimit(.minutes(1))) struct StreamOrderTests {
    /// How it ends.
    enum Case: CaseIterable, Sendable { case success, build, status, transport, body, left, cancelled, tooLarge }

    private let book = Logbook()

    private func play(_ what: Case, _ server: LoopbackServer, _ agent: NetworkAgent) async throws {
        let cut = head("200 OK", "Content-Length: 1000000\r\n") + "abc"
        var request = LoggedRequest(book)
        switch what {
        case .success: server.script(path: "/x", [.send(head("200 OK", "Content-Length: 3\r\n") + "abc"), .serve])
        case .build: request.path = "http:// h"
        case .status: request.path = "/status/404"
        case .transport: server.script(path: "/x", [.expectHead, .close])
        case .body: server.script(path: "/x", [.send(cut), .close])
        case .left, .cancelled, .tooLarge: server.script(path: "/x", [.send(cut), .keepOpen])
        }
        let response: StreamedResponse
        do throws(RequestError) {
            response = try await agent.stream(request)
        } catch {
            return book.note("thrown \(error.code.name)")
        }
        book.note("head")
        switch what {
        case .left: break
        case .tooLarge: _ = try? await response.body.collect(upTo: 1)
        case .cancelled:
            let task = Task {
                var bytes = 0
                return await response.body.failure(into: &bytes)
            }
            task.cancel()
            if let error = await task.value { book.note("thrown \(error.code.name)") }
        default:
            var bytes = 0
            if let error = await response.body.failure(into: &bytes) { book.note("thrown \(error.code.name)") }
        }
    }

    private func script(_ what: Case) -> [String] {
        let code: String? =
            switch what {
            case .success: nil
            case .build: "invalidURL"
            case .status: "invalidStatusCode"
            case .transport: "connectionClosed"
            case .body: "incompleteBody"
            case .left, .cancelled: "cancelled"
            case .tooLarge: "responseTooLarge"
            }
        let word = code == nil ? "finished" : code == "cancelled" ? "cancelled" : "failed"
        var script = ["o willStart"]
        switch what {
        case .build, .status, .transport: break
        default: script.append("head")
        }
        if let code { script.append("failurePreprocessor \(code)") }
        script += ["o metrics", "o willStop \(word)"]
        if let code { script.append("willDeliver \(code)") }
        script.append("o didStop \(word)")
        switch what {
        case .success, .left, .tooLarge: break
        default: script.append("thrown \(code ?? "")")
        }
        return script
    }

    @Test("Hooks and observers are told of the end of a stream like that of any other run", arguments: Case.allCases)
    func order(of what: Case) async throws {
        try await withFlow {
            $0.observers = [LoggingObserver("o", book)]
        } _: { server, agent in
            try await play(what, server, agent)
            #expect(book.events == script(what))
        }
    }
}

/// What becomes of a body that nobody needs.
@Suite(.timeLimit(.minutes(1))) struct AbandonedStreamTests {
    /// Some kilobytes may become gigabytes, and the event loop would decode them without a pause.
    @Test func aShortBodyIsNotDecodedToItsEndIfThatIsLong() async {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        let run = StreamRun(TransferRequest(url: "http://h/x"), tag: nil, core: agent.core)
        let piece = [UInt8](repeating: 0, count: 16 * 1024)
        func receive() -> TransferFlow { piece.withUnsafeBytes { run.received(chunk: $0) } }
        #expect(receive() == .proceed)
        run.abandon(expecting: 9000, isEncoded: true)
        #expect((0..<4).allSatisfy { _ in receive() == .proceed })
        #expect(receive() == .pause)
        await agent.shutdown()
    }
}
