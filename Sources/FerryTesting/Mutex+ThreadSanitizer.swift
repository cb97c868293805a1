#if FERRY_TSAN
import FerryTransport

<<<<<<< HEAD
/// Replaces `Synchronization.Mutex` in this module in builds for the thread sanitizer; FerryTransport says why.
=======
/// Shadows `Synchronization.Mutex` in this module, in builds for the thread sanitizer only; see FerryTransport.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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
