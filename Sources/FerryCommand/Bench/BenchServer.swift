internal import FerryMeasurement

/// `ferry serve` in a process of its own, so that its CPU time is not counted as the client's.
struct BenchServer {
    let url: String
    /// The server, without a path.
    let base: String
    private let process: ChildProcess

    init() throws {
        process = try ChildProcess([ownExecutable, "serve", "--until-eof"])
        guard let line = process.readLine(), line.hasPrefix("http") else {
            throw InputError("the server for the measurement did not start")
        }
        base = line
        url = line + "/hello"
    }

    func stop() {
        process.stop()
    }
}
