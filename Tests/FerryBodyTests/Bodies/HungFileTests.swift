import CWrites
import FerryTesting
import FerryTransport
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Files on a disk that hangs, as bodies.
@Suite(.timeLimit(.minutes(2)), .enabled(if: writes_can_be_held())) struct HungFileTests {
    private let path = NSTemporaryDirectory() + "/ferry-body-\(UUID().uuidString).held"
    private let bytes = LoopbackServer.pattern(0..<100_000)

    init() throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }

    private var body: FileBody { FileBody(path: path, looksInMemory: false) }

    @Test("Reads that hang stop neither tasks nor Dispatch's queues") func reads() async throws {
        defer { unlink(path) }
        reads_hold()
        let sources = try (0..<200).map { _ in try body.makeSource() }
        var space = [UInt8](repeating: 0, count: 10)
        for source in sources {
            source.open {}
            _ = space.withUnsafeMutableBytes { source.fill($0) }
        }
        // No more of them than the device has threads, and before the first of them a task runs.
        let began = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 { group.addTask { await Task.yield() } }
        }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume() }
        }
        let took = ContinuousClock.now - began
        #expect(await eventually { reads_held() == 4 })
        // On Dispatch's threads 20 reads took 19 s, as one thread is added each second. A busy machine may take one.
        #expect(took < .seconds(10), "\(took)")
        for source in sources.dropFirst(20) { source.close() }
        reads_release()
        for source in sources.prefix(20) {
            #expect(await drained(source) == bytes)
            source.close()
        }
        #expect(await eventually { openDescriptors(of: path).isEmpty })
    }

    @Test("A file that sendfile(2) cannot send at the moment is copied", arguments: [ENOMEM, EIO, ESTALE, EINVAL])
    func copies(errno: Int32) async throws {
        defer { unlink(path) }
        let server = try LoopbackServer()
        server.handle("/up") { LoopbackResponse(body: $0.body) }
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        sendfile_fails(errno)
        defer { sendfile_fails(0) }
        let reply = try await agent.send(HTTPRequest(.put, "/up", body: .file(path)))
        #expect(reply.bytes == bytes)
        await agent.shutdown()
    }

    @Test("A device that hangs takes a limited number of files") func hangs() async throws {
        defer { unlink(path) }
        reads_hold()
        var sources: [any BodySource] = []
        func add() throws {
            let source = try body.makeSource()
            source.open {}
            var space = [UInt8](repeating: 0, count: 10)
            _ = space.withUnsafeMutableBytes { source.fill($0) }
            sources.append(source)
        }
        for _ in 0..<260 { try add() }
        var fault: BodyFault?
        #expect(
            await eventually {
                do throws(BodyFault) { _ = try body.makeSource() } catch { fault = error }
                return fault != nil
            })
        #expect(fault?.message == "\(path): its file system does not respond")
        // A file of another device is not affected.
        let name = "/ferry-\(UUID().uuidString)"
        let memory = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0o600)
        defer {
            shm_unlink(name)
            close(memory)
        }
        #expect(write(memory, [1, 2, 3], 3) == 3)
        let other = try FileBody(path: "/proc/self/fd/\(memory)").makeSource()
        #expect(other.length == 3)
        reads_release()
        for source in sources { source.close() }
        #expect(await eventually { openDescriptors(of: path).isEmpty })
        let source = try body.makeSource()
        #expect(await drained(source) == bytes)
    }

    @Test("Closing that hangs does not stop the event loop") func closes() async throws {
        defer { unlink(path) }
        try await withFlow { server, agent in
            closes_hold()
            _ = try await agent.send(upload())
            #expect(server.requests.last?.bodyLength == UInt64(bytes.count))
            #expect(await eventually { closes_held() == 1 })
            let next = try await agent.get("/bytes/12")
            #expect(next.bytes.count == 12)
            closes_release()
        }
    }

    @Test("Opening that hangs delays neither the deadline of a batch or a chain nor other tasks")
    func groups() async throws {
        defer { unlink(path) }
        try await withFlow { _, agent in
            opens_hold()
            let uploads = (0..<20).map { _ in upload() }
            let (first, second) = (upload(), upload())
            let batch = await fault { () throws(RequestError) in
                _ = try await agent.send(BatchRequest(uploads).deadline(.milliseconds(200)))
            }
            let chain = await fault { () throws(RequestError) in
                _ = try await agent.send(ChainRequest(first).then { _ in second }.deadline(.milliseconds(200)))
            }
            #expect(batch?.code == .timeout(.deadline) && chain?.code == .timeout(.deadline))
            #expect(await eventually { opens_held() == 4 })
            opens_release()
        }
    }

    @Test("Opening that hangs takes a limited number of threads and of jobs") func manyOpens() async throws {
        defer { unlink(path) }
        let before = threads()
        for number in 0..<2000 { #expect(FileThreads.run(forFileAt: "/\(number)/file") {} == 0) }
        #expect(threads() - before <= 128)
        opens_hold()
        let code = await eventually { FileThreads.run(forFileAt: path) { [path] in close(open(path, O_RDONLY)) } != 0 }
        #expect(code)
        opens_release()
        #expect(await eventually { FileThreads.run(forFileAt: path) {} == 0 })
    }

    @Test("Opening that hangs on one device, in many directories, delays no other device") func devices() async throws {
        defer { unlink(path) }
        let folder = try Folder()
        let name = "/ferry-\(UUID().uuidString)"
        let memory = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0o600)
        defer {
            shm_unlink(name)
            close(memory)
        }
        var (here, there) = (stat(), stat())
        #expect(stat(folder.path, &here) == 0 && stat("/dev/shm", &there) == 0)
        try #require(here.st_dev != there.st_dev, "the folder for temporary files is in memory")
        opens_hold()
        for number in 0..<200 {
            #expect(mkdir(folder.file("\(number)"), 0o700) == 0)
            let held = folder.file("\(number)/a.held")
            #expect(FileThreads.run(forFileAt: held) { close(open(held, O_RDONLY)) } == 0)
        }
        #expect(await eventually { opens_held() == 4 })
        await withCheckedContinuation { continuation in
            #expect(FileThreads.run(forFileAt: "/dev/shm" + name) { continuation.resume() } == 0)
        }
        opens_release()
    }

    @Test("A device with many jobs at once does not hang") func burst() throws {
        defer { unlink(path) }
        for _ in 0..<10 {
            let file = open(path, O_RDONLY)
            try #require(file >= 0)
            for _ in 0..<1000 {
                #expect(FileThreads.run(for: file) {} == 0)
                #expect(!FileThreads.hang(forFileAt: path))
            }
            close(file)
        }
    }

    private func threads() -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("Threads:") }
        return line.flatMap { Int($0.dropFirst(8).trimmingCharacters(in: .whitespaces)) } ?? 0
    }

    @Test("Opening that hangs delays neither the deadline of a run with adapters nor other tasks")
    func opens() async throws {
        struct Stamp: RequestAdapter {
            func adapt(_ request: inout OutgoingRequest, of run: RunInfo) { request.headers["X-Stamp"] = "1" }
        }
        defer { unlink(path) }
        try await withFlow {
            $0.adapters = [Stamp()]
        } _: { _, agent in
            opens_hold()
            var request = upload()
            request.deadline = .milliseconds(200)
            let errors = await withTaskGroup(of: RequestError.Code?.self) { [request] group in
                for _ in 0..<20 { group.addTask { await agent.result(request).error?.code } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(errors == Array(repeating: .timeout(.deadline), count: 20))
            #expect(await eventually { opens_held() == 4 })
            opens_release()
        }
    }

    private func upload() -> HTTPRequest<Response> {
        HTTPRequest(.post, "/echo", body: RequestBody(content: .pulled(body), contentType: nil))
    }
}

/// What is sent if a file is replaced during a run.
@Suite(.timeLimit(.minutes(2))) struct ReplacedFileTests {
    @Test(
        "Every attempt sends the file that the first has opened, and it is closed at the end", arguments: Way.allCases)
    func replaced(way: Way) async throws {
        let path = NSTemporaryDirectory() + "/ferry-body-\(UUID().uuidString)"
        try Data("first".utf8).write(to: URL(fileURLWithPath: path))
        defer { unlink(path) }
        try await withFlow {
            $0.retryPolicy = .quick {
                $0.decide = { _ in
                    unlink(path)
                    try? Data("another".utf8).write(to: URL(fileURLWithPath: path))
                    return .retry
                }
            }
        } _: { server, agent in
            server.script(path: "/echo", uses: 1, unwanted(503))
            let result = await agent.result(HTTPRequest(.post, "/echo", body: .file(path)), way)
            #expect(server.requests.map(\.text) == ["first", "first"])
            #expect(result.error == nil)
            #expect(await eventually { openDescriptors(of: path + " (deleted)").isEmpty })
            _ = await agent.result(HTTPRequest(.post, "/echo", body: .file(path)), way)
            #expect(server.requests.last?.text == "another")
        }
    }

    /// Compresses the body, or sends another file that it has written.
    private struct Altering: RequestAdapter {
        let other: String?
        let runs = Tally()

        func adapt(_ request: inout OutgoingRequest, of run: RunInfo) {
            runs.add()
            if let other {
                try? Data("adapted \(runs.value)".utf8).write(to: URL(fileURLWithPath: other))
                request.body = .file(other)
            } else {
                request.body = request.body?.compressed()
            }
        }
    }

    @Test("Adapters that compress the body change no file; those that write one send it", arguments: [false, true])
    func adapted(writes: Bool) async throws {
        let folder = try Folder()
        let path = folder.file("a")
        try Data("first".utf8).write(to: URL(fileURLWithPath: path))
        try await withFlow {
            $0.adapters = [Altering(other: writes ? folder.file("b") : nil)]
            $0.retryPolicy = .quick {
                $0.decide = { _ in
                    try? Data("another".utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
                    return .retry
                }
            }
        } _: { server, agent in
            server.script(path: "/echo", uses: 1, unwanted(503))
            server.script(path: "/moved", uses: 1, unwanted(307, "Location: /echo\r\n"))
            for target in ["/echo", "/moved"] {
                try Data("first".utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
                #expect(await agent.result(HTTPRequest(.post, target, body: .file(path)), .awaited).error == nil)
            }
            #expect(server.requests.count == 4)
            if writes {
                // A redirect sends the request again as adapters have made it.
                #expect(server.requests.map(\.text) == ["adapted 1", "adapted 2", "adapted 3", "adapted 3"])
            } else {
                #expect(Set(server.requests.map(\.body)).count == 1)
            }
        }
    }

    @Test("Two files whose paths differ only in Unicode normalisation are two files") func normalised() async throws {
        let folder = try Folder()
        var form = Multipart()
        for (name, path) in [("composed", "caf\u{E9}"), ("decomposed", "cafe\u{301}")] {
            let file = folder.path + "/" + path
            let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL, 0o600)
            #expect(write(descriptor, name, name.utf8.count) == name.utf8.count)
            close(descriptor)
            form.append(name, file: file)
        }
        try await withFlow { [form] server, agent in
            try await agent.send(HTTPRequest(.post, "/echo", body: .multipart(form)))
            let text = server.requests.last?.text ?? ""
            #expect(text.contains("\r\n\r\ncomposed\r\n") && text.contains("\r\n\r\ndecomposed\r\n"))
        }
    }

    @Test("A file that another program has leased is opened when it gives it back") func leased() async throws {
        let folder = try Folder()
        let path = folder.file("leased")
        try Data("body".utf8).write(to: URL(fileURLWithPath: path))
        let descriptor = open(path, O_RDONLY)
        // fcntl(2): these are not in Swift's Glibc module. The signal is one that is ignored.
        let (setLease, getLease, setSignal) = (Int32(1024), Int32(1025), Int32(10))
        defer { close(descriptor) }
        #expect(fcntl(descriptor, setSignal, SIGURG) == 0)
        #expect(fcntl(descriptor, setLease, F_WRLCK) == 0)
        let opening = Task.detached { try ReadableFile(path).size }
        #expect(await eventually { fcntl(descriptor, getLease) != F_WRLCK })
        #expect(fcntl(descriptor, setLease, F_UNLCK) == 0)
        #expect(try await opening.value == 4)
    }

    @Test("A file is closed at the end of the run, even if the application keeps the handle")
    func handles() async throws {
        let path = NSTemporaryDirectory() + "/ferry-body-\(UUID().uuidString)"
        let folder = try Folder()
        try Data("body".utf8).write(to: URL(fileURLWithPath: path))
        defer { unlink(path) }
        let request = HTTPRequest(.post, "/echo", body: .file(path))
        try await withFlow { _, agent in
            let ended = Tally()
            let run = agent.start(request) { _ in ended.add() }
            let download = agent.download(request, to: .file(folder.file("f")), completion: { _ in ended.add() })
            #expect(await eventually { ended.value == 2 })
            #expect(await eventually { openDescriptors(of: path).isEmpty })
            withExtendedLifetime((run, download)) {}
        }
    }
}
