import FerryTransport

/// The bytes of a request's body, given out piece by piece as the socket takes them. One object for each attempt.
///
/// Cheap until it is first asked: a run that waits in the queue has read nothing yet.
protocol BodySource: AnyObject, Sendable {
    /// How many bytes there will be; `nil` when that is not known beforehand.
    var length: UInt64? { get }

    /// Why `fill` said `failed`.
    var failure: (any Error)? { get }

    /// Called once, before the first `fill`. After a `later`, `resume` makes the loop ask again; it may be called on
    /// any thread, and once too often.
    func open(resume: @escaping @Sendable () -> Void)

    /// [loop's thread] Puts the next bytes into `space`, which is not empty. Never blocks.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill

    /// The attempt has ended, whatever way: nothing is read any more, and what was open is closed. Any thread, any
    /// number of times.
    func close()
}

/// A body that sources are made from: a new one for each attempt, so that it can be sent again.
protocol PulledBody: Sendable {
    /// Whether another source can be made of it.
    var isReplayable: Bool { get }

    /// Makes a source, in the caller's thread. What cannot be sent at all is found out here.
    func makeSource() throws(BodyFault) -> any BodySource
}

extension PulledBody {
    var isReplayable: Bool { true }
}

extension BodySource {
    /// All bytes of a source that has them at hand.
    var wholeInMemory: [UInt8] {
        let size = Int(length ?? 0)
        return [UInt8](unsafeUninitializedCapacity: size) { space, filled in
            let space = UnsafeMutableRawBufferPointer(space)
            while filled < size,
                case .bytes(let count) = fill(UnsafeMutableRawBufferPointer(rebasing: space[filled..<size]))
            {
                filled += count
            }
        }
    }
}
