internal import FoundationEssentials

/// Where the figures go.
struct BenchOutput: Sendable, Equatable {
    /// In place of the table.
    var printsJSON = false
    /// A file for the same object.
    var jsonFile: String?
    /// A file for the page.
    var htmlFile: String?

    init(_ arguments: ParsedArguments) throws {
        // Where the figures go must be known to be of use before minutes were spent on them.
        for option in arguments.options where option.name == "json" {
            if option.value.isEmpty { printsJSON = true } else { jsonFile = try Self.writable(option.value) }
        }
        htmlFile = try arguments.last("html").map { path throws(InputError) in try Self.writable(path) }
    }

    func write(_ report: BenchReport, _ ruling: BenchRuling) throws {
        tell(table: BenchTable(report).text, json: report.json, checks: report.checks)
        try save(json: report.json)
        if let htmlFile { try Self.write(BenchPage(report, ruling).html, to: htmlFile) }
    }

    /// On the terminal; what was missed is said last, and before a file can fail.
    func tell(table: String, json: String, checks: [BenchCheck]?) {
        Console.out(printsJSON ? json + "\n" : table)
        for complaint in (checks ?? []).compactMap(\.complaint) {
            Console.error("ferry bench: \(Main.oneLine(complaint))\n")
        }
    }

    func save(json: String) throws {
        if let jsonFile { try Self.write(json + "\n", to: jsonFile) }
    }

    private static func writable(_ path: String) throws(InputError) -> String {
        let folder = URL(filePath: path).deletingLastPathComponent().path
        let manager = FileManager.default
        var isFolder = false
        let exists = manager.fileExists(atPath: path, isDirectory: &isFolder)
        if isFolder { throw InputError("\(path): is a folder") }
        guard manager.isWritableFile(atPath: exists ? path : folder) else {
            throw InputError("\(path): cannot be written")
        }
        return path
    }

    private static func write(_ text: String, to path: String) throws(InputError) {
        do {
            try Data(text.utf8).write(to: URL(filePath: path))
        } catch {
            throw InputError("\(path): cannot be written")
        }
    }
}
