import CWrites
import FerryTesting
import Foundation
import Testing

@testable import Ferry

/// Files on a disk that hangs, as bodies.
@Suite(.timeLimit(.minutes(2))) struct HungFileTests {
    @Test("Reads that hang stop neither tasks nor Dispatch's queues", .enabled(if: writes_can_be_held()))
    func reads() async throws {
        let bytes = LoopbackServer.pattern(0..<100_000)
        let path = NSTemporaryDirectory() + "/ferry-body-\(UUID().uuidString).held"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        defer { unlink(path) }
        reads_hold()
        let sources = try (0..<200).map { _ in try FileBody(path: path, looksInMemory: false).makeSource() }
        var space = [UInt8](repeating: 0, count: 10)
        for source in sources {
            source.open {}
            _ = space.withUnsafeMutableBytes { source.fill($0) }
        }
        // No more of them than the device has threads, and before the first of them a task runs.
        let began = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 { group.addTask { await Task.yield() } }
        }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume() }
        }
        let took = ContinuousClock.now - began
        #expect(await eventually { reads_held() == 4 })
        // On Dispatch's threads 20 reads took 19 s, as one thread is added each second. A busy machine may take one.
        #expect(took < .seconds(10), "\(took)")
        for source in sources.dropFirst(20) { source.close() }
        reads_release()
        for source in sources.prefix(20) {
            #expect(await drained(source) == bytes)
            source.close()
        }
        #expect(await eventually { openDescriptors(of: path).isEmpty })
    }
}
