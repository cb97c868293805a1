import FerrySynchronization
import Testing

@testable import FerryTesting

/// Waits of the stub end with their task: a test's time limit works by cancelling.
@Suite(.timeLimit(.minutes(1))) struct StubWaitTests {
    private let stub = StubTransport(always: .response())

    private var waiters: Int { stub.state.withLock { $0.waiters.count } }

    @Test func aWaitEndsWhenItsTaskIsCancelled() async {
        let one = Task { await stub.waitForRequests(1) }
        let other = Task { await stub.waitForHeld(1) }
        while waiters < 2 { await Task.yield() }
        one.cancel()
        await one.value
        #expect(waiters == 1, "the other goes on")
        other.cancel()
        await other.value
        #expect(waiters == 0)
    }

    @Test func aWaitOfACancelledTaskDoesNotBegin() async {
        await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await stub.waitForRequests(1)
        }.value
        #expect(waiters == 0)
    }
}
