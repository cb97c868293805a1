import Synchronization

/// Shut for a while after a fault of the disk, so that no run pays for trying again and again.
final class DiskGate: Sendable {
    private let shutUntil = Atomic<CacheTime>(0)
    private let disabledTime: Int64
    private let clock: @Sendable () -> CacheTime

    init(_ options: CacheStoreOptions) {
        disabledTime = options.disabledTime
        clock = options.clock
    }

    /// One set back does not keep the gate shut longer than it would have been.
    var isOpen: Bool {
        let until = shutUntil.load(ordering: .relaxed)
        if until == 0 { return true }
        let now = clock()
        return now >= until || now < until - disabledTime
    }

    func shut() { shutUntil.store(clock() + disabledTime, ordering: .relaxed) }
}
