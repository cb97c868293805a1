import Foundation
import Testing

/// The fuzzer's seeds and findings: every property holds for them.
@Suite struct SeedTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Seeds")

    @Test(arguments: FuzzTarget.allCases) func promisesHoldOfAllSeeds(target: FuzzTarget) throws {
        let folder = Self.folder.appending(path: target.rawValue)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(!names.isEmpty)
        for name in names {
            let seed = try Data(contentsOf: folder.appending(path: name))
            // As a whole, truncated, and with a byte changed at many positions; at fewer if each needs a connection.
            let places = target == .connection || target == .differences ? 12 : 40
            try expectPromises(of: target, seed, name)
            for index in stride(from: 0, to: seed.count, by: max(1, seed.count / places)) {
                try expectPromises(of: target, seed.prefix(index), "\(name), cut at \(index)")
                var changed = seed
                changed[index] ^= 1 << UInt8(index % 8)
                try expectPromises(of: target, changed, "\(name), byte \(index) changed")
            }
        }
    }

    private func expectPromises(of target: FuzzTarget, _ bytes: Data, _ name: String) throws {
        do {
            // A separate copy, like the fuzzer's inputs.
            try Array(bytes).withUnsafeBytes { try target.check($0) }
        } catch let broken as BrokenPromise {
            Issue.record("\(name): \(broken)")
        }
    }
}
