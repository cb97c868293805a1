#if FERRY_TSAN
import FerryTransport

/// Shadows `Synchronization.Mutex` in this module, in builds for the thread sanitizer only; see FerryTransport.
struct Mutex<Value: ~Copyable>: ~Copyable, Sendable {
    private let base: FerryTransport.Mutex<Value>

    init(_ initial: consuming sending Value) { base = FerryTransport.Mutex(initial) }

    borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try base.withLock(body)
    }
}
#endif
