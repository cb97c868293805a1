import FerryCache
import FerryMeasurement
import FoundationEssentials
import Glibc
import Testing

/// A folder that is removed with this object.
final class TestFolder: Sendable {
    let path: String

    /// `inMemory`: in a file system in memory, if there is one.
    init(inMemory: Bool = false) throws {
        let memory = "/dev/shm"
        let parent =
            inMemory && access(memory, W_OK) == 0
            ? URL(filePath: memory) : FileManager.default.temporaryDirectory
        path = parent.appending(path: "ferry-cache-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The directory of the store; not created yet.
    var store: String { path + "/a/store" }
    var database: String { store + "/entries-1.sqlite" }

    func options(_ change: (inout CacheStoreOptions) -> Void = { _ in }) -> CacheStoreOptions {
        var options = CacheStoreOptions(directory: store)
        options.gatheringTime = 0
        change(&options)
        return options
    }

    func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: store).sorted() }

    func read(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

    func write(_ bytes: [UInt8], to path: String) throws { try Data(bytes).write(to: URL(filePath: path)) }

    func mode(_ path: String) throws -> Int {
        var status = stat()
        try #require(stat(path, &status) == 0)
        return Int(status.st_mode & 0o7777)
    }
}

/// The program beside the test bundle, where the build puts both.
var probeProgram: String {
    let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? ownExecutable
    return URL(filePath: bundle).deletingLastPathComponent().appending(path: "FerryCacheProbe").path
}
