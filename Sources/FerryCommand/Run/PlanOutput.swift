internal import Ferry

/// The files that `ferry run` writes.
struct PlanOutput: Sendable {
    private let pagePath: String?
    private let archivePath: String?
    /// What was exchanged; `nil` where nobody wants it.
    let recorder: Recorder?

    /// Throws where it is known that one of them cannot be written.
    init(_ arguments: ParsedArguments) throws(InputError) {
        pagePath = arguments.last("html")
        archivePath = arguments.last("har")
        for path in [pagePath, archivePath] { if let path { try OutputFile.check(path) } }
        recorder = archivePath.map { _ in Recorder() }
    }

    /// Writes them. How the plans went counts for the exit code, before a file that could not be written.
    func write(_ reports: [PlanReport], after code: ExitCode) -> ExitCode {
        var code = code
        func tell(_ write: () throws(InputError) -> Void) {
            do throws(InputError) {
                try write()
            } catch {
                Console.error("ferry run: \(Main.oneLine(error.message))\n")
                if code == .success { code = .transferFailed }
            }
        }
        if let pagePath {
            tell { () throws(InputError) in try OutputFile.write(PlanPage(reports).html, to: pagePath) }
        }
        if let archivePath, let recorder {
            tell { () throws(InputError) in
                guard let data = try? recorder.archive.json() else {
                    throw InputError("cannot write \(archivePath): what was exchanged is no JSON")
                }
                try OutputFile.write(String(decoding: data, as: UTF8.self), to: archivePath)
            }
        }
        return code
    }
}
