import CWrites
import FaultTable
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Row R119: a disk that hangs while a download syncs its partial file, opens it, or gives it its name.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct HeldDiskFaultTests {
    enum Ending: CaseIterable { case cancel, deadline, shutdown }

    /// What the disk holds.
    enum Stage: CaseIterable {
        /// Opening the partial file.
        case open
        /// Deleting a partial file that has another name somewhere, when it is open and locked.
        case delete
        /// The sync of a partial file that is emptied for another file.
        case begin
        /// The sync with which the progress of segments is saved.
        case clerk
        /// The sync of the complete file.
        case place
        /// The sync of the directory, when the file has its name.
        case directory

        func hold() {
            switch self {
            case .open: opens_hold()
            case .delete: unlinks_hold()
            case .directory: directories_hold()
            case .begin, .clerk, .place: syncs_hold()
            }
        }

        /// How many calls it holds.
        var held: Int32 {
            switch self {
            case .open: opens_held()
            case .delete: unlinks_held()
            case .directory: directories_held()
            case .begin, .clerk, .place: syncs_held()
            }
        }

        func release() {
            switch self {
            case .open: opens_release()
            case .delete: unlinks_release()
            case .directory: directories_release()
            case .begin, .clerk, .place: syncs_release()
            }
        }
    }

    @Test("R119: the jobs that a hung disk leaves behind are limited", .enabled(if: writes_can_be_held()))
    func jobsThatNobodyWaitsForAreLimited() async throws {
        let folder = try Folder()
        try await withFlow(memoryBound: 16_000_000) { _, agent in
            opens_hold()
            defer { opens_release() }
            let codes = await withTaskGroup(of: RequestError.Code?.self) { group in
                for number in 0..<DiskQueue.mostLeft {
                    let target = DownloadTarget.file(folder.file("\(number)"))
                    group.addTask {
                        var request = HTTPRequest(.get, "/bytes/10")
                        request.deadline = .milliseconds(200)
                        return await fault { [request] () throws(RequestError) in
                            _ = try await agent.download(request, to: target)
                        }?.code
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(codes == Array(repeating: .timeout(.deadline), count: DiskQueue.mostLeft))
            let refused = await fault { () throws(RequestError) in
                _ = try await agent.download(Get("/bytes/10"), to: .file(folder.file("f")))
            }
            #expect(refused?.code == .fileIO && refused?.phase == .preparing)
            opens_release()
            #expect(await eventually { !DiskQueue.isExhausted })
            let file = try await agent.download(Get("/bytes/10"), to: .file(folder.file("f")))
            #expect(file.length == 10)
        }
    }

    private static let bytes = LoopbackServer.pattern(0..<300_000)
    private static let head = "HTTP/1.1 206 OK\r\nETag: \"v\"\r\n"

    /// The first piece arrives, and of the others nothing.
    private static func script(_ server: LoopbackServer) {
        server.script(
            path: "/f", uses: 1,
            [
                .send(head + "Content-Range: bytes 0-99999/300000\r\nContent-Length: 100000\r\n\r\n"),
                .sendBytes(Array(bytes[..<100_000])), .serve,
            ])
        server.script(path: "/f", uses: 2, [.keepOpen])
    }

    private static func answer(_ request: LoopbackRequest) -> LoopbackResponse {
        let ends = request.headers["Range"]?.dropFirst(6).split(separator: "-").compactMap { Int($0) } ?? []
        guard let first = ends.first, first < bytes.count else {
            return LoopbackResponse(headers: ["ETag": "\"v\""], body: bytes)
        }
        let last = ends.count > 1 ? ends[1] : bytes.count - 1
        return LoopbackResponse(
            status: 206, headers: ["ETag": "\"v\"", "Content-Range": "bytes \(first)-\(last)/\(bytes.count)"],
            body: Array(bytes[first...last]))
    }

    /// Whether no run has the partial file: it is gone, or not locked.
    private static func isFree(_ part: String) -> Bool {
        let descriptor = open(part, O_RDWR | O_CLOEXEC)
        if descriptor < 0 { return errno == ENOENT }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_EX | LOCK_NB) == 0
    }

    @Test(
        "R119: a download whose disk hangs otherwise than in a write ends in time, and has the whole file or none",
        .enabled(if: writes_can_be_held()), arguments: Stage.allCases, Ending.allCases)
    func disk(stage: Stage, ending: Ending) async throws {
        let folder = try Folder()
        try FileManager.default.createDirectory(atPath: folder.file("in.held"), withIntermediateDirectories: true)
        let name = stage == .directory ? "in.held/f" : "f"
        let server = try LoopbackServer()
        server.handle("GET", "/f") { Self.answer($0) }
        let agent = NetworkAgent()
        var request = HTTPRequest(.get, server.baseURL + "/f")
        let deadline = Duration.seconds(stage == .clerk ? 4 : 1)
        if ending == .deadline { request.deadline = deadline }
        var options = DownloadOptions()
        switch stage {
        case .open, .place, .directory: break
        case .delete:
            try folder.write([], "in.held/other")
            #expect(link(folder.file("in.held/other"), folder.file(name + ".ferry-part")) == 0)
        case .begin: try folder.leavePart(Array("another file".utf8), "f", of: server.baseURL + "/other")
        case .clerk:
            (options.segments, options.minimumSegmentSize) = (2, 100_000)
            Self.script(server)
        }
        stage.hold()
        let started = StartedDownload()
        let began = ContinuousClock.now
        let task = agent.download(request, to: .file(folder.file(name)), options: options, completion: started.take)
        #expect(await eventually { stage.held == 1 || started.calls > 0 })
        if stage == .clerk { try await server.waitForRequests(3) }
        let heldSince = ContinuousClock.now
        switch ending {
        case .cancel: task.cancel()
        case .deadline: break
        case .shutdown: await agent.shutdown(grace: .zero)
        }
        let code = await started.error()?.code
        let took = ContinuousClock.now - (ending == .deadline ? max(heldSince, began + deadline) : heldSince)
        switch ending {
        case .cancel: #expect(code == .cancelled)
        case .deadline: #expect(code == .timeout(.deadline))
        case .shutdown: #expect(code == .shutdown)
        }
        #expect(took < .seconds(2) && stage.held == 1, "\(took)")
        #expect((folder.bytes(name) != nil) == (stage == .directory))
        let next = NetworkAgent()
        let last = StartedDownload()
        switch stage {
        case .open, .directory:
            request.deadline = nil
            stage.release()
            // By now it has been created, and is not needed.
            if stage == .open { #expect(await eventually { folder.names == ["in.held"] }) }
            if stage == .directory { #expect(folder.bytes(name) == Self.bytes) }
            next.download(request, to: .file(folder.file(name)), completion: last.take)
        case .delete, .begin, .clerk, .place:
            // Nothing else writes to the part meanwhile: other runs wait for it.
            request.deadline = .milliseconds(300)
            let second = await fault { [request] () throws(RequestError) in
                try await next.download(request, to: .file(folder.file(name)))
            }
            #expect(second?.code == .timeout(.deadline))
            request.deadline = nil
            next.download(request, to: .file(folder.file(name)), completion: last.take)
            stage.release()
        }
        #expect(try await last.file().resumedFrom == (stage == .clerk ? 100_000 : 0))
        #expect(folder.bytes(name) == Self.bytes)
        #expect(await eventually { folder.names.count == (stage == .directory ? 1 : 2) }, "\(folder.names)")
        await agent.shutdown()
        await next.shutdown()
    }

    @Test(
        "R119: a download that is cancelled while its file is synced leaves a part, also if the sync ends in time",
        .enabled(if: writes_can_be_held()))
    func cancelledBeforeTheName() async throws {
        let folder = try Folder()
        let server = try LoopbackServer()
        server.handle("GET", "/f") { Self.answer($0) }
        let agent = NetworkAgent()
        for _ in 0..<10 {
            syncs_hold()
            let path = folder.file("f")
            let run = Task {
                await fault { () throws(RequestError) in
                    try await agent.download(HTTPRequest(.get, server.baseURL + "/f"), to: .file(path))
                }
            }
            #expect(await eventually { syncs_held() == 1 })
            run.cancel()
            // Usually within the time that the run waits for the disk.
            syncs_release()
            #expect(await run.value?.code == .cancelled)
            #expect(await eventually { Self.isFree(path + ".ferry-part") })
            #expect(folder.bytes("f") == nil && folder.part("f") == Self.bytes)
            unlink(path + ".ferry-part")
            unlink(path + ".ferry-meta")
        }
        await agent.shutdown()
    }
}
