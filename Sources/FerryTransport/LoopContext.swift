import Synchronization

/// What the callbacks of one loop's thread are given: the receiver, the executor and the clock.
///
/// The loop retains it until its thread has ended, so a callback can never meet a context that is gone.
package final class LoopContext: Sendable {
    private let receiverBox = Mutex(WeakReceiver())
    let executor: LoopExecutor
    let clock: LoopClock

    init() {
        executor = LoopExecutor()
        clock = LoopClock(executor: executor)
    }

    func attach(_ receiver: any TransferReceiver) {
        receiverBox.withLock { $0.receiver = receiver }
    }

    var receiver: (any TransferReceiver)? {
        receiverBox.withLock { $0.receiver }
    }
}

private struct WeakReceiver {
    weak var receiver: (any TransferReceiver)?
}
