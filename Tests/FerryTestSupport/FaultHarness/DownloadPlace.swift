import Foundation
import Testing

/// A fresh directory for one download, inside another that nobody else writes to; both are removed with this object.
final class DownloadPlace: Sendable {
    private let outside: String
    private let directory: String

    init() throws {
        outside = NSTemporaryDirectory() + "ferry-fault-\(UUID().uuidString)"
        directory = outside + "/in"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: outside) }

    /// The final name.
    var target: String { directory + "/file" }

    /// The file under the final name.
    var bytes: [UInt8] { FileManager.default.contents(atPath: target).map(Array.init) ?? [] }

    private static func names(in directory: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).sorted()
    }

    /// I3: the whole file after a success, otherwise at most a part of one; and nothing elsewhere.
    func expectNoPartOfAFile(_ outcome: FaultOutcome, isDownload: Bool, _ sourceLocation: SourceLocation) {
        let names = Self.names(in: directory)
        switch outcome {
        case .success: #expect(names == (isDownload ? ["file"] : []), "I3", sourceLocation: sourceLocation)
        case .failure:
            let part = ["file.ferry-meta", "file.ferry-part"]
            #expect(names.isEmpty || names == part, "I3: \(names)", sourceLocation: sourceLocation)
        }
        #expect(Self.names(in: outside) == ["in"], "I3: outside", sourceLocation: sourceLocation)
    }
}
