internal import Foundation
internal import Glibc

/// A process of its own for a server or a worker, so that its CPU time and memory are nobody else's.
final class ChildProcess {
    let pid: pid_t
    private let output: Int32
    private var hasEnded = false

    /// Starts `arguments[0]`, found by `PATH`; its stdout is read by `readLine` and `readAll`.
    init(_ arguments: [String], environment: [String: String] = [:]) throws {
        var ends: [Int32] = [-1, -1]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw BenchmarkError("pipe: \(Self.reason(errno))") }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)

        var variables = ProcessInfo.processInfo.environment
        variables.merge(environment) { $1 }
        let argv = arguments.map { strdup($0) } + [nil]
        let envp = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in argv + envp { free(text) } }
        var pid: pid_t = 0
        let code = posix_spawnp(&pid, arguments[0], &actions, nil, argv, envp)
        close(ends[1])
        guard code == 0 else {
            close(ends[0])
            throw BenchmarkError("\(arguments[0]): \(Self.reason(code))")
        }
        self.pid = pid
        output = ends[0]
    }

    deinit {
        if !hasEnded { stop() }
        close(output)
    }

    /// The next line of its output; `nil` at the end.
    func readLine() -> String? {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while read(output, &byte, 1) == 1 {
            if byte == UInt8(ascii: "\n") { return String(decoding: bytes, as: UTF8.self) }
            bytes.append(byte)
        }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }

    /// Waits for its end and returns what it printed, its exit code (a signal's number negated) and its CPU time in
    /// microseconds, start-up included.
    func finish() -> (output: String, code: Int32, userTime: Double, systemTime: Double) {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(output, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { break }
            text.append(contentsOf: buffer.prefix(count))
        }
        let (code, usage) = wait()
        return (String(decoding: text, as: UTF8.self), code, Self.microseconds(usage.ru_utime), Self.microseconds(usage.ru_stime))
    }

    /// Asks it to end and waits for that.
    func stop() {
        if hasEnded { return }
        kill(pid, SIGTERM)
        _ = wait()
    }

    private func wait() -> (Int32, rusage) {
        var status: Int32 = 0
        var usage = rusage()
        while wait4(pid, &status, 0, &usage) < 0 && errno == EINTR {}
        hasEnded = true
        let signal = status & 0x7f
        return (signal == 0 ? (status >> 8) & 0xff : -signal, usage)
    }

    private static func microseconds(_ time: timeval) -> Double {
        Double(time.tv_sec) * 1_000_000 + Double(time.tv_usec)
    }

    private static func reason(_ code: Int32) -> String {
        String(cString: strerror(code))
    }
}

/// This program, to be started again as a worker.
let ownExecutable = "/proc/self/exe"

/// The full path of a program; `nil` when it is not installed. Debian keeps servers outside a user's `PATH`.
func findProgram(_ name: String) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    let folders = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin"]
    return folders.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
}
