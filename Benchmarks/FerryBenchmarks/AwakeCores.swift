internal import Foundation
internal import Glibc
internal import Synchronization

/// Keeps all cores awake by threads that run only where nobody else wants to (SCHED_IDLE, sched(7)).
///
/// A core that sleeps takes longer to answer than one that works: a request that is alone would look slower than one
/// beside a writer that keeps the cores busy.
final class AwakeCores: Sendable {
    private let ended = Atomic(false)
    /// SCHED_IDLE, which is not in Swift's Glibc module.
    private let idlePolicy: Int32 = 5

    init() {
        for _ in 0..<ProcessInfo.processInfo.activeProcessorCount {
            Thread.detachNewThread {
                var priority = sched_param()
                guard sched_setscheduler(0, self.idlePolicy, &priority) == 0 else { return }
                while !self.ended.load(ordering: .relaxed) {}
            }
        }
    }

    func end() { ended.store(true, ordering: .relaxed) }
}
