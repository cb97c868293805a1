import FerryMeasurement
import FerrySynchronization
import FoundationEssentials
import Glibc

/// A server that lives as long as this object, but no longer than the process of the tests.
final class ServerProcess: Sendable {
    let pid: Int32
    let folder: ServerFolder
    private let keeper: Mutex<ChildProcess?>

    /// The signal that ends a server without waiting for its connections.
    enum Ending: String {
        case terminate = "TERM"
        case kill = "KILL"
    }

    /// Starts a server and waits until it is ready: until it listens on its ports, and has written the file `sign` if
    /// one is named. `launch` writes the files it needs into its folder and returns its command line. It is called
    /// again, with a new folder and other ports, if one of the ports was taken.
    static func start(
        ports count: Int, ending: Ending = .kill, sign: String? = nil,
        _ launch: (_ folder: ServerFolder, _ ports: [Int]) throws -> [String]
    ) throws -> (process: ServerProcess, ports: [Int]) {
        var round = 1
        while true {
            let folder = try ServerFolder()
            let ports = try freePorts(count)
            do {
                let arguments = try launch(folder, ports)
                return (try ServerProcess(arguments, in: folder, ports, sign, ending), ports)
            } catch let error as ServerError {
                let isTaken = ["in use", "EADDRINUSE", "bind"].contains { error.description.contains($0) }
                if !isTaken || round == 5 { throw error }
                round += 1
            }
        }
    }

    private init(
        _ arguments: [String], in folder: ServerFolder, _ ports: [Int], _ sign: String?, _ ending: Ending
    ) throws {
        let name = arguments[0]
        guard let program = name.hasPrefix("/") ? name : findProgram(name), access(program, X_OK) == 0 else {
            throw ServerError("\(name) is not installed: make test-integration installs it")
        }
        let user = ServerUser.current
        try folder.hand(to: user)
        let command = ["/bin/sh", Self.script("keeper.sh"), folder.path, ending.rawValue, user.name, program]
        let keeper = try ChildProcess(command + arguments.dropFirst())
        guard let pid = keeper.readLine().flatMap({ Int32($0) }) else { throw ServerError("the keeper did not start") }
        self.pid = pid
        self.folder = folder
        let isReady = {
            ListeningSockets.include(ports, of: pid) && (sign.map { folder.has($0) } ?? true)
        }
        guard Self.waits(for: isReady, of: pid) else {
            throw ServerError("\(arguments.joined(separator: " ")) is not ready on \(ports):\n" + Self.logs(of: folder))
        }
        self.keeper = Mutex(keeper)
    }

    deinit { stop() }

    /// Ends the server and waits for it; its folder is removed then.
    func stop() {
        keeper.withLock { $0 = nil }
    }

    func signal(_ number: Int32) {
        kill(pid, number)
    }

    /// A file beside the servers' scripts.
    static func script(_ name: String) -> String {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Servers/\(name)").path
    }

    /// Polls, because there is no notification; `false` if the process has ended or two minutes have passed.
    private static func waits(for condition: () -> Bool, of pid: Int32) -> Bool {
        let end = ContinuousClock.now + .seconds(120)
        while ContinuousClock.now < end {
            if condition() { return true }
            var executable = [CChar](repeating: 0, count: 1)
            if readlink("/proc/\(pid)/exe", &executable, 1) < 0 && errno == ENOENT { return condition() }
            usleep(5000)
        }
        return false
    }

    private static func logs(of folder: ServerFolder) -> String {
        ["output.log", "error.log", "cache.log"].map { folder.read($0) }.filter { !$0.isEmpty }.joined(separator: "\n")
    }
}
