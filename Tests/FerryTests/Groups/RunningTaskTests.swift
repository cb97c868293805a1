import Dispatch
import FerrySynchronization
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The handle for cancelling a group's task. The address sanitizer checks the claims about its lifetime.
@Suite(.timeLimit(.minutes(1))) struct RunningTaskTests {
    /// Like a group: in a child of a task group, which starts at once.
    private func child<Value: Sendable>(_ work: @escaping @Sendable (RunningTask?) async -> Value) async -> Value? {
        await withTaskGroup(of: Value.self) { group in
            group.addImmediateTask { await work(RunningTask()) }
            return await group.next()
        }
    }

    @Test func outsideOfTasksThereIsNone() async {
        let isThere = await withCheckedContinuation { continuation in
            DispatchQueue(label: "test").async { continuation.resume(returning: RunningTask() != nil) }
        }
        #expect(!isThere)
    }

    @Test func aCancelEndsThatTaskAndNotTheOneAround() async {
        let (handles, handle) = AsyncStream<RunningTask?>.makeStream()
        let canceller = Task {
            for await task in handles {
                task?.cancel()
                return
            }
        }
        let wasCancelled = await child { task in
            handle.yield(task)
            do {
                try await Task.sleep(for: .seconds(3600))
                return false
            } catch {
                return Task.isCancelled
            }
        }
        #expect(wasCancelled == true && !Task.isCancelled)
        await canceller.value
    }

    @Test func itMayBeCancelledByItself() async {
        let called = Mutex(0)
        let wasCancelled = await child { task in
            await withTaskCancellationHandler {
                task?.cancel()
                task?.cancel()
                return Task.isCancelled
            } onCancel: {
                // The handler runs within the cancel, on the same thread; a second cancel has no effect.
                called.withLock { $0 += 1 }
                task?.cancel()
            }
        }
        #expect(wasCancelled == true && called.withLock { $0 } == 1)
    }

    @Test func oneThatHasEndedIsKeptByItsHandleAndNotChanged() async {
        let (end, whenGone) = AsyncStream<Void>.makeStream()
        var token: Token? = Token(whenGone)
        // Not as their results: a task that held its own handle would hold itself.
        let handles = Mutex<[RunningTask]>([])
        for number in 0..<1000 {
            _ = await child { [token] task in
                _ = token
                if number % 2 == 0 { await Task.yield() }
                if let task { handles.withLock { $0.append(task) } }
            }
        }
        token = nil
        await end.finished()
        let ended = handles.withLock { $0 }
        #expect(ended.count == 1000, "what its closure holds goes with its end, not with the handle")
        await withTaskGroup { group in
            for _ in 0..<4 { group.addTask { for task in ended { task.cancel() } } }
        }
    }

    /// A failure shows in the runtime and the sanitizers: a handle that did not hold its task would cancel freed memory
    /// here. And a cancel that waited for its task would reach the suite's limit.
    @Test func aCancelMayMeetTheEnd() async {
        for round in 0..<2000 {
            let box = Mutex<RunningTask?>(nil)
            async let cancelled: Void = {
                for _ in 0..<round % 7 { await Task.yield() }
                box.withLock { $0.take() }?.cancel()
            }()
            _ = await child { task in
                box.withLock { $0 = task }
                for _ in 0..<round % 5 { await Task.yield() }
                _ = box.withLock { $0.take() }
            }
            await cancelled
        }
    }
}
