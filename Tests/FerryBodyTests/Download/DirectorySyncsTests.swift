import FerrySynchronization
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Syncing directories to disk, for one or for many downloads at once.
@Suite(.timeLimit(.minutes(1))) struct DirectorySyncsTests {
    /// A disk that syncs a directory when the test says so, with the error that it is given.
    private final class SlowDisk: Sendable {
        private struct State {
            var begun: [Int32] = []
            var errors: [Int32] = []
        }

        private let state = Mutex(State())
        private let begins = DispatchSemaphore(value: 0)
        private let ends = DispatchSemaphore(value: 0)

        /// The descriptors to sync, in order.
        var begun: [Int32] { state.withLock { $0.begun } }

        var sync: @Sendable (Int32) -> Int32 {
            { descriptor in
                self.state.withLock { $0.begun.append(descriptor) }
                self.begins.signal()
                self.ends.wait()
                return self.state.withLock { $0.errors.removeFirst() }
            }
        }

        func waitForBegin() { begins.wait() }

        func end(with error: Int32 = 0) {
            state.withLock { $0.errors.append(error) }
            ends.signal()
        }
    }

    /// The results of the waiting downloads, in order.
    private final class Ends: Sendable {
        private let told = Mutex<[(name: String, fault: FileFault?)]>([])
        private let count = DispatchSemaphore(value: 0)

        var names: [String] { told.withLock { $0.map(\.name) } }

        func take(_ name: String) -> DirectorySyncs.End {
            { fault in
                self.told.withLock { $0.append((name, fault)) }
                self.count.signal()
            }
        }

        func wait(for count: Int) { for _ in 0..<count { self.count.wait() } }

        func fault(of name: String) -> FileFault? { told.withLock { $0.first { $0.name == name }?.fault } }
    }

    private func begin(_ syncs: DirectorySyncs, _ directory: OpenDirectory, _ end: @escaping DirectorySyncs.End) {
        Thread.detachNewThread { syncs.sync(directory, then: end) }
    }

    @Test func thoseWhoComeMeanwhileShareTheNextOne() throws {
        let folder = try Folder()
        let (disk, ends) = (SlowDisk(), Ends())
        let syncs = DirectorySyncs(disk.sync)
        begin(syncs, try OpenDirectory(folder.path), ends.take("first"))
        disk.waitForBegin()
        // They return at once: the sync in progress began before them, and is not theirs.
        for number in 1...5 { syncs.sync(try OpenDirectory(folder.path), then: ends.take("\(number)")) }
        #expect(ends.names.isEmpty)
        disk.end()
        disk.waitForBegin()
        ends.wait(for: 1)
        #expect(ends.names == ["first"])
        disk.end()
        ends.wait(for: 5)
        #expect(ends.names == ["first", "1", "2", "3", "4", "5"] && disk.begun.count == 2)
        // Nobody is left waiting: the next one is a first one again.
        begin(syncs, try OpenDirectory(folder.path), ends.take("last"))
        disk.waitForBegin()
        disk.end()
        ends.wait(for: 1)
        #expect(ends.names.last == "last" && disk.begun.count == 3)
    }

    @Test(arguments: [(EIO, 0), (0, EIO), (EIO, ENOSPC)] as [(Int32, Int32)])
    func anErrorGoesToThoseWhoseSyncItWas(first: Int32, second: Int32) throws {
        let folder = try Folder()
        let (disk, ends) = (SlowDisk(), Ends())
        let syncs = DirectorySyncs(disk.sync)
        begin(syncs, try OpenDirectory(folder.path), ends.take("first"))
        disk.waitForBegin()
        for name in ["second", "third"] { syncs.sync(try OpenDirectory(folder.path), then: ends.take(name)) }
        disk.end(with: first)
        disk.waitForBegin()
        disk.end(with: second)
        ends.wait(for: 3)
        #expect(ends.fault(of: "first")?.errno == (first == 0 ? nil : first))
        for name in ["second", "third"] {
            #expect(ends.fault(of: name)?.errno == (second == 0 ? nil : second))
            #expect(ends.fault(of: name)?.path == (second == 0 ? nil : folder.path))
        }
    }

    @Test func aFileSystemThatNeedsNoneIsNoFault() throws {
        let folder = try Folder()
        let ends = Ends()
        DirectorySyncs { _ in EINVAL }.sync(try OpenDirectory(folder.path), then: ends.take("it"))
        #expect(ends.names == ["it"] && ends.fault(of: "it") == nil)
    }

    @Test("another directory does not wait; the same one by another path does")
    func directoriesAreToldApart() throws {
        let folder = try Folder()
        let other = try Folder()
        let (disk, ends) = (SlowDisk(), Ends())
        let syncs = DirectorySyncs(disk.sync)
        begin(syncs, try OpenDirectory(folder.path), ends.take("one"))
        disk.waitForBegin()
        syncs.sync(try OpenDirectory(folder.path + "/./"), then: ends.take("the same"))
        begin(syncs, try OpenDirectory(other.path), ends.take("another"))
        disk.waitForBegin()
        #expect(disk.begun.count == 2)
        for _ in 0..<3 { disk.end() }
        ends.wait(for: 3)
        #expect(disk.begun.count == 3)
    }

    @Test("an error during the loading of a file is not missed: an earlier descriptor reports it")
    func byTheEldestDescriptor() throws {
        let folder = try Folder()
        let (disk, ends) = (SlowDisk(), Ends())
        let syncs = DirectorySyncs(disk.sync)
        let directories = try (0..<3).map { _ in try OpenDirectory(folder.path) }
        begin(syncs, try OpenDirectory(folder.path), ends.take("first"))
        disk.waitForBegin()
        for index in [2, 0, 1] { syncs.sync(directories[index], then: ends.take("\(index)")) }
        for _ in 0..<2 { disk.end() }
        ends.wait(for: 4)
        #expect(disk.begun.last == directories[0].descriptor)
    }

    @Test("runs that have ended count as long as another thread syncs the directory for them, which stays open")
    func thoseWhoDoNotWaitAreLimited() async throws {
        let folder = try Folder()
        let (disk, ends) = (SlowDisk(), Ends())
        let syncs = DirectorySyncs(disk.sync)
        begin(syncs, try OpenDirectory(folder.path), ends.take("first"))
        disk.waitForBegin()
        let directories = try (0..<DiskQueue.mostLeft).map { _ in try OpenDirectory(folder.path) }
        await withTaskGroup(of: Bool?.self) { group in
            for directory in directories {
                group.addTask {
                    let control = RunControl(tag: nil, isRefresh: false)
                    control.end(.cancelled)
                    return await DiskQueue().run(for: control, until: nil) { end in
                        syncs.sync(directory) { _ in end(true) }
                    }
                }
            }
            for await result in group { #expect(result == nil) }
        }
        #expect(DiskQueue.isExhausted)
        #expect(throws: FileFault.self) { try DiskQueue.check() }
        // The thread of the first one has told its own result, and hangs in the sync for the others.
        disk.end()
        ends.wait(for: 1)
        disk.waitForBegin()
        #expect(DiskQueue.isExhausted)
        for _ in directories { disk.end() }
        #expect(await eventually { !DiskQueue.isExhausted })
    }
}
