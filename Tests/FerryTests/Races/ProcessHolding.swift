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

    /// Whether no descriptor and no thread has been added since `before`.
    func isWithin(_ before: ProcessHolding) -> Bool {
        descriptors <= before.descriptors && threads <= before.threads
    }

    var description: String { "\(descriptors) descriptors, \(threads) threads of loops, \(bytes) bytes" }
}
