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

    /// `complaints` are the conditions of `--fail-if` that hold.
    func write(_ report: BenchReport, complaints: [String]) throws {
        try write(table: BenchTable(report).text, json: report.json)
        if let htmlFile { try Self.write(BenchPage(report, complaints: complaints).html, to: htmlFile) }
    }

    func write(table: String, json: String) throws {
        Console.out(printsJSON ? json + "\n" : table)
        if let jsonFile { try Self.write(json + "\n", to: jsonFile) }
    }

    private static func writable(_ path: String) throws(InputError) -> String {
        let folder = URL(filePath: path).deletingLastPathComponent().path
        let manager = FileManager.default
        guard manager.isWritableFile(atPath: manager.fileExists(atPath: path) ? path : folder) else {
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
