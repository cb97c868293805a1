import Glibc

/// Microseconds since 1970, by the system's clock, which may be set back.
package typealias CacheTime = Int64

package func currentCacheTime() -> CacheTime {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return CacheTime(time.tv_sec) * 1_000_000 + CacheTime(time.tv_nsec) / 1000
}
