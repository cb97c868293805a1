import Injection

extension Injection {
    /// Runs the command. If it does not end within half a minute it is killed, which gives the code 137. Its output
    /// goes to a file, if one is named.
    func run(_ arguments: [String], to path: String? = nil) throws -> FerryCommand.Outcome {
        let redirection = path.map { ["/bin/sh", "-c", #"exec "$@" >"$0""#, $0] } ?? []
        return try FerryCommand.run(
            arguments, environment: environment, wrapper: redirection + ["timeout", "-s", "KILL", "30"])
    }

    /// Whether only a single call fails.
    var isSingle: Bool { description.contains("@") }

    static let network = ["socket", "connect", "send", "recv"]
    /// Calls without which there is no loop, or no thread for it.
    static let threads = ["pthread_create", "epoll_ctl", "eventfd"]
    static let files = [
        "open", "write", "pwrite", "pread", "fsync", "fdatasync", "ftruncate", "rename", "flock", "unlink",
    ]

    static let single = (network + threads + files).flatMap { name in (1...4).map { call($0, of: name) } }
    /// Mostly allocations before anything is sent.
    static let memory = (1...40).map { call($0, of: "malloc") }
    static let memoryOfRequest = (1...120).map { call($0, ofRequest: "malloc") }
    static let random = chances(of: network + threads + files + ["malloc"])

    static func chances(of functions: [String]) -> [Injection] {
        [2, 10, 40].flatMap { percent in (1...4).map { chance(percent, of: functions, seed: $0) } }
    }
}
