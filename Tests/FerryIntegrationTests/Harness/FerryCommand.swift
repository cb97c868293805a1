import FerryMeasurement
import FoundationEssentials

/// The `ferry` executable, started as a user would.
struct FerryCommand {
    /// What it printed, and how it ended.
    struct Outcome {
        var output: String
        var error: String
        var code: Int32

        /// The objects that `--json` prints, one a line.
        var reports: [Report] {
            get throws {
                try output.split(separator: "\n").map { try JSONDecoder().decode(Report.self, from: Data($0.utf8)) }
            }
        }
    }

    /// What `--json` prints.
    struct Report: Decodable {
        var ok: Bool
        var status: Int?
        var url: String
        var bytes: Int
        var sha256: String?
        var headers: [String: String]
        var redirects: [String]
        var attempts: Int
        var reusedConnection: Bool
        var fromCache: Bool
        var error: Fault?

        struct Fault: Decodable {
            var code: String
            var phase: String
            var message: String
        }
    }

    /// Waits for its end. It gets only the proxy variables given here.
    static func run(_ arguments: String..., environment: [String: String] = [:]) throws -> Outcome {
        try run(arguments, environment: environment)
    }

    /// Waits for its end; `wrapper` is the program that starts it.
    static func run(
        _ arguments: [String], environment: [String: String] = [:], wrapper: [String] = []
    ) throws -> Outcome {
        // Beside the test bundle, where the build puts both.
        let program = URL(filePath: ownTestBundle).deletingLastPathComponent().appending(path: "ferry").path
        let folder = try ServerFolder()
        let proxies = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"]
        let unset = (proxies + proxies.map { $0.uppercased() }).flatMap { ["-u", $0] }
        let set = environment.map { "\($0.key)=\($0.value)" }
        let shell = ["/bin/sh", "-c", #"exec "$@" 2>"$0" </dev/null"#, folder.file("error")]
        let end = try ChildProcess(shell + wrapper + ["env"] + unset + set + [program] + arguments).finish()
        return Outcome(output: end.output, error: folder.read("error"), code: end.code)
    }

    /// The bundle that this code is linked into.
    static var ownTestBundle: String {
        CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? ownExecutable
    }
}
