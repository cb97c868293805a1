import FerryMeasurement
import Foundation
import Testing

/// The command as a process, for tests that need one.
enum FerryProgram {
    /// It is built beside the tests.
    static var path: String {
        get throws {
            let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
            return URL(filePath: bundle).deletingLastPathComponent().appending(path: "ferry").path
        }
    }

    /// Runs it to its end; stderr is included in the output.
    static func run(_ arguments: [String], environment: [String: String] = [:]) throws -> ChildProcess.End {
        let shell = ["/bin/sh", "-c", #"exec "$0" "$@" 2>&1"#, try path] + arguments
        return try ChildProcess(shell, environment: environment).finish()
    }

    static func run(_ arguments: String...) throws -> ChildProcess.End { try run(arguments) }
}
