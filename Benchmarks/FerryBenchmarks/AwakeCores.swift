internal import Foundation
internal import Glibc
internal import Synchronization

/// Keeps all cores awake with threads that run only if nothing else does (SCHED_IDLE, sched(7)).
///
/// A sleeping core takes longer to respond than a working one: a single request would look slower than one beside a
/// writer that keeps the cores busy.
final class AwakeCores: Sendable {
    private let ended = Atomic(false)
    /// SCHED_IDLE, which Swift's Glibc module lacks.
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
