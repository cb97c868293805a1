import CAllocations
import FoundationEssentials

/// The resources of the process.
struct ProcessHolding: CustomStringConvertible {
    var descriptors = 0
    /// Threads of agents and servers, and libuv's few that write files, which are named after a loop and stay; the
    /// workers of the runtime come and go.
    var threads = 0
    /// Allocated bytes; 0 under a sanitizer, which has an allocator of its own.
    var bytes = 0

    static var now: ProcessHolding {
        let files = FileManager.default
        func names(_ directory: String) -> [String] { (try? files.contentsOfDirectory(atPath: directory)) ?? [] }
        let threads = names("/proc/self/task").filter {
            let name = try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8)
            return name?.hasPrefix("ferry-loop") ?? false
        }
        return ProcessHolding(
            descriptors: ProcessHoldings.descriptors.count, threads: threads.count, bytes: allocations_in_use())
    }

    /// Whether nothing has been added since `before`, except the memory that pools keep for reuse. It varies by up to
    /// 2.5 MB, and does not grow with the number of runs.
    func isWithin(_ before: ProcessHolding) -> Bool {
        descriptors <= before.descriptors && threads <= before.threads && bytes <= before.bytes + 4 << 20
    }

    var description: String { "\(descriptors) descriptors, \(threads) threads of loops, \(bytes) bytes" }
}
