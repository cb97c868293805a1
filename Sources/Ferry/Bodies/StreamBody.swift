import FoundationEssentials
import Synchronization

/// A sequence of pieces that is made anew for each attempt.
struct StreamBody: PulledBody {
    let length: UInt64?
    private let pump: StreamSource.Pump

    init<Bytes: AsyncSequence>(
        length: UInt64?, _ makeSequence: @escaping @Sendable () -> Bytes
    )
    where
        Bytes: SendableMetatype, Bytes.AsyncIterator: SendableMetatype,
        Bytes.Element: ContiguousBytes & SendableMetatype
    {
        self.length = length
        pump = { pipe in
            for try await bytes in makeSequence() { try await pipe.write(bytes) }
        }
    }

    func makeSource() throws(BodyFault) -> any BodySource {
        try StreamSource.check(length)
        return StreamSource(length: length, pump)
    }
}

/// A sequence of pieces that is there once. The second who wants it is refused, unless the first has not begun to read.
final class OnceBody: PulledBody {
    private let length: UInt64?
    private let pump: StreamSource.Pump
    private let isTaken = Atomic(false)

    init<Bytes: AsyncSequence & Sendable>(
        length: UInt64?, _ sequence: Bytes
    )
    where
        Bytes: SendableMetatype, Bytes.AsyncIterator: SendableMetatype,
        Bytes.Element: ContiguousBytes & SendableMetatype
    {
        self.length = length
        pump = { pipe in
            for try await bytes in sequence { try await pipe.write(bytes) }
        }
    }

    var isReplayable: Bool { !isTaken.load(ordering: .acquiring) }

    func makeSource() throws(BodyFault) -> any BodySource {
        try StreamSource.check(length)
        guard isTaken.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
        else {
            throw BodyFault(code: .bodyNotReplayable, message: "the stream of the body can be read once only")
        }
        return StreamSource(length: length, whenUnread: { self.isTaken.store(false, ordering: .releasing) }, pump)
    }
}
