import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// URLs with a combining mark behind a character that separates their parts: together they are one `Character`.
@Suite(.timeLimit(.minutes(1))) struct CharacterTests {
    @Test func aFileNameHasNoSlash() {
        let name = CommandURL.fileName(of: "http://h/../\u{301}evil")
        #expect(name.map { Array($0.utf8) } == Array("\u{301}evil".utf8))
    }

    @Test(arguments: ["http://kim:secret@\u{301}host/", "ftp://kim:secret@\u{301}h/", "http://h h/?\u{301}t=secret"])
    func errorsShowNoPassword(url: String) throws {
        let end = try FerryProgram.run("fetch", url)
        #expect(end.code != 0 && !end.output.isEmpty && !end.output.contains("secret"), "\(end)")
    }

    @Test func twoSpellingsOfACharacterAreTwoURLs() async throws {
        try await withLoopbackServer { server in
            let file = try TemporaryFile([])
            let folder = URL(filePath: file.path + ".d")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let urls = ["\u{E9}", "e\u{301}"].map { server.baseURL + "/bytes/3?x=" + $0 }
            let end = try FerryProgram.run(["download", "-o", folder.path + "/"] + urls)
            #expect(end.code == 0 && server.requestCount == 2, "\(end)")
        }
    }
}
