#if FERRY_TSAN
@testable import FerryCache

/// Shadows `Synchronization.Mutex` in this module, in builds for the thread sanitizer only; see FerryCache.
struct Mutex<Value: ~Copyable>: ~Copyable, Sendable {
    private let base: FerryCache.Mutex<Value>

    init(_ initial: consuming sending Value) { base = FerryCache.Mutex(initial) }

    borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try base.withLock(body)
    }
}
#endif
