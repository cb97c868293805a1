import FoundationEssentials

/// The memory of this process; 0 under a sanitizer, which keeps freed memory.
func residentBytes() -> Int {
    #if FERRY_TSAN || FERRY_ASAN
    return 0
    #else
    guard let status = FileManager.default.contents(atPath: "/proc/self/status") else { return 0 }
    // VmRSS:	   12345 kB
    let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
    return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) * 1024
    #endif
}
