internal import Foundation
internal import Glibc

/// The folder for results: created before anything is measured, so that no minutes are lost if it cannot be.
enum OutputFolder {
    static func make(_ path: String?) throws {
        guard let path else { return }
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        guard access(path, W_OK) == 0 else {
            throw BenchmarkError("no results can be written to \(path): \(String(cString: strerror(errno)))")
        }
    }
}
