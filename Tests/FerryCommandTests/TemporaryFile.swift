import FoundationEssentials

/// A file that is removed with this object.
final class TemporaryFile {
    let path: String

    init(_ bytes: [UInt8]) throws {
        path = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UUID().uuidString).bin").path
        try Data(bytes).write(to: URL(filePath: path))
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}
