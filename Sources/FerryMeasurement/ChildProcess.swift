internal import Dispatch
internal import FoundationEssentials
internal import Glibc

/// A child process for a server or a worker, so that its CPU time and memory are measured separately.
///
/// One thread reads its output and waits for it; any other thread may send it a signal meanwhile.
public final class ChildProcess: Sendable {
    private let pid: pid_t
    private let input: Int32
    private let output: Int32
    /// The queue on which it is reaped and signals are sent, one after another: once it is reaped, its number may
    /// belong to another process.
    private let reaping = DispatchQueue(label: "ferry.child")
    /// Whether it was reaped. On that queue only.
    nonisolated(unsafe) private var isReaped = false

    /// Why a process could not be started.
    public struct Failure: Error, CustomStringConvertible {
        /// The program and the system's message.
        public let description: String
    }

    /// How a process ended.
    public struct End: Sendable {
        /// The output that was not read before.
        public let output: String
        /// The exit code; for a signal its number, negated.
        public let code: Int32
        /// The CPU time, including the start.
        public let usage: ProcessUsage
    }

    /// Starts `arguments[0]`, found by `PATH`, in a process group of its own, so that ctrl-C reaches only its parent.
    ///
    /// Its stdin is a pipe that ends when this object is freed or the parent dies; its stdout is read by ``readLine()``
    /// and ``finish()``.
    public init(_ arguments: [String], environment: [String: String] = [:]) throws(Failure) {
        let forInput = try Self.makePipe()
        let forOutput = try Self.makePipe()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, forInput[0], STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, forOutput[1], STDOUT_FILENO)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        // Dispatch's threads block all signals. A child would inherit that, and nothing could end it.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for signal in [SIGINT, SIGTERM, SIGPIPE] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)

        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let argv = arguments.map { strdup($0) } + [nil]
        let envp = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        var pid: pid_t = 0
        let code = posix_spawnp(&pid, arguments[0], &actions, &attributes, argv, envp)
        for text in argv + envp { free(text) }
        posix_spawnattr_destroy(&attributes)
        posix_spawn_file_actions_destroy(&actions)
        close(forInput[0])
        close(forOutput[1])
        guard code == 0 else {
            close(forInput[1])
            close(forOutput[0])
            throw Self.failure(arguments[0], code)
        }
        self.pid = pid
        input = forInput[1]
        output = forOutput[0]
    }

    deinit {
        stop()
        close(input)
        close(output)
    }

    /// The next line of its output; `nil` at the end.
    public func readLine() -> String? {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while true {
            let count = read(output, &byte, 1)
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { break }
            if byte == UInt8(ascii: "\n") { return String(decoding: bytes, as: UTF8.self) }
            bytes.append(byte)
        }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }

    /// Waits until the process ends.
    public func finish() -> End {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(output, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { break }
            text.append(contentsOf: buffer.prefix(count))
        }
        let (code, usage) = wait()
        return End(output: String(decoding: text, as: UTF8.self), code: code, usage: usage)
    }

    /// Asks the process to end, and waits for it.
    public func stop() {
        if reaping.sync(execute: { isReaped }) { return }
        signal(SIGTERM)
        _ = wait()
    }

    /// Sends a signal to the process, unless it has been reaped.
    public func signal(_ number: Int32) {
        reaping.sync { if !isReaped { kill(pid, number) } }
    }

    private func wait() -> (Int32, ProcessUsage) {
        // Until it is reaped, signals may be sent to it, and its number is not reused.
        var info = siginfo_t()
        while waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
        return reaping.sync {
            var status: Int32 = 0
            var usage = rusage()
            while wait4(pid, &status, 0, &usage) < 0 && errno == EINTR {}
            isReaped = true
            let signal = status & 0x7f
            return (signal == 0 ? (status >> 8) & 0xff : -signal, ProcessUsage(usage))
        }
    }

    /// Both ends are closed in any process that is started later.
    private static func makePipe() throws(Failure) -> [Int32] {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw failure("pipe", errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return ends
    }

    private static func failure(_ what: String, _ code: Int32) -> Failure {
        Failure(description: "\(what): \(String(cString: strerror(code)))")
    }
}

/// The path of this program, to start it again. Not `/proc/self/exe`, which is strace's when running under strace.
public var ownExecutable: String {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
}

/// The full path of a program; `nil` if it is not installed. Debian installs servers outside a user's `PATH`.
public func findProgram(_ name: String) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    let folders = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin"]
    return folders.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
}
