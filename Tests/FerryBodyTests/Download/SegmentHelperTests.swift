import FerrySynchronization
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Helpers that load segments beside the lead, and those that do not.
@Suite(.timeLimit(.minutes(1))) struct SegmentHelperTests {
    private let bytes = LoopbackServer.pattern(0..<9000)

    /// Responds with the requested range of nine thousand bytes.
    private func answer(_ request: LoopbackRequest) -> LoopbackResponse {
        let range = range(request)
        return LoopbackResponse(
            status: 206,
            headers: ["ETag": "\"v\"", "Content-Range": "bytes \(range.lowerBound)-\(range.upperBound)/9000"],
            body: Array(bytes[range]))
    }

    /// The head of the response to the first request, whose body never comes.
    private func headOfFirstPiece(until signal: String) -> LoopbackScript {
        [
            .expectHead,
            .send(
                head(
                    "206 Partial Content",
                    "ETag: \"v\"\r\nContent-Range: bytes 0-999/9000\r\nContent-Length: 1000\r\n")),
            .wait(signal), .close,
        ]
    }

    private func range(_ request: LoopbackRequest) -> ClosedRange<Int> {
        let ends = request.headers["Range"]?.dropFirst(6).split(separator: "-").compactMap { Int($0) } ?? []
        return (ends.first ?? 0)...(ends.count > 1 ? ends[1] : 8999)
    }

    /// Responds differently each time.
    private struct Keyed: Request {
        private static let count = Atomic<Int>(0)
        var path: String { "/f" }
        var headers: Headers { ["Idempotency-Key": "\(Self.count.add(1, ordering: .relaxed).newValue)"] }
    }

    @Test func everySegmentCarriesTheKeyThatTheRunBeganWith() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.handle("GET", "/f") { answer($0) }
            var options = DownloadOptions(segments: 3)
            options.minimumSegmentSize = 2000
            _ = try await agent.download(Keyed(), to: .file(folder.file("f")), options: options)
            let keys = server.requests.map { $0.headers["Idempotency-Key"] }
            #expect(folder.bytes("f") == bytes && keys.count > 2 && Set(keys).count == 1)
        }
    }

    /// A replica still has the version of the file that is there.
    @Test func aSegmentIsNotComparedWithTheFileThatIsThere() async throws {
        let folder = try Folder()
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            var options = DownloadOptions(segments: 3)
            (options.minimumSegmentSize, options.skipsUnchanged) = (1000, true)
            let old = Array("old".utf8)
            server.script(
                path: "/f", uses: 1,
                [
                    .expectHead, .send(head("200 OK", "ETag: \"old\"\r\nContent-Length: 3\r\n")), .sendBytes(old),
                    .serve,
                ])
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: options)
            #expect(folder.bytes("f") == old)
            server.script(path: "/f", uses: 1, headOfFirstPiece(until: "helped"))
            server.handle("GET", "/f") { request in
                server.signal("helped")
                if request.headers["If-None-Match"] != nil {
                    return LoopbackResponse(status: 304, headers: ["ETag": "\"old\""])
                }
                return answer(request)
            }
            let file = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: options)
            #expect(!file.isUnchanged && folder.bytes("f") == bytes && folder.names == ["f"])
            let conditions = server.requests.map { $0.headers["If-None-Match"] }
            #expect(conditions.compactMap { $0 } == ["\"old\""], "\(conditions)")
        }
    }

    @Test(arguments: 1...3) func anInterceptorThatRespondsMidwayHasTheWholeFile(calls: Int) async throws {
        let folder = try Folder()
        let whole = Array("intercepted".utf8)
        let asked = Atomic<Int>(0)
        try await withFlow {
            $0.interceptors = [
                Intercept { request, _ in
                    if !request.url.hasSuffix("/f") { return nil }
                    if asked.add(1, ordering: .relaxed).oldValue < calls { return nil }
                    return InterceptedResponse(status: 200, headers: ["ETag": "\"w\""], body: Data(whole))
                }
            ]
        } _: { server, agent in
            server.handle("GET", "/f") { answer($0) }
            var options = DownloadOptions(segments: 3)
            options.minimumSegmentSize = 1000
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: options)
            #expect(folder.bytes("f") == whole && folder.names == ["f"])
        }
    }

    /// The lead is still waiting for the first piece.
    @Test func anInterceptorThatRespondsToAHelperHasTheWholeFile() async throws {
        let folder = try Folder()
        let whole = Array("intercepted".utf8)
        let asked = Atomic<Int>(0)
        try await withFlow {
            $0.interceptors = [
                Intercept { request, _ in
                    if !request.url.hasSuffix("/f") { return nil }
                    if asked.add(1, ordering: .relaxed).oldValue < 3 { return nil }
                    return InterceptedResponse(status: 200, headers: ["ETag": "\"w\""], body: Data(whole))
                }
            ]
        } _: { server, agent in
            server.script(path: "/f", uses: 1, headOfFirstPiece(until: "over"))
            server.handle("GET", "/f") { answer($0) }
            var options = DownloadOptions(segments: 3)
            options.minimumSegmentSize = 1000
            defer { server.signal("over") }
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: options)
            #expect(folder.bytes("f") == whole && folder.names == ["f"])
        }
    }

    @Test func goneOnWithInOneSegmentNobodyHelps() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            var metadata = DownloadMetadata(url: server.baseURL + "/f")
            (metadata.validator, metadata.total) = (.entityTag("\"v\""), 9000)
            metadata.segments = [0, 3000, 6000].map { .init(start: $0, end: $0 + 3000, written: 1000) }
            try folder.write(bytes.indices.map { $0 % 3000 < 1000 ? bytes[$0] : 0 }, "f.ferry-part")
            try folder.write(metadata.bytes, "f.ferry-meta")
            let atOnce = Mutex((now: 0, most: 0))
            server.handle("GET", "/f") { request in
                atOnce.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                // A helper would send a request meanwhile: the loop has no other work.
                await agent.pass(.milliseconds(50), server)
                atOnce.withLock { $0.now -= 1 }
                return answer(request)
            }
            let file = try await agent.download(
                Get("/f"), to: .file(folder.file("f")), options: DownloadOptions(bytesPerSecond: 1_000_000))
            #expect(file.resumedFrom == 3000 && folder.bytes("f") == bytes && folder.names == ["f"])
            #expect(server.ranges("/f") == ["bytes=1000-2999", "bytes=4000-5999", "bytes=7000-8999"])
            #expect(atOnce.withLock { $0.most } == 1, "the rate is for all of them together")
        }
    }

    @Test func whatAHelperFailsWithEndsTheLeadWhateverItDoes() async throws {
        let folder = try Folder()
        try await withFlow {
            $0.retryPolicy = .exponential(
                maxAttempts: 3, baseDelay: .seconds(300), maxDelay: .seconds(300), jitter: .none)
        } _: { server, agent in
            var two = DownloadOptions(segments: 2)
            two.minimumSegmentSize = 1000
            let hasLeadFailed = OneShot<Void>()
            server.handle("GET", "/f") { request in
                switch range(request).lowerBound {
                case 0: return answer(request)
                case 1000:
                    await hasLeadFailed.value()
                    return LoopbackResponse(status: 404)
                default:
                    hasLeadFailed.finish(())
                    // It would wait for five minutes.
                    return LoopbackResponse(status: 503)
                }
            }
            let error = await fault { () throws(RequestError) in
                try await agent.download(Get("/f"), to: .file(folder.file("f")), options: two)
            }
            #expect(error?.code == .invalidStatusCode(404))
            #expect(folder.names == ["f.ferry-meta", "f.ferry-part"])
        }
    }

    @Test func whatAHelperLearnsOfAnotherFileBeginsItAnewWhateverTheLeadDoes() async throws {
        let folder = try Folder()
        let new = [UInt8](repeating: 7, count: 5000)
        for leadWaits in [true, false] {
            try await withFlow {
                $0.retryPolicy = .exponential(
                    maxAttempts: 3, baseDelay: .seconds(300), maxDelay: .seconds(300), jitter: .none)
            } _: { server, agent in
                var two = DownloadOptions(segments: 2)
                two.minimumSegmentSize = 1000
                let isLeadBusy = OneShot<Void>()
                server.handle("GET", "/f") { request in
                    guard request.headers["Range"] != nil else {
                        return LoopbackResponse(headers: ["ETag": "\"w\""], body: new)
                    }
                    switch range(request).lowerBound {
                    case 0: return answer(request)
                    case 1000:
                        await isLeadBusy.value()
                        return LoopbackResponse(headers: ["ETag": "\"w\""], body: new)
                    default:
                        isLeadBusy.finish(())
                        // It waits for five minutes, to be sent again or for the head.
                        if !leadWaits { try? await Task.sleep(for: .seconds(300)) }
                        return LoopbackResponse(status: 503)
                    }
                }
                let file = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: two)
                #expect(file.length == 5000 && folder.bytes("f") == new && folder.names == ["f"])
                #expect(server.ranges("/f").filter { $0 == nil }.count == 1)
            }
        }
    }

    @Test func aFileThatIsBegunAnewIsNotBegunAThirdTime() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            var two = DownloadOptions(segments: 2)
            two.minimumSegmentSize = 1000
            server.handle("GET", "/f") { request in
                if request.headers["Range"].map({ $0 != "bytes=0-999" }) ?? true {
                    // A range even for a request of everything.
                    return LoopbackResponse(
                        status: 206, headers: ["ETag": "\"w\"", "Content-Range": "bytes 5-9/9000"],
                        body: Array(bytes[5...9]))
                }
                return answer(request)
            }
            let error = await fault { () throws(RequestError) in
                try await agent.download(Get("/f"), to: .file(folder.file("f")), options: two)
            }
            #expect(error?.code == .resumeMismatch && folder.bytes("f") == nil)
            #expect(server.ranges("/f").filter { $0 == nil }.count == 1)
        }
    }

    @Test("Only the lead begins a file anew, even if a helper is refused before the helpers are counted")
    func aHelperBeginsNothingAnew() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.handle("GET", "/f") { _ in LoopbackResponse(headers: ["ETag": "\"w\""], body: [1, 2, 3]) }
            let (core, request) = (agent.core, Get("/f"))
            let servers = core.builder.servers
            let snapshot = try core.builder.snapshot(of: request, at: servers)
            let call = Call(
                request, .success(snapshot), at: servers, url: server.baseURL + "/f", watch: nil, by: core)
            let plan = DownloadPlan(
                request, to: .file(folder.file("f")), DownloadOptions(segments: 2), url: call.url,
                by: core.builder)
            let download = Download(plan, DownloadMeter(on: core.callbackQueue))
            download.state.withLock { state in
                (state.metadata.validator, state.metadata.total) = (.entityTag("\"v\""), 9000)
                state.metadata.segments = [0, 4500].map { .init(start: $0, end: $0 + 4500) }
            }
            let helper = DownloadWorker(download, call, segment: 1)
            let answer = await Ferry.Exchange.run(
                call, RunControl(tag: nil, isRefresh: false), after: .unsent, helper, by: core)
            let error = await fault { () throws(RequestError) in
                _ = try core.builder.response(of: answer, url: call.url)
            }
            #expect(error?.code == .resumeMismatch)
            #expect(download.state.withLock { $0.isOutdated && !$0.hasRestarted })
            #expect(server.ranges("/f") == ["bytes=4500-8999"])
        }
    }

    @Test("A server that does not confirm the version of its parts is asked for none any more")
    func unconfirmedParts() async throws {
        let folder = try Folder()
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            let cut: LoopbackScript = [
                .send(head("200 OK", "ETag: \"v\"\r\nContent-Length: 9000\r\n")), .sendBytes(Array(bytes[..<4000])),
                .close,
            ]
            server.script(path: "/f", uses: 1, cut)
            server.script(
                path: "/f", uses: 1,
                [
                    .send(head("206 Part", "Content-Range: bytes 4000-8999/9000\r\nContent-Length: 5000\r\n")),
                    .sendBytes(Array(bytes[4000...])), .serve,
                ])
            server.script(path: "/f", uses: 1, cut)
            server.script(
                path: "/f", uses: 1,
                [.send(head("200 OK", "ETag: \"v\"\r\nContent-Length: 9000\r\n")), .sendBytes(bytes), .serve])
            let file = try await agent.download(Get("/f"), to: .file(folder.file("f")))
            #expect(file.length == 9000 && folder.bytes("f") == bytes && folder.names == ["f"])
            #expect(server.ranges("/f") == [nil, "bytes=4000-", nil, nil])
        }
    }
}
