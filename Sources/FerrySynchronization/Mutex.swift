@_exported public import struct Synchronization.Atomic
@_exported public import struct Synchronization.AtomicLazyReference
@_exported public import func Synchronization.atomicMemoryFence

#if FERRY_TSAN
import Glibc

/// Replaces `Synchronization.Mutex` in builds for the thread sanitizer, which does not see the locks of the Swift
/// runtime and would report everything they guard. Only builds with `-Xswiftc -DFERRY_TSAN` use it.
///
/// Sendable like any lock: the value is only accessed with the lock held.
package struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let value: UnsafeMutablePointer<Value>

    package init(_ initial: consuming sending Value) {
        lock = .allocate(capacity: 1)
        lock.initialize(to: pthread_mutex_t())
        pthread_mutex_init(lock, nil)
        value = .allocate(capacity: 1)
        value.initialize(to: initial)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }

    /// Everything before the last use of the lock has happened before this. The sanitizer does not see that resuming a
    /// continuation orders two threads.
    package borrowing func orderAfterResume() { withLock { _ in } }
}
#else
@_exported public import struct Synchronization.Mutex

extension Mutex where Value: ~Copyable {
    /// Does nothing: only the thread sanitizer must be told of an order that resuming a continuation gives.
    @inlinable package borrowing func orderAfterResume() {}
}
#endif
