import FerrySynchronization
import FerryTesting
import FerryTransport
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Files that are loaded in several segments at once.
@Suite(.timeLimit(.minutes(2))) struct SegmentTests {
    private let four: DownloadOptions = {
        var options = DownloadOptions(segments: 4)
        options.minimumSegmentSize = 1000
        return options
    }()

    @Test func theSegmentsHaveThePriorityOfTheRun() async throws {
        let folder = try Folder()
        let (server, gate) = (try LoopbackServer(), Gate())
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.adapters = [Adapt { _, _ in await gate.pass() }]
        let transfers = TransferNotes()
        let transport = transfers.noting(makeNetworkTransport(configuration))
        let agent = NetworkAgent(configuration: configuration, transport: transport)
        let ended = StartedDownload()
        let task = agent.download(
            Get("/bytes/9999", priority: .low), to: .file(folder.file("f")), options: four, completion: ended.take)
        #expect(await eventually { gate.arrived == 1 })
        task.setPriority(.high)
        gate.open()
        _ = try await ended.file()
        #expect(transfers.all.count == 5 && transfers.all.allSatisfy { $0.ring == .high })
        await agent.shutdown()
    }

    @Test(arguments: [4_000, 4_001, 4_003, 9_999_999])
    func theFileIsWholeAndEachByteIsAskedForOnce(size: Int) async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let path = "/bytes/\(size)"
            let progresses = Progresses()
            let file = try await agent.download(
                Get(path), to: .file(folder.file("f")), options: four, progress: progresses.take)
            #expect(file.length == size && folder.bytes("f") == LoopbackServer.pattern(0..<size))
            #expect(folder.names == ["f"] && file.resumedFrom == 0)
            let ranges = server.ranges(path).compactMap { $0 }.compactMap { ContentRange($0.asContentRange(size)) }
            let asked = ranges.compactMap(\.bytes).sorted { $0.lowerBound < $1.lowerBound }
            // The first thousand tells the size of the rest, which is split into four, if it is large enough.
            #expect(asked.count == (size < 5_000 ? 4 : 5) && server.requestCount == asked.count)
            #expect(asked.first == 0...999 && asked.last?.upperBound == Int64(size) - 1)
            for (one, next) in zip(asked, asked.dropFirst()) { #expect(one.upperBound + 1 == next.lowerBound) }
            #expect(progresses.all.last?.received == Int64(size))
            #expect(server.requests.dropFirst().allSatisfy { $0.headers["If-Range"] != nil })
        }
    }

    @Test func whatIsTooSmallOrCannotBeSplitIsNot() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            // A small file comes with the first request, and so does one without ranges.
            let (first, all) = ("bytes=0-999", String?.none)
            for (path, asked) in [
                ("/bytes/1000", [first]), ("/bytes/1", [first]), ("/chunked/100000", [first]),
                ("/gzip/100000", [first]),
                // No other range could be added to this one; and an empty file has no range.
                ("/bytes/100000?etag=W/%22x%22", [first, all]), ("/bytes/0", [first, all]),
            ] {
                let before = server.requestCount
                let file = try await agent.download(Get(path), to: .file(folder.file("f")), options: four)
                let size = Int(path.split(separator: "/")[1].prefix { $0.isNumber }) ?? 0
                if !path.hasPrefix("/gzip") {
                    #expect(file.length == size && folder.bytes("f") == LoopbackServer.pattern(0..<size), "\(path)")
                }
                #expect(server.requests.dropFirst(before).map { $0.headers["Range"] } == asked, "\(path)")
                #expect(folder.names == ["f"])
            }
        }
    }

    @Test func aFileBetweenOneSegmentAndTwoComesInTwo() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let file = try await agent.download(Get("/bytes/1001"), to: .file(folder.file("f")), options: four)
            #expect(file.length == 1001 && folder.bytes("f") == LoopbackServer.pattern(0..<1001))
            #expect(server.ranges("/bytes/1001") == ["bytes=0-999", "bytes=1000-1000"])
        }
    }

    @Test func aServerWithoutRangesIsAskedForTheWholeAfterAll() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.handle("GET", "/f") { _ in
                LoopbackResponse(headers: ["ETag": "\"v\""], body: LoopbackServer.pattern(0..<10_000))
            }
            let file = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: four)
            #expect(file.length == 10_000 && folder.bytes("f") == LoopbackServer.pattern(0..<10_000))
            #expect(server.ranges("/f") == ["bytes=0-999"] && folder.names == ["f"])
            // At the rate for one of four it would take too long.
            var slow = four
            slow.bytesPerSecond = 1_000_000
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: slow)
            #expect(server.ranges("/f").dropFirst() == ["bytes=0-999", nil] && folder.names == ["f"])
        }
        // A response without a network is not split, either.
        let stub = StubTransport(
            always: .response(
                headers: ["ETag": "\"v\"", "Content-Length": "10000"], body: Array(repeating: 7, count: 10_000)))
        let agent = NetworkAgent(configuration: .test, stub: stub)
        _ = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: four)
        #expect(folder.bytes("f") == Array(repeating: 7, count: 10_000) && stub.requests.count == 1)
        await agent.shutdown()
    }

    @Test func oneThatFailsEndsAllAndIsGoneOnWith() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let size = 40_000
            let bytes = LoopbackServer.pattern(0..<size)
            // Half of each segment, and then the connection breaks.
            server.handle("GET", "/f") { request in
                guard let range = request.headers["Range"].flatMap({ ContentRange($0.asContentRange(size))?.bytes })
                else {
                    return LoopbackResponse(headers: ["ETag": "\"v1\""], body: bytes)
                }
                let part = Array(bytes[Int(range.lowerBound)...Int(range.upperBound)])
                let isFirst = range.lowerBound > 0 && (range.lowerBound - 1000) % 9_750 == 0
                return LoopbackResponse(
                    status: 206,
                    headers: [
                        "ETag": "\"v1\"", "Content-Range": "bytes \(range.lowerBound)-\(range.upperBound)/\(size)",
                        "Content-Length": "\(part.count)", "Connection": "close",
                    ], body: isFirst ? Array(part.prefix(5000)) : part)
            }
            let error = await fault { () throws(RequestError) in
                try await agent.download(Get("/f"), to: .file(folder.file("f")), options: four)
            }
            #expect(error?.code.name == "incompleteBody", "\(error as Any)")
            let metadata = try #require(
                DownloadMetadata(folder.bytes("f.ferry-meta") ?? []))
            let written = metadata.received(0)
            #expect(written >= 5000 && written <= 21_000 && folder.part("f")?.count == size)
            for segment in try #require(metadata.segments) {
                let range = Int(segment.start)..<Int(segment.start + segment.written)
                #expect(folder.part("f").map { Array($0[range]) } == Array(bytes[range]))
            }
            // Each run gets further, because a segment resumes where it broke off.
            var file: DownloadedFile?
            for _ in 0..<4 where file == nil {
                do throws(RequestError) {
                    file = try await agent.download(Get("/f"), to: .file(folder.file("f")))
                } catch {
                    #expect(error.code.name == "incompleteBody")
                }
            }
            #expect(folder.bytes("f") == bytes && folder.names == ["f"])
            #expect((file?.resumedFrom ?? 0) >= written)
        }
    }

    @Test func aFileThatChangesMeanwhileIsBegunAnew() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let (old, new) = (
                Array(repeating: UInt8(ascii: "a"), count: 40_000), Array(repeating: UInt8(ascii: "b"), count: 40_000)
            )
            // The request for the last segment gets another file, which is the only one from then on.
            server.handle("GET", "/f") { request in
                // Not before each of the four, including the lead, has requested its segment.
                if request.headers["Range"].map({ !$0.hasPrefix("bytes=0-") }) ?? false {
                    try? await server.waitForRequests(5)
                }
                guard let text = request.headers["Range"], let range = ContentRange(text.asContentRange(40_000))?.bytes,
                    range.lowerBound < 30_000
                else {
                    return LoopbackResponse(headers: ["ETag": "\"v2\""], body: new)
                }
                return LoopbackResponse(
                    status: 206,
                    headers: [
                        "ETag": "\"v1\"", "Content-Range": "bytes \(range.lowerBound)-\(range.upperBound)/40000",
                    ], body: Array(old[Int(range.lowerBound)...Int(range.upperBound)]))
            }
            let progresses = Progresses()
            let file = try await agent.download(
                Get("/f"), to: .file(folder.file("f")), options: four, progress: progresses.take)
            #expect(folder.bytes("f") == new && folder.names == ["f"] && file.resumedFrom == 0)
            #expect(server.ranges("/f").filter { $0 == nil }.count == 1 && server.ranges("/f").last == .some(nil))
            #expect(file.response.metrics.attempts >= 3)
            #expect(progresses.all.last?.received == 40_000 && progresses.all.last?.total == 40_000)
        }
    }

    @Test func cancelledAllOfThemEnd() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            var options = four
            options.bytesPerSecond = 400_000
            let started = StartedDownload()
            let task = agent.download(
                Get("/bytes/4000000"), to: .file(folder.file("f")), options: options, completion: started.take)
            for await progress in task.progressUpdates where progress.received > 0 { break }
            task.cancel()
            let error = await started.error()
            #expect(error?.code == .cancelled)
            #expect(folder.bytes("f") == nil && folder.names == ["f.ferry-meta", "f.ferry-part"])
            let file = try await agent.download(Get("/bytes/4000000"), to: .file(folder.file("f")), options: four)
            #expect(file.resumedFrom > 0 && folder.bytes("f") == LoopbackServer.pattern(0..<4_000_000))
        }
    }
}

extension String {
    /// The response to a `Range`, in the right form.
    fileprivate func asContentRange(_ total: Int) -> String {
        replacingOccurrences(of: "bytes=", with: "bytes ") + (hasSuffix("-") ? "\(total - 1)" : "") + "/\(total)"
    }
}
