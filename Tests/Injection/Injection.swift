internal import FerryMeasurement
internal import Foundation
internal import Glibc

/// Makes system calls fail in another process.
public struct Injection: Sendable, CustomStringConvertible {
    /// In the form that the preloaded library reads.
    public let description: String

    /// The call with this number, from 1, fails.
    public static func call(_ number: Int, of function: String) -> Injection {
        Injection(description: "\(function)@\(number)")
    }

    /// The call with this number fails, counted from when the first request is submitted to its loop.
    public static func call(_ number: Int, ofRequest function: String) -> Injection {
        Injection(description: "\(function)@\(number)+")
    }

    /// The call with this number, from 1, ends the process, like a kill.
    public static func kill(atCall number: Int, of function: String) -> Injection {
        Injection(description: "\(function)@\(number)!")
    }

    /// All calls of these functions fail.
    public static func all(of functions: String...) -> Injection { chance(100, of: functions, seed: 1) }

    /// This percentage fails; the same ones for the same seed, if the threads alternate in the same way.
    public static func chance(_ percent: Int, of functions: [String], seed: Int) -> Injection {
        Injection(description: "\(functions.joined(separator: ","))%\(percent):\(seed)")
    }

    /// The variables for the environment of the process. If it crashes, it ends at once: Swift's backtracer, whose
    /// calls fail, too, would keep the output of the process open for ever.
    public var environment: [String: String] {
        ["LD_PRELOAD": Self.library, "INJECT": description, "SWIFT_BACKTRACE": "enable=no"]
    }

    /// Whether it may be preloaded here: nothing may replace functions of a program built with a sanitizer.
    public static var isPossible: Bool {
        #if FERRY_TSAN || FERRY_ASAN
        false
        #else
        true
        #endif
    }

    /// Built once, with the compiler that comes with Swift.
    private static let library: String = {
        let library = folder + "/inject.so"
        let source = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "inject.c").path
        do {
            let end = try ChildProcess(
                ["clang", "-std=gnu11", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"]
            ).finish()
            precondition(end.code == 0, "clang ended with \(end.code)")
        } catch {
            fatalError("\(error)")
        }
        return library
    }()

    /// Removed with this process.
    private static let folder: String = {
        var template = Array("/tmp/ferry-inject-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { fatalError("mkdtemp: \(String(cString: strerror(errno)))") }
        atexit { try? FileManager.default.removeItem(atPath: Injection.folder) }
        return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }()
}
