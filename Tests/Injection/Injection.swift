internal import FerryMeasurement
internal import Foundation
internal import Glibc

/// Has calls of the system fail in another process.
public struct Injection: Sendable, CustomStringConvertible {
    /// As the preloaded library reads it.
    public let description: String

    /// The call of this number, from 1, fails.
    public static func call(_ number: Int, of function: String) -> Injection {
        Injection(description: "\(function)@\(number)")
    }

    /// Likewise, of the calls from the moment on in which the first request is handed to its loop.
    public static func call(_ number: Int, ofRequest function: String) -> Injection {
        Injection(description: "\(function)@\(number)+")
    }

    /// The call of this number, from 1, is the end of the process, as by a kill.
    public static func kill(atCall number: Int, of function: String) -> Injection {
        Injection(description: "\(function)@\(number)!")
    }

    /// All calls of these functions fail.
    public static func all(of functions: String...) -> Injection { chance(100, of: functions, seed: 1) }

    /// So many in a hundred fail; the same ones for the same seed, as far as threads take turns in the same way.
    public static func chance(_ percent: Int, of functions: [String], seed: Int) -> Injection {
        Injection(description: "\(functions.joined(separator: ","))%\(percent):\(seed)")
    }

    /// What has to stand in the environment of the process.
    public var environment: [String: String] { ["LD_PRELOAD": Self.library, "INJECT": description] }

    /// Whether it may be preloaded here: a program that was built with a sanitizer lets nothing stand before its own
    /// functions.
    public static var isPossible: Bool {
        #if FERRY_TSAN || FERRY_ASAN
        false
        #else
        true
        #endif
    }

    /// Made once, by the compiler that Swift brings along.
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

    /// Gone with this process.
    private static let folder: String = {
        var template = Array("/tmp/ferry-inject-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { fatalError("mkdtemp: \(String(cString: strerror(errno)))") }
        atexit { try? FileManager.default.removeItem(atPath: Injection.folder) }
        return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }()
}
