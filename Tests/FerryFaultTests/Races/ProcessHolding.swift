import CAllocations
import CCoreParts
import FoundationEssentials

@testable import FerryTestSupport

/// The resources of the process.
struct ProcessHolding: CustomStringConvertible {
    var descriptors = 0
    /// Threads of agents and servers, and libuv's few that write files, which are named after a loop and stay; the
    /// workers of the runtime come and go.
    var threads = 0
    /// Allocated bytes; 0 under a sanitizer, which has an allocator of its own.
    var bytes = 0

    static var now: ProcessHolding {
        // The core keeps up to 8 MB of blocks of each size for the process, and how many varies from round to round.
        parts_pool_empty()
        let files = FileManager.default
        func names(_ directory: String) -> [String] { (try? files.contentsOfDirectory(atPath: directory)) ?? [] }
        let threads = names("/proc/self/task").filter {
            let name = try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8)
            return name?.hasPrefix("ferry-loop") ?? false
        }
        return ProcessHolding(
            descriptors: ProcessHoldings.descriptors.count, threads: threads.count, bytes: allocations_in_use())
    }

    /// Whether nothing has been added since `before`, `runs` earlier, except what others keep. Each thread of
    /// libdispatch keeps up to 1,024 freed blocks of work (72 KB), swift-testing keeps a backtrace of each thrown error
    /// until the test ends, and Foundation leaks a block when it reads a file (about 40 bytes a run together).
    func isWithin(_ before: ProcessHolding, after runs: Int) -> Bool {
        descriptors <= before.descriptors && threads <= before.threads
            && bytes <= before.bytes + 1 << 20 + 64 * runs
    }

    var description: String { "\(descriptors) descriptors, \(threads) threads of loops, \(bytes) bytes" }
}
