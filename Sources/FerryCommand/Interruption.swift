internal import Dispatch
internal import Glibc
internal import Synchronization

/// Runs `operation` and cancels its task at the first ctrl-C, so that it can end with what it has; a second one ends
/// the process at once, and so does standard output that takes nothing more.
func interruptible<Value: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Value
) async throws -> (value: Value, wasInterrupted: Bool) {
    let flag = InterruptionFlag()
    let task = Task { try await operation() }
    signal(SIGINT, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    source.setEventHandler {
        if flag.raise() { _exit(ExitCode.interrupted.rawValue) }
        task.cancel()
        Console.endsIfStuck(.interrupted)
    }
    source.resume()
    defer {
        source.cancel()
        signal(SIGINT, SIG_DFL)
    }
    let value = try await task.value
    return (value, flag.isRaised)
}

/// Whether something has happened: ctrl-C was pressed, an exchange is over.
final class InterruptionFlag: Sendable {
    private let raised = Atomic(false)

    var isRaised: Bool { raised.load(ordering: .relaxed) }

    /// Returns whether it was raised before.
    func raise() -> Bool { raised.exchange(true, ordering: .relaxed) }
}
