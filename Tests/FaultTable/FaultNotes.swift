import FoundationEssentials
import Glibc

/// The notes of a run of the tests: a file to which every test appends its own.
public enum FaultNotes {
    /// The path of the file, from the environment; without it nothing is written.
    public static var path: String? {
        let path = ProcessInfo.processInfo.environment["FERRY_FAULTS"] ?? ""
        return path.isEmpty ? nil : path
    }

    static func append(_ notes: [FaultNote]) throws {
        guard let path else { return }
        var lines = Data()
        for note in notes { lines += try JSONEncoder().encode(note) + Data("\n".utf8) }
        let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw CocoaError(.fileWriteUnknown) }
        defer { close(file) }
        // In one write, so that lines of other processes do not mix in.
        let written = lines.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        guard written == lines.count else { throw CocoaError(.fileWriteUnknown) }
    }

    /// Reads all notes.
    public static func read(_ path: String) throws -> [FaultNote] {
        try Data(contentsOf: URL(filePath: path)).split(separator: UInt8(ascii: "\n"))
            .map { try JSONDecoder().decode(FaultNote.self, from: Data($0)) }
    }
}
