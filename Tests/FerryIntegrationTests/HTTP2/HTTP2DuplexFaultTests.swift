import Ferry
import FerrySynchronization
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Exchanges over HTTP/2 that one side ends early.
@Suite(.timeLimit(.minutes(2))) struct HTTP2DuplexFaultTests {
    private static let piece = [UInt8](repeating: 0x61, count: 64 * 1024)

    private static func writeOn(_ body: RequestBodyWriter) async throws {
        while true { try await body.write(piece) }
    }

    // MARK: By the closure

    enum Ending: CaseIterable, Sendable {
        case returns, throwsItsOwn, childThrows, cancelled, cancelledAll, shutdown, deadline, idle

        /// The error of the exchange.
        var code: RequestError.Code? {
            switch self {
            case .returns, .throwsItsOwn, .childThrows: nil
            case .cancelled, .cancelledAll: .cancelled
            case .shutdown: .shutdown
            case .deadline: .timeout(.deadline)
            case .idle: .timeout(.read)
            }
        }
    }

    /// Without a window the writer waits, with an echo the reader.
    @Test(arguments: Ending.allCases, ["stall", "echo"]) func anUnfinishedBodyNeverLooksComplete(
        ending: Ending, path: String
    ) async throws {
        try await withLive(.negotiated, { if ending == .idle { $0.timeouts.idle = .seconds(1) } }) { agent, live in
            var request = live.request(path)
            if ending == .deadline { request.deadline = .seconds(1) }
            let task = Task { [request] in
                try await agent.exchange(request) { response, body in
                    try await body.write("here")
                    _ = try await response.head
                    switch ending {
                    case .returns: return
                    case .throwsItsOwn: throw Oops()
                    case .childThrows:
                        async let _: Void = Self.writeOn(body)
                        // Leaving the scope cancels the child.
                        throw Oops()
                    case .cancelled, .cancelledAll, .shutdown, .deadline, .idle:
                        if path == "stall" {
                            try await Self.writeOn(body)
                        } else {
                            _ = try await response.body.collect(upTo: 100)
                        }
                    }
                }
            }
            try await live.arrival()
            switch ending {
            case .cancelled: task.cancel()
            case .cancelledAll: agent.cancelAll()
            case .shutdown: await agent.shutdown(grace: .zero)
            case .returns, .throwsItsOwn, .childThrows, .deadline, .idle: break
            }
            if let code = ending.code {
                let error = await exchangeError { try await task.value }
                #expect(error?.code == code, "\(String(describing: error))")
            } else if ending == .returns {
                try await task.value
            } else {
                await #expect(throws: Oops.self) { try await task.value }
            }
            let end = try await live.ends()[0]
            #expect(end.end != .ended, "\(end)")
            if ending == .shutdown { return }
            #expect(try await agent.echo("next", live.request()) == "next")
        }
    }

    @Test func aClosureMayLeaveTheRestUnsent() async throws {
        try await withLive { agent, live in
            let text = try await agent.exchange(live.request("early/5")) { response, body in
                try await body.write([1, 2, 3])
                return try await response.body.collect(upTo: 5)
            }
            #expect(text == Data(Nginx.pattern(5)))
            let end = try await live.ends()[0]
            #expect(end.end != .ended, "\(end)")
            #expect(try await agent.echo("next", live.request()) == "next")
        }
    }

    // MARK: By time

    @Test(arguments: HTTP2Way.allCases) func aWriterWithoutAWindowIsIdle(way: HTTP2Way) async throws {
        try await withLive(way, { $0.timeouts.idle = .seconds(1) }) { agent, live in
            let written = Atomic(0)
            let error = await exchangeError {
                try await agent.exchange(live.request("stall")) { response, body in
                    _ = try await response.head
                    while true {
                        try await body.write(Self.piece)
                        written.add(Self.piece.count, ordering: .relaxed)
                    }
                }
            }
            #expect(error?.code == .timeout(.read), "\(String(describing: error))")
            // The buffer ahead of the socket has 256 KiB, and the window 64 KiB.
            let count = written.load(ordering: .relaxed)
            #expect(count < 600_000, "\(count) bytes")
            let end = try await live.ends()[0]
            #expect(end.end != .ended && end.length < 65_536, "\(end)")
        }
    }

    /// The writer waits for the server, which waits for the reader, who waits for the writer.
    @Test(arguments: HTTP2Way.allCases) func anEchoThatNobodyReadsIsIdle(way: HTTP2Way) async throws {
        try await withLive(way, { $0.timeouts.idle = .seconds(1) }) { agent, live in
            let written = Atomic(0)
            let error = await exchangeError {
                try await agent.exchange(live.request()) { response, body in
                    _ = try await response.head
                    while true {
                        try await body.write(Self.piece)
                        written.add(Self.piece.count, ordering: .relaxed)
                    }
                }
            }
            #expect(error?.code == .timeout(.read), "\(String(describing: error))")
            let count = written.load(ordering: .relaxed)
            #expect(count < 32_000_000, "what windows and sockets hold, and no more: \(count) bytes")
        }
    }

    // MARK: By a reset

    /// RFC 9113, 8.1: a server that does not need the rest of a request may end the stream with NO_ERROR.
    @Test(arguments: HTTP2Way.allCases) func aResetAfterTheResponseStopsTheWriter(way: HTTP2Way) async throws {
        try await withLive(way) { agent, live in
            let error = await exchangeError {
                try await agent.exchange(live.request("early-reset/0")) { response, body in
                    #expect(try await response.body.collect(upTo: 10) == Data("hello".utf8))
                    try await Self.writeOn(body)
                }
            }
            #expect(error?.code == .uploadStopped && error?.response?.status == 200, "\(String(describing: error))")
            try await agent.expectEcho("next", live.request())
        }
    }

    @Test(arguments: [0, 2, 8]) func aResetAfterTheResponseLosesNothingOfIt(code: Int) async throws {
        try await withLive { agent, live in
            for path in ["early-reset/\(code)", "early-reset/\(code)?after=4", "early-reset/\(code)?length=5"] {
                let text = try await agent.exchange(live.request(path)) { response, body in
                    // The reset may be faster.
                    try? await body.write("here")
                    return try await response.body.collect(upTo: 10)
                }
                #expect(text == Data("hello".utf8))
            }
            #expect(try await agent.echo("next", live.request()) == "next")
        }
    }

    /// Not even if as much has arrived as was announced. A code that says that the request was not processed (7) does
    /// not make it be sent again, because its response had begun.
    @Test(arguments: [0, 2, 7, 8, 11], ["", "?length=5", "?after=4"]) func aResetBeforeTheEndOfTheResponseIsAnError(
        code: Int, query: String
    ) async throws {
        let faults: [Int: RequestError.Code.HTTP2Fault] = [2: .internal, 8: .cancel, 11: .enhanceYourCalm]
        try await withLive { agent, live in
            let read = Atomic(0)
            let error = await exchangeError {
                try await agent.exchange(live.request("reset-open/\(code)\(query)")) { response, body in
                    try await body.write("here")
                    for try await piece in try await response.body { read.add(piece.count, ordering: .relaxed) }
                }
            }
            #expect(error?.code == .http2Stream(faults[code] ?? .other), "\(String(describing: error))")
            let count = read.load(ordering: .relaxed)
            #expect(count == 0 || count == 5)
            let requests = try live.requests.count
            #expect(requests == 1)
            try await agent.expectEcho("next", live.request())
        }
    }

    @Test func aResetFailsTheWriter() async throws {
        try await withLive { agent, live in
            let error = await exchangeError {
                try await agent.exchange(live.request("reset-open/8?after=4")) { _, body in
                    try await Self.writeOn(body)
                }
            }
            #expect(error?.code == .http2Stream(.cancel), "\(String(describing: error))")
        }
    }

    @Test(arguments: HTTP2Way.allCases) func anEndOfTheConnectionIsNoEndOfTheResponse(way: HTTP2Way) async throws {
        try await withLive(way) { agent, live in
            let error = await exchangeError {
                try await agent.exchange(live.request("cut/3")) { response, _ in
                    _ = try await response.body.collect(upTo: 10)
                }
            }
            #expect(error?.code == .incompleteBody(expected: nil, got: 3), "\(String(describing: error))")
            try await agent.expectEcho("next", live.request())
        }
    }

    @Test(arguments: ["early/3?length=10", "early/30?length=10"]) func aWrongLengthIsAnError(
        path: String
    ) async throws {
        try await withLive { agent, live in
            let error = await exchangeError {
                try await agent.exchange(live.request(path)) { response, _ in
                    _ = try await response.body.collect(upTo: 100)
                }
            }
            #expect(error?.is(.malformedResponse) == true, "\(String(describing: error))")
            try await agent.expectEcho("next", live.request())
        }
    }

    // MARK: By the status

    @Test(arguments: HTTP2Way.allCases) func aRefusalStopsTheWriter(way: HTTP2Way) async throws {
        try await withLive(way) { agent, live in
            var request = live.request("status/413?after=3")
            let refused = await exchangeError {
                try await agent.exchange(request) { _, body in try await Self.writeOn(body) }
            }
            #expect(refused?.code == .invalidStatusCode(413), "\(String(describing: refused))")
            #expect(refused?.response?.body == Array("no".utf8))
            request.statusValidation = .any
            let stopped = await exchangeError {
                try await agent.exchange(request) { response, body in
                    try await body.write([1, 2, 3])
                    #expect(try await response.head.status == 413)
                    #expect(try await response.body.collect(upTo: 10) == Data("no".utf8))
                    try await Self.writeOn(body)
                }
            }
            #expect(stopped?.code == .uploadStopped && stopped?.status == 413, "\(String(describing: stopped))")
            let ends = try await live.ends(2)
            #expect(ends.allSatisfy { $0.end != .ended }, "\(ends)")
            #expect(try await agent.echo("next", live.request()) == "next")
        }
    }

    @Test(arguments: HTTP2Way.allCases) func aRedirectIsFollowedAsLongAsNothingWasSent(way: HTTP2Way) async throws {
        try await withLive(way) { agent, live in
            let moved = "status/307?location=/live/echo%3Fid%3D\(live.mark)"
            let text = try await agent.exchange(live.request(moved)) { response, body in
                #expect(try await response.head.redirects.count == 1)
                try await body.write("here")
                try body.finish()
                return try await response.body.collect(upTo: 100)
            }
            #expect(text == Data("here".utf8))
            let error = await exchangeError {
                try await agent.exchange(live.request(moved + "&after=4")) { response, body in
                    try await body.write("here")
                    _ = try await response.head
                }
            }
            #expect(error?.code == .bodyNotReplayable, "\(String(describing: error))")
            #expect(try live.requests.count == 3)
        }
    }

    /// A 303 leads to a GET, which has no body.
    @Test func aRedirectToGETStopsTheWriter() async throws {
        try await withLive { agent, live in
            let request = live.request("status/303?after=4&location=/bytes/1000%3Fid%3D\(live.mark)")
            let error = await exchangeError {
                try await agent.exchange(request) { response, body in
                    try await body.write("here")
                    #expect(try await response.body.collect(upTo: 1_000) == Data(Nginx.pattern(1_000)))
                    try await Self.writeOn(body)
                }
            }
            #expect(error?.code == .uploadStopped && error?.response?.status == 200, "\(String(describing: error))")
            let methods = try live.requests.map(\.method)
            #expect(methods == ["POST", "GET"])
        }
    }

    // MARK: By a refused stream, and by GOAWAY

    @Test(arguments: HTTP2Way.allCases, ["refuse/1", "goaway-before"])
    func anUnprocessedRequestIsRepeatedBeforeTheFirstByte(way: HTTP2Way, path: String) async throws {
        try await withLive(way) { agent, live in
            let text = try await agent.exchange(live.request(path)) { response, body in
                #expect(try await response.head.attempts == 2)
                try await body.write("here")
                try body.finish()
                return try await response.body.collect(upTo: 100)
            }
            #expect(text == Data("here".utf8))
            let requests = try live.requests
            #expect(requests.count == 2)
            #expect(path == "refuse/1" || Set(requests.map(\.connection)).count == 2)
        }
    }

    @Test(arguments: ["refuse/1?after=4", "goaway-before?after=4"])
    func anUnprocessedRequestIsNotRepeatedAfterTheFirstByte(path: String) async throws {
        try await withLive { agent, live in
            let error = await exchangeError {
                try await agent.exchange(live.request(path)) { response, body in
                    try await body.write("here")
                    _ = try await response.head
                }
            }
            #expect(error?.code == .http2Stream(.refused), "\(String(describing: error))")
            let count = try live.requests.count
            #expect(count == 1)
            try await agent.expectEcho("next", live.request())
        }
    }

    @Test func aStreamThatIsAlwaysRefusedIsNotRepeatedForEver() async throws {
        try await withLive { agent, live in
            let error = await exchangeError {
                try await agent.exchange(live.request("refuse/1000")) { response, _ in _ = try await response.head }
            }
            #expect(error?.code == .http2Stream(.refused), "\(String(describing: error))")
            let count = try live.requests.count
            #expect(count == 3)
        }
    }

    @Test(arguments: HTTP2Way.allCases) func aStreamBeforeTheEndOfItsConnectionGoesOn(way: HTTP2Way) async throws {
        try await withLive(way) { agent, live in
            try await agent.exchange(live.request("goaway-after")) { response, body in
                _ = try await response.head
                for _ in 0..<10 {
                    try await body.write("here")
                    #expect(try await response.next() == Data("here".utf8))
                }
                try body.finish()
                #expect(try await response.next() == nil)
            }
            #expect(try await live.ends()[0].end == .ended)
            #expect(try await agent.echo("next", live.request()) == "next")
            #expect(try Set(live.requests.map(\.connection)).count == 2, "the connection is not used again")
        }
    }

    // MARK: By a flood

    @Test func aFewSettingsDisturbNothing() async throws {
        try await withLive { agent, live in
            try await agent.expectEcho("here", live.request("flood/500"))
        }
    }

    /// The server does not read meanwhile. Whether the client gives up is up to it, but it must come to an end.
    @Test(arguments: [HTTP2Way.negotiated, .plain]) func aFloodOfSettingsEndsOrFails(way: HTTP2Way) async throws {
        try await withLive(way) { agent, live in
            var request = live.request("flood/1000000")
            request.deadline = .seconds(60)
            do {
                try await agent.expectEcho("here", request)
            } catch let error as RequestError {
                #expect(!error.is(.timeout), "\(error)")
            }
            try await agent.expectEcho("next", live.request())
        }
    }

    @Test func aFloodOfSettingsDoesNotHoldUpTheDeadline() async throws {
        try await withLive { agent, live in
            var request = live.request("flood/100000000")
            request.deadline = .seconds(1)
            let start = ContinuousClock.now
            _ = await exchangeError {
                try await agent.exchange(request) { response, _ in _ = try await response.body.collect(upTo: 10) }
            }
            #expect(ContinuousClock.now - start < .seconds(20))
        }
    }
}
