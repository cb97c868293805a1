import FerryMeasurement
import Foundation
import Testing

/// The command as a process, for what only a process can show.
enum FerryProgram {
    /// It is built beside the tests.
    static var path: String {
        get throws {
            let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
            return URL(filePath: bundle).deletingLastPathComponent().appending(path: "ferry").path
        }
    }

    /// Runs it to its end; what it says on stderr is with the rest.
    static func run(_ arguments: [String], environment: [String: String] = [:]) throws -> ChildProcess.End {
        let shell = ["/bin/sh", "-c", #"exec "$0" "$@" 2>&1"#, try path] + arguments
        return try ChildProcess(shell, environment: environment).finish()
    }

    static func run(_ arguments: String...) throws -> ChildProcess.End { try run(arguments) }
}
