import Synchronization

/// What a higher layer has read out of the body, for whoever asks next: it alone knows what it is.
extension TransferResult {
    /// Stands for what is not to be kept.
    private final class Nothing: Sendable {
        static let only = Nothing()
    }

    /// What is kept; `nil` when nobody has read the body yet.
    package var reading: (any AnyObject & Sendable)? { kept.withLock { $0 is Nothing ? nil : $0 } }

    /// Keeps what was read, unless another thread was first, or nothing is kept. Gives what is to be used.
    package func keep(_ reading: any AnyObject & Sendable) -> any AnyObject & Sendable {
        kept.withLock { kept in
            if let kept { return kept is Nothing ? reading : kept }
            kept = reading
            return reading
        }
    }

    /// Lets go of what is kept, if nobody else holds it: then keeping it only costs memory.
    package func forgetReading() {
        // Freed when the lock is left.
        _ = kept.withLock { kept in isKnownUniquelyReferenced(&kept) ? kept.take() : nil }
    }

    /// Keeps nothing from here on: a cache that counts its bytes holds the result, for as long as it likes.
    package func keepNothing() {
        // Freed when the lock is left.
        _ = kept.withLock { kept in
            defer { kept = Nothing.only }
            return kept
        }
    }

    /// The check that the body has passed last, by a number of whoever made it; 0 = none. An answer that a cache keeps
    /// in memory is looked at many times, and stays what it is.
    package var passedCheck: UInt64 {
        get { passed.load(ordering: .relaxed) }
        set { passed.store(newValue, ordering: .relaxed) }
    }
}
