#if FERRY_TSAN
import FerryTransport

/// Shadows `Synchronization.Mutex` in builds for the thread sanitizer; FerryTransport says why.
typealias Mutex<Value: ~Copyable> = FerryTransport.Mutex<Value>
#endif
