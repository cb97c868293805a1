import FaultTable
import FerrySynchronization
import FerryTesting
import Foundation
import Testing

@testable import Ferry

/// A directory of its own for a test.
struct Folder: ~Copyable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "ferry-download-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The names in it, sorted.
    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

    func file(_ name: String) -> String { path + "/" + name }

    func bytes(_ name: String) -> [UInt8]? { FileManager.default.contents(atPath: file(name)).map(Array.init) }

    func write(_ bytes: [UInt8], _ name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: file(name)))
    }

    /// The part of `name` that another run would find.
    func part(_ name: String) -> [UInt8]? { bytes(name + ".ferry-part") }
    func hasMetadata(_ name: String) -> Bool { bytes(name + ".ferry-meta") != nil }

    /// Leaves a part, like a run that was cut off.
    func leavePart(
        _ bytes: [UInt8], _ name: String, of url: String, tag: String? = "\"v1\"", total: Int64? = 10
    ) throws {
        var metadata = DownloadMetadata(url: url)
        metadata.validator = tag.map { .entityTag($0) }
        metadata.total = total
        try write(bytes, name + ".ferry-part")
        try write(metadata.bytes, name + ".ferry-meta")
    }
}

/// Records what it is told.
final class Progresses: Sendable {
    private let list = Mutex<[DownloadProgress]>([])
    var all: [DownloadProgress] { list.withLock { $0 } }
    var take: @Sendable (DownloadProgress) -> Void { { progress in self.list.withLock { $0.append(progress) } } }
}

extension LoopbackServer {
    /// The `Range` of each request for this path.
    func ranges(_ path: String) -> [String?] { requests.filter { $0.path == path }.map { $0.headers["Range"] } }

    /// Responds to a path with this head and body, each time.
    func answer(_ path: String, _ head: String, _ fields: String..., body: String) {
        let lines = (["HTTP/1.1 " + head] + fields).joined(separator: "\r\n")
        script(path: path, [.send(lines + "\r\n\r\n" + body), .serve])
    }
}

/// A download that was started with a closure, and its result.
final class StartedDownload: Sendable {
    private let result = OneShot<Result<DownloadedFile, RequestError>>()
    private let count = Atomic(0)

    var take: @Sendable (Result<DownloadedFile, RequestError>) -> Void {
        { result in
            self.count.add(1, ordering: .relaxed)
            self.result.finish(result)
        }
    }

    var calls: Int { count.load(ordering: .relaxed) }

    /// Once.
    func file() async throws(RequestError) -> DownloadedFile { try await result.value().get() }

    /// Once.
    func error() async -> RequestError? { await fault { () throws(RequestError) in try await self.file() } }
}

/// Downloads `path`, checks I1, I5 and I6, and notes the run for the table of faults.
func notedDownload(
    by agent: NetworkAgent, _ path: String = "/f", to target: DownloadTarget, _ way: Way,
    _ validation: StatusValidation? = nil, _ sourceLocation: SourceLocation = #_sourceLocation
) async -> Result<DownloadedFile, RequestError> {
    var probe = HTTPRequest.probe(path)
    probe.statusValidation = validation
    let began = ContinuousClock.now
    let started = StartedDownload()
    let result: Result<DownloadedFile, RequestError>
    do throws(RequestError) {
        switch way {
        case .awaited: result = .success(try await agent.download(probe, to: target))
        case .closure:
            agent.download(probe, to: target, completion: started.take)
            result = .success(try await started.file())
        }
    } catch {
        result = .failure(error)
        expectNoSecret(in: error, sourceLocation)
    }
    let took = ContinuousClock.now - began
    let pauses = took < FaultSetup().bound ? .zero : MachinePauses.total(between: began, and: .now)
    #expect(took - pauses < FaultSetup().bound || !ProcessHoldings.isAlone, sourceLocation: sourceLocation)
    #expect(started.calls == (way == .closure ? 1 : 0), "I1", sourceLocation: sourceLocation)
    let summary = result.error.map { "`\($0.code.summary)`" } ?? FaultNote.answered
    FaultNote.add(form: "\(Form.download)", outcome: summary, took: took)
    return result
}
