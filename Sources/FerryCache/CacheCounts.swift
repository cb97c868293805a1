import Synchronization

/// What a store did and met, since it was made.
package struct CacheCounts: Sendable, Equatable {
    package var written: UInt64 = 0
    /// Not taken, because the writing queue was full.
    package var dropped: UInt64 = 0
    /// Not taken, because the entry is larger than allowed.
    package var refused: UInt64 = 0
    /// Not kept, because of a fault of the disk.
    package var failed: UInt64 = 0
    package var evicted: UInt64 = 0
    /// Entries that were damaged.
    package var corrupt: UInt64 = 0
    /// Databases that were put aside.
    package var putAside: UInt64 = 0
    package var faults: [CacheFault.Kind: UInt64] = [:]
    /// The disk is left alone for a while.
    package var isDisabled = false
    package var queuedBytes = 0

    package init() {}
}

/// The counters themselves.
final class CacheCounter: Sendable {
    private let state = Mutex(CacheCounts())

    var value: CacheCounts { state.withLock { $0 } }

    func count(_ change: (inout CacheCounts) -> Void) { state.withLock { change(&$0) } }

    func count(_ fault: CacheFault) { count { $0.faults[fault.kind, default: 0] += 1 } }
}
