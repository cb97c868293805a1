import FerrySynchronization
import FerryTesting
import FerryTransport
import Foundation
import Testing

@testable import Ferry

/// Pulls from a source like the event loop, piece by piece and again after each resume: all of its bytes, or `nil` if
/// it failed.
func drained(_ source: any BodySource, piece: Int = 65_536) async -> [UInt8]? {
    let (resumes, continuation) = AsyncStream.makeStream(of: Void.self)
    source.open { continuation.yield() }
    var iterator = resumes.makeAsyncIterator()
    var bytes: [UInt8] = []
    var space = [UInt8](repeating: 0, count: piece)
    while true {
        switch space.withUnsafeMutableBytes({ source.fill($0) }) {
        case .bytes(let count): bytes += space[..<count]
        case .end: return bytes
        case .failed, .piece: return nil  // only loops take pieces
        case .later: await iterator.next()
        }
    }
}

/// A file in the temporary folder, removed with this object.
final class TemporaryFile: Sendable {
    let path: String

    init(_ bytes: [UInt8] = [], size: Int? = nil) throws {
        // In the form of the system, so that it is found among the open files.
        let folder = URL(fileURLWithPath: NSTemporaryDirectory()).resolvingSymlinksInPath().path
        path = "\(folder)/ferry-body-\(UUID().uuidString)"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        if let size { truncate(path, off_t(size)) }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Truncates or extends it.
    func resize(_ size: Int) { truncate(path, off_t(size)) }
}

/// The pieces of a stream, and how it ends.
struct Pieces: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    var pieces: [[UInt8]]
    var failsAtEnd = false
    /// Never ends, unless its task is cancelled.
    var hangsAtEnd = false

    struct AsyncIterator: AsyncIteratorProtocol {
        var rest: ArraySlice<[UInt8]>
        let failsAtEnd: Bool
        let hangsAtEnd: Bool

        mutating func next() async throws -> [UInt8]? {
            if let first = rest.popFirst() { return first }
            if hangsAtEnd { try await Task.sleep(for: .seconds(1_000_000)) }
            if failsAtEnd { throw Oops() }
            return nil
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(rest: pieces[...], failsAtEnd: failsAtEnd, hangsAtEnd: hangsAtEnd)
    }
}

/// A counter.
final class Tally: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }

    func add() { count.withLock { $0 += 1 } }
}

/// `PUT` of a body.
func put(_ path: String, _ body: RequestBody?) -> HTTPRequest<Response> { HTTPRequest(.put, path, body: body) }

/// The descriptors of this process that are open on this file.
func openDescriptors(of path: String) -> [Int32] {
    let folder = "/proc/self/fd"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.filter { (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")) == path }
        .compactMap { Int32($0) }
}
