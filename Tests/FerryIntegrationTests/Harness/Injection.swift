import FerryMeasurement
import Foundation

/// Has calls of the system fail in a process of the `ferry` command.
struct Injection: Sendable, CustomStringConvertible {
    /// As the preloaded library reads it.
    let description: String

    /// The call of this number, from 1, fails.
    static func call(_ number: Int, of function: String) -> Injection {
        Injection(description: "\(function)@\(number)")
    }

    /// So many in a hundred fail; the same ones for the same seed, as far as threads take turns in the same way.
    static func chance(_ percent: Int, of functions: [String], seed: Int) -> Injection {
        Injection(description: "\(functions.joined(separator: ","))%\(percent):\(seed)")
    }

    /// Runs the command; what does not end within half a minute is killed, which is the code 137.
    func run(_ arguments: [String]) throws -> FerryCommand.Outcome {
        try FerryCommand.run(
            arguments, environment: ["LD_PRELOAD": Self.library, "INJECT": description],
            wrapper: ["timeout", "-s", "KILL", "30"])
    }

    private static let folder = Result { try ServerFolder() }

    /// Made once, by the compiler that Swift brings along.
    private static let library: String = {
        do {
            let made = try folder.get().file("inject.so")
            let source = URL(filePath: #filePath).deletingLastPathComponent()
                .appending(path: "../Servers/inject.c").standardizedFileURL.path
            let end = try ChildProcess(
                ["clang", "-std=gnu11", "-O1", "-shared", "-fPIC", "-o", made, source, "-ldl"]
            ).finish()
            precondition(end.code == 0, "clang ended with \(end.code)")
            return made
        } catch {
            fatalError("\(error)")
        }
    }()
}
