#if FERRY_TSAN
@testable import FerryCache

/// Shadows `Synchronization.Mutex` in this module, in builds for the thread sanitizer only; see FerryCache.
typealias Mutex<Value: ~Copyable> = FerryCache.Mutex<Value>
#endif
