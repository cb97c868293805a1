import FerryTesting
import FerryTransport
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// A file as a body, without a network.
@Suite(.timeLimit(.minutes(2))) struct FileSourceTests {
    private func source(
        _ path: String, _ range: Range<UInt64>? = nil, fromMemory: Bool = true
    ) throws -> any BodySource {
        try FileBody(path: path, range: range, looksInMemory: fromMemory).makeSource()
    }

    @Test(arguments: [
        0, 1, 1000, FileSource.blockSize - 1, FileSource.blockSize, FileSource.blockSize + 1,
        FileSource.blockSize * FileSource.blockCount, 3_000_001,
    ])
    func everyByteComesInItsOrder(size: Int) async throws {
        let bytes = LoopbackServer.pattern(0..<size)
        let file = try TemporaryFile(bytes)
        for piece in [65_536, 65_535, 300_001] {
            for fromMemory in [true, false] {
                let source = try source(file.path, fromMemory: fromMemory)
                #expect(source.length == UInt64(size))
                #expect(await drained(source, piece: piece) == bytes)
                source.close()
            }
        }
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
    }

    @Test(arguments: [0..<0, 0..<10, 5..<1_000_000, 999_999..<1_000_000, 1_000_000..<1_000_000] as [Range<UInt64>])
    func aRangeIsAllThatIsSent(range: Range<UInt64>) async throws {
        let bytes = LoopbackServer.pattern(0..<1_000_000)
        let file = try TemporaryFile(bytes)
        for fromMemory in [true, false] {
            let source = try source(file.path, range, fromMemory: fromMemory)
            #expect(source.length == UInt64(range.count))
            #expect(await drained(source) == Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
        }
    }

    @Test func whatCannotBeReadIsFoundOutAtOnce() throws {
        let file = try TemporaryFile([1, 2, 3])
        let folder = NSTemporaryDirectory()
        let pipe = folder + "/ferry-pipe-\(UUID().uuidString)"
        mkfifo(pipe, 0o600)
        defer { unlink(pipe) }
        let cases: [(path: String, range: Range<UInt64>?, errno: Int32)] = [
            (folder + "/ferry-not-there", nil, ENOENT), (file.path + "/below", nil, ENOTDIR), (folder, nil, EISDIR),
            (pipe, nil, 0), ("/dev/null", nil, 0), ("", nil, ENOENT), (file.path + "\0.txt", nil, EINVAL),
            (file.path, 0..<4, 0), (file.path, 4..<4, 0),
        ]
        for one in cases {
            let fault = #expect(throws: BodyFault.self) { try source(one.path, one.range) }
            #expect(fault?.code == .uploadSource && fault?.errno == one.errno, "\(one)")
        }
        #expect(openDescriptors(of: file.path).isEmpty)
    }

    @Test(arguments: [true, false]) func aFileThatBecomesShorterFails(fromMemory: Bool) async throws {
        let file = try TemporaryFile(size: 2_000_000)
        let source = try source(file.path, fromMemory: fromMemory)
        file.resize(1_000_000)
        #expect(await drained(source) == nil)
        let fault = try #require(source.failure as? BodyFault)
        #expect(fault.message.contains("shorter"))
        source.close()
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
    }

    @Test func ofAFileThatGrowsOnlyWhatWasThereIsSent() async throws {
        let file = try TemporaryFile(size: 1000)
        let source = try source(file.path)
        file.resize(2000)
        #expect(await drained(source)?.count == 1000)
    }

    @Test func aFileThatVanishesIsStillSent() async throws {
        let bytes = LoopbackServer.pattern(0..<700_000)
        let file = try TemporaryFile(bytes)
        let source = try source(file.path)
        unlink(file.path)
        #expect(await drained(source) == bytes)
    }

    @Test func whatIsNotInMemoryIsReadAhead() async throws {
        let bytes = LoopbackServer.pattern(0..<3_000_000)
        let file = try TemporaryFile(bytes)
        let descriptor = open(file.path, O_RDWR)
        defer { close(descriptor) }
        // Written to disk, and then no longer in memory, if the system complies.
        fsync(descriptor)
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
        #expect(await drained(try source(file.path)) == bytes)
    }

    @Test func nothingIsReadBeforeItIsWanted() throws {
        let file = try TemporaryFile(size: 1000)
        let source = try source(file.path)
        file.resize(0)
        source.open {}
        #expect(source.failure == nil)
    }

    @Test func theDescriptorIsNoChildsAndClosesWithTheSource() throws {
        let file = try TemporaryFile([1])
        var source: (any BodySource)? = try source(file.path)
        let open = openDescriptors(of: file.path)
        #expect(open.count == 1)
        #expect(open.allSatisfy { fcntl($0, F_GETFD) & FD_CLOEXEC != 0 })
        #expect(source?.length == 1)
        source = nil
        #expect(openDescriptors(of: file.path).isEmpty)
    }

    @Test func aClosedSourceGivesNothingAndClosesOnce() async throws {
        let file = try TemporaryFile(size: 10_000_000)
        let source = try source(file.path, fromMemory: false)
        source.open {}
        var space = [UInt8](repeating: 0, count: 10)
        // A read is in progress, and the descriptor must outlive it.
        _ = space.withUnsafeMutableBytes { source.fill($0) }
        source.close()
        source.close()
        #expect(await eventually { openDescriptors(of: file.path).isEmpty })
        guard case .failed = space.withUnsafeMutableBytes({ source.fill($0) }) else {
            Issue.record("a closed source gives bytes")
            return
        }
    }

    @Test func noMoreThanItsBlocksAreReadAhead() async throws {
        let file = try TemporaryFile(size: 100_000_000)
        let source = try source(file.path, fromMemory: false)
        let (resumes, continuation) = AsyncStream.makeStream(of: Void.self)
        source.open { continuation.yield() }
        var space = [UInt8](repeating: 0, count: 10)
        _ = space.withUnsafeMutableBytes { source.fill($0) }
        var iterator = resumes.makeAsyncIterator()
        await iterator.next()
        // Bytes beyond the blocks are not read before these are taken.
        #expect(await eventually { (source as? FileSource)?.isReading == false })
        file.resize(FileSource.blockSize * FileSource.blockCount)
        #expect(source.failure == nil)
        var taken = 0
        loop: while true {
            switch space.withUnsafeMutableBytes({ source.fill($0) }) {
            case .bytes(let count): taken += count
            case .later: await iterator.next()
            case .end, .failed, .piece: break loop
            }
        }
        #expect(taken == FileSource.blockSize * FileSource.blockCount)
    }
}
