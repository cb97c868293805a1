import FaultTable
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Rows R113 and R114: tokens that expire while runs are in progress, and tokens that a resource never accepts.
@Suite(.timeLimit(.minutes(1)), .faultTable) struct TokenFaultTests {
    // MARK: R113

    /// A file whose segments break off, and whose tokens expire twice meanwhile.
    private final class ExpiringFile: Sendable {
        private struct State {
            var hasFirst = false
            /// The first bytes of the ranges that have broken off.
            var broken: Set<Int> = []
        }

        let bytes: [UInt8]
        /// The first bytes of the ranges that break off after a thousand bytes.
        private let starts: [Int]
        private let segments: Int
        /// Passed by the first refusals of all segment loaders.
        private let refusals = Gate()
        /// Passed before a range that breaks off is sent.
        let pieces = Gate()
        private let opensPieces: Bool
        private let state = Mutex(State())

        init(segments: Int, opensPieces: Bool = true) {
            self.segments = segments
            self.opensPieces = opensPieces
            // With segments, the first thousand bytes are requested alone.
            starts = segments == 1 ? [0, 1000] : (0..<segments).map { 1000 + 2000 * $0 }
            bytes = LoopbackServer.pattern(0..<(1000 + 2000 * segments))
        }

        func serve(on server: LoopbackServer, _ tokens: TokenServer) {
            server.handle("/file") { [self] request in
                let ends = request.headers["Range"]?.dropFirst(6).split(separator: "-").compactMap { Int($0) } ?? []
                let first = ends.first ?? 0
                let range = first...(ends.count > 1 ? ends[1] : bytes.count - 1)
                guard tokens.isValid(request) else {
                    if first > 0, segments > 1 { await refusals.pass(openingAt: segments) }
                    return LoopbackResponse(status: 401)
                }
                let breaksOff = state.withLock { starts.contains(first) && !$0.broken.contains(first) }
                if breaksOff { await pieces.pass(openingAt: !opensPieces ? .max : segments) }
                let expires = state.withLock { state in
                    if breaksOff { state.broken.insert(first) }
                    defer { state.hasFirst = true }
                    if segments == 1 { return breaksOff }
                    return !state.hasFirst || breaksOff && state.broken.count == segments
                }
                if expires { tokens.expire() }
                let body = Array(bytes[range])
                var headers: LoopbackHeaders = ["ETag": "\"v\"", "Content-Length": "\(body.count)"]
                if !ends.isEmpty {
                    headers["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound)/\(bytes.count)"
                }
                if breaksOff { headers["Connection"] = "close" }
                return LoopbackResponse(
                    status: ends.isEmpty ? 200 : 206, headers: headers,
                    body: breaksOff ? Array(body.prefix(1000)) : body)
            }
        }
    }

    private func options(_ segments: Int) -> DownloadOptions {
        var options = DownloadOptions(segments: segments)
        options.minimumSegmentSize = 1000
        return options
    }

    /// Until the only running transfer is the one that waits for this: then all others wait for the token.
    private func noneButTheRefresh(_ agent: NetworkAgent) async {
        _ = await eventually { agent.statistics.running == 1 }
    }

    @Test(
        "R113: a download whose token expires again and again ends whole, with one refresh for each",
        arguments: [1, 2, 4, 8])
    func segments(count: Int) async throws {
        let folder = try Folder()
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
            $0.retryPolicy = .quick
        } _: { server, agent in
            let file = ExpiringFile(segments: count)
            let tokens = TokenServer(on: server, givesOut: { await noneButTheRefresh(agent) })
            file.serve(on: server, tokens)
            let found = try await agent.download(Get("/file"), to: .file(folder.file("f")), options: options(count))
            #expect(folder.bytes("f") == file.bytes && found.length == file.bytes.count && folder.names == ["f"])
            #expect(tokens.issued == 3)
        }
    }

    @Test(
        "R113: so does one that was paused, and whose connection the server has closed meanwhile", arguments: [2, 4, 8])
    func pausedSegments(count: Int) async throws {
        let folder = try Folder()
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let file = ExpiringFile(segments: count, opensPieces: false)
            let tokens = TokenServer(on: server, givesOut: { await noneButTheRefresh(agent) })
            file.serve(on: server, tokens)
            let started = StartedDownload()
            let task = agent.download(
                Get("/file"), to: .file(folder.file("f")), options: options(count), completion: started.take)
            #expect(await eventually { file.pieces.arrived == count })
            task.pause()
            file.pieces.open()
            // Bytes that are under way may still arrive, or are held until the end of the pause. The rest is requested
            // only then, with another token.
            #expect(
                await eventually { task.download.state.withLock { $0.pouring.count + $0.waiting.count } == count })
            #expect(tokens.issued == 2)
            task.resume()
            let found = try await started.file()
            #expect(folder.bytes("f") == file.bytes && found.length == file.bytes.count && folder.names == ["f"])
            #expect(tokens.issued == 3)
        }
    }

    @Test("R113: a segmented download that waits for its token ends at once on a cancel and at its deadline")
    func segmentsEnd() async throws {
        let folder = try Folder()
        for isCancelled in [true, false] {
            try await withFlow {
                $0.authenticator = Session(token: TokenServer.expired)
            } _: { server, agent in
                let (file, gate) = (ExpiringFile(segments: 4), Gate())
                let isFirst = Mutex(true)
                let tokens = TokenServer(
                    on: server,
                    givesOut: {
                        let passes = isFirst.withLock { isFirst in
                            defer { isFirst = false }
                            return isFirst
                        }
                        if !passes { await gate.pass() }
                    })
                file.serve(on: server, tokens)
                var call = HTTPRequest(.get, "/file")
                if !isCancelled { call.deadline = .seconds(1) }
                let path = folder.file("f")
                let task = Task { [call, options = options(4)] in
                    await fault { () throws(RequestError) in
                        try await agent.download(call, to: .file(path), options: options)
                    }
                }
                #expect(await eventually { gate.arrived == 1 && agent.statistics.running == 1 })
                if isCancelled { task.cancel() }
                #expect(await task.value?.code == (isCancelled ? .cancelled : .timeout(.deadline)))
                gate.open()
            }
        }
    }

    // MARK: R114

    /// Sends to a resource that never accepts a token, one after another or at once, and returns how often a token was
    /// fetched.
    private func refreshes(
        _ count: Int, atOnce: Bool, withHealthyRuns: Bool, path: @escaping @Sendable (Int) -> String = { _ in "/never" }
    ) async throws -> Int {
        let issued = Mutex(0)
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            for index in 0..<count { server.handle(path(index)) { _ in LoopbackResponse(status: 401) } }
            // The first token is replaced for a run that is then accepted: that refresh does not count.
            if withHealthyRuns { #expect(await agent.result(Get("/data")).error == nil) }
            let before = tokens.issued
            let healthy = Task { () -> [RequestError] in
                var errors: [RequestError] = []
                while withHealthyRuns, !Task.isCancelled {
                    if let error = await agent.result(Get("/data")).error, error.code != .cancelled {
                        errors.append(error)
                    }
                }
                return errors
            }
            let refuse: @Sendable (Int) async -> Void = { index in
                let way = Way.allCases[index % 2]
                #expect(await agent.result(Get(path(index)), way).error?.code == .invalidStatusCode(401))
            }
            if atOnce {
                await withTaskGroup { group in
                    for index in 0..<count { group.addTask { await refuse(index) } }
                }
            } else {
                for index in 0..<count { await refuse(index) }
            }
            healthy.cancel()
            #expect(await healthy.value.isEmpty, "healthy runs are not held up")
            #expect(await agent.result(Get("/data")).error == nil)
            issued.withLock { $0 = tokens.issued - before }
        }
        return issued.withLock { $0 }
    }

    @Test("R114: for a resource that refuses every token, at most three are fetched in a minute")
    func refusedForEver() async throws {
        #expect(try await refreshes(100, atOnce: false, withHealthyRuns: false) == 3)
        #expect(try await refreshes(100, atOnce: true, withHealthyRuns: false) <= 3)
    }

    @Test("R114: also while other runs show that the token is good", arguments: [true, false])
    func refusedBesideHealthyRuns(atOnce: Bool) async throws {
        #expect(try await refreshes(100, atOnce: atOnce, withHealthyRuns: true) <= 3)
        #expect(try await refreshes(100, atOnce: atOnce, withHealthyRuns: true) { "/never/\($0)" } <= 3)
    }

    @Test("R114: a token that really expires is refreshed each time, however often that is")
    func expiresOften() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            for _ in 0..<10 {
                for result in await agent.resultsOfBothWays(Get("/data")) {
                    let reply = try result.get()
                    #expect(reply.status == 200)
                }
                tokens.expire()
            }
            #expect(tokens.issued == 10)
        }
    }

    // MARK: Bodies that can be read once

    @Test("An upload that can be read once is not sent again, but its token is refreshed for the next one")
    func uploadThatIsReadOnce() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            server.handle("/upload") { request in
                LoopbackResponse(status: tokens.isValid(request) ? 200 : 401, text: request.text)
            }
            for way in Way.allCases {
                var call = HTTPRequest(.put, "/upload", body: .stream(once: Pieces(pieces: [[1], [2]])))
                let error = try #require(await agent.result(call, way).error)
                #expect(error.code == .invalidStatusCode(401) && error.attempts == 1)
                call.body = .stream(once: Pieces(pieces: [[3], [4]]))
                let reply = try await agent.result(call, way).get()
                #expect(reply.attempts == 1 && reply.bytes == [3, 4])
                tokens.expire()
            }
            #expect(tokens.issued == 2)
        }
    }
}
