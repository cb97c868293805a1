import FerrySynchronization
import FerryTesting
import FerryTransport
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Streams as bodies, without a network.
@Suite(.timeLimit(.minutes(2))) struct StreamSourceTests {
    private func pieces(_ count: Int, of size: Int) -> [[UInt8]] {
        (0..<count).map { LoopbackServer.pattern($0 * size..<($0 + 1) * size) }
    }

    private func source(_ pieces: Pieces, length: UInt64? = nil) throws -> any BodySource {
        try StreamBody(length: length) { pieces }.makeSource()
    }

    @Test(arguments: [
        (0, 0), (1, 1), (1000, 7), (3, 1_000_000), (2, BytePipe.capacity), (5, BytePipe.capacity / 2 + 1),
    ])
    func everyByteComesInItsOrder(count: Int, size: Int) async throws {
        let all = LoopbackServer.pattern(0..<count * size)
        for length in [nil, UInt64(all.count)] {
            for piece in [1000, 65_536] {
                let source = try source(Pieces(pieces: pieces(count, of: size)), length: length)
                #expect(source.length == length)
                #expect(await drained(source, piece: piece) == all)
            }
        }
    }

    @Test func piecesMayBeEmptyAndOfAnyKind() async throws {
        #expect(await drained(try source(Pieces(pieces: [[], [1], [], [2, 3], []]))) == [1, 2, 3])
        let data = StreamBody(length: 3) {
            AsyncStream<Data> { continuation in
                continuation.yield(Data([1, 2]))
                continuation.yield(Data([3]))
                continuation.finish()
            }
        }
        #expect(await drained(try data.makeSource()) == [1, 2, 3])
        let slices = StreamBody(length: nil) {
            AsyncThrowingStream<ArraySlice<UInt8>, any Error> { continuation in
                continuation.yield([9, 1, 2][1...])
                continuation.finish()
            }
        }
        #expect(await drained(try slices.makeSource()) == [1, 2])
    }

    @Test(arguments: [nil, UInt64(100), 5])
    func oneThatThrowsFailsWithWhatItThrew(length: UInt64?) async throws {
        for pieces in [[], [[1, 2, 3]], [[1, 2, 3, 4, 5]]] as [[[UInt8]]] {
            let source = try source(Pieces(pieces: pieces, failsAtEnd: true), length: length)
            #expect(await drained(source) == nil)
            #expect(source.failure is Oops)
        }
    }

    @Test(
        "A body must match its announced length",
        arguments: [[[1, 2]], [[1], []], [[1, 2], [3, 4]], [[1, 2, 3, 4]], []] as [[[UInt8]]])
    func theAnnouncedLengthBinds(pieces: [[UInt8]]) async throws {
        let source = try source(Pieces(pieces: pieces), length: 3)
        #expect(await drained(source) == nil)
        #expect(source.failure is BodyFault)
    }

    @Test func theLastByteOfAnAnnouncedLengthWaitsForTheEnd() async throws {
        let pipe = BytePipe(announced: 4)
        let (resumes, continuation) = AsyncStream.makeStream(of: Void.self)
        pipe.open { continuation.yield() }
        try await pipe.write([1, 2, 3, 4] as [UInt8])
        var space = [UInt8](repeating: 0, count: 10)
        guard case .bytes(3) = space.withUnsafeMutableBytes({ pipe.read(into: $0) }),
            case .later = space.withUnsafeMutableBytes({ pipe.read(into: $0) })
        else {
            Issue.record("the last byte left early")
            return
        }
        pipe.finish()
        var iterator = resumes.makeAsyncIterator()
        await iterator.next()
        guard case .bytes(1) = space.withUnsafeMutableBytes({ pipe.read(into: $0) }),
            case .end = space.withUnsafeMutableBytes({ pipe.read(into: $0) })
        else {
            Issue.record("the last byte did not come")
            return
        }
        #expect(space[0] == 4)
    }

    @Test func theSequenceIsMadeOnceForEachSourceAndOnlyWhenItIsWanted() async throws {
        let made = Tally()
        let body = StreamBody(length: nil) { () -> Pieces in
            made.add()
            return Pieces(pieces: [[1]])
        }
        let unused = try body.makeSource()
        unused.open {}
        unused.close()
        #expect(made.value == 0)
        for count in 1...3 {
            #expect(await drained(try body.makeSource()) == [1])
            #expect(made.value == count)
        }
    }

    @Test func noMoreIsTakenAheadThanThePipeHolds() async throws {
        let given = Tally()
        let body = StreamBody(length: nil) {
            AsyncStream<[UInt8]> {
                given.add()
                return [UInt8](repeating: 1, count: 1000)
            }
        }
        let source = try body.makeSource()
        source.open {}
        var space = [UInt8](repeating: 0, count: 1)
        _ = space.withUnsafeMutableBytes { source.fill($0) }
        // As many as fit, and one that waits.
        let most = BytePipe.capacity / 1000 + 1
        #expect(await eventually { given.value == most })
        for _ in 0..<100 { await Task.yield() }
        #expect(given.value == most)
        source.close()
    }

    @Test(
        "Closing ends the task, whatever it is doing",
        arguments: [Pieces(pieces: [], hangsAtEnd: true), Pieces(pieces: [[UInt8](repeating: 0, count: 1 << 20)])])
    func closing(sequence: Pieces) async throws {
        // Lives as long as the body and its task.
        var token: Tally? = Tally()
        weak let task = token
        var source: (any BodySource)? = try StreamBody(length: nil) { [token] () -> Pieces in
            withExtendedLifetime(token) { sequence }
        }.makeSource()
        token = nil
        source?.open {}
        var space = [UInt8](repeating: 0, count: 1)
        _ = space.withUnsafeMutableBytes { source?.fill($0) }
        source?.close()
        source?.close()
        guard case .failed = space.withUnsafeMutableBytes({ source?.fill($0) }) else {
            Issue.record("a closed source gives bytes")
            return
        }
        source = nil
        #expect(await eventually { task == nil })
    }

    @Test func aLengthThatNoBodyCanHaveIsRefused() {
        let fault = #expect(throws: BodyFault.self) {
            try StreamBody(length: UInt64(Int64.max) + 1) { Pieces(pieces: []) }.makeSource()
        }
        #expect(fault?.code == .invalidRequest(.body))
    }

    @Test func whatIsThereOnceIsReadOnce() async throws {
        let body = OnceBody(length: nil, Pieces(pieces: [[1, 2]]))
        let first = try body.makeSource()
        #expect(throws: BodyFault.self) { try body.makeSource() }
        // It was not read: it still exists.
        first.close()
        let second = try body.makeSource()
        #expect(throws: BodyFault.self) { try body.makeSource() }
        // The same, while its transfer is under way.
        second.giveWay()
        let third = try body.makeSource()
        #expect(await drained(second) == nil)
        second.close()
        #expect(await drained(third) == [1, 2])
        second.giveWay()
        third.giveWay()
        third.close()
        let fault = #expect(throws: BodyFault.self) { try body.makeSource() }
        #expect(fault?.code == .bodyNotReplayable)
    }

    @Test func aSourceThatIsLetGoGivesItsStreamBack() throws {
        let body = OnceBody(length: nil, Pieces(pieces: []))
        for _ in 0..<3 { _ = try body.makeSource() }
    }
}
