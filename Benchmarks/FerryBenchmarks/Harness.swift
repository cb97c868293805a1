internal import FerryMeasurement
internal import Foundation

/// Runs the cases, each measurement in a process of its own.
struct Harness {
    let options: Options
    private let programs: ProgramRivals
    private(set) var table = ResultTable()
    private(set) var serverName = ""
    private let start = ContinuousClock.now

    init(_ options: Options) throws {
        self.options = options
        programs = try ProgramRivals()
    }

    /// All cases in every round, and all rivals one after another in short parts, so that disturbances of the machine
    /// affect all of them.
    mutating func run() throws {
        defer { programs.remove() }
        note(Schedule(options: options).text)
        for line in programs.missing { note(line) }
        let cases = Case.every.filter { options.includes($0.name) }
        if !cases.isEmpty {
            let server = try Server(preferringNginx: options.usesNginx)
            defer { server.stop() }
            serverName = server.name
            for round in 0..<options.rounds {
                for one in cases where round % one.interval == 0 {
                    guard let url = one.isSecure ? server.secureURL : server.url else {
                        note("\(one.name)  left out: it needs nginx and the openssl command")
                        continue
                    }
                    try run(one, round: round, server: url)
                }
            }
            for one in cases where one.secondsOfSystemCalls > 0 && findProgram("strace") != nil {
                try countSystemCalls(one, server: server.url)
            }
        }
        for special in SpecialCase.allCases where options.includes(special.rawValue) {
            // A case that the machine has no room for must not lose the figures of all others.
            do { try run(special) } catch { note("\(special.rawValue)  left out: \(error)") }
        }
        if options.includes(Options.json) {
            note("json")
            let process = try ChildProcess([ownExecutable, "worker", "json", "\(options.rounds * 4 + 1)"])
            let end = process.finish()
            guard end.code == 0 else { throw BenchmarkError("worker json ended with \(end.code)") }
            table.json = try JSONDecoder().decode(JSONFigures.self, from: Data(end.output.utf8))
        }
    }

    private mutating func run(_ one: Case, round: Int, server: String) throws {
        let rivals = present(one.rivals)
        for turn in 0..<rivals.count * one.parts {
            let (part, index) = turn.quotientAndRemainder(dividingBy: rivals.count)
            // The order changes, so that no rival is always first.
            let rival = rivals[(index + round + part) % rivals.count]
            var load = one.load(server: server, rival: rival, scale: options.scale / Double(one.parts))
            if one.opensFirst { load.total += load.connections * 2 }
            note("round \(round + 1)/\(options.rounds)  \(one.name)  \(rival.title)")
            var measurement = try measure(rival, load)
            if one.opensFirst && !Rival.generators.contains(rival) {
                var opening = load
                opening.total = load.connections * 2
                try measurement.leaveOut(measure(rival, opening), opening: load.connections)
            }
            table.add(measurement, case: one.name, rival: rival)
        }
    }

    private mutating func run(_ special: SpecialCase) throws {
        // The loopback server can hold back thousands of responses.
        let server = try Server(preferringNginx: special.isOfFiles && options.usesNginx)
        defer { server.stop() }
        for _ in 0..<(special.isRepeated ? options.rounds * special.timesARound : 1) {
            for rival in special.rivals {
                if rival == .curl && findProgram("curl") == nil {
                    note("\(special.rawValue)  curl is not installed, and left out")
                    continue
                }
                note("\(special.rawValue)  \(rival.title)")
                let load = Load(url: server.url, total: 0, concurrency: 0, length: 0)
                let measurement = try WorkerProcess.measure(
                    "\(special.rawValue)-\(rival.worker)", load, environment: rival.environment)
                table.add(measurement, case: special.rawValue, rival: rival)
            }
        }
    }

    /// From two short runs, so that the start does not count.
    private mutating func countSystemCalls(_ one: Case, server: String) throws {
        let uncounted = Rival.programs + [.urlSession]
        for rival in present(one.rivals) where !uncounted.contains(rival) {
            note("system calls  \(one.name)  \(rival.title)")
            var load = one.load(server: server, rival: rival, scale: 1)
            load.total = load.concurrency * 2 + 2000
            let few = try systemCalls(rival, load)
            load.total += 10_000
            let many = try systemCalls(rival, load)
            table.setSystemCalls(Double(many - few) / 10_000, case: one.name, rival: rival)
        }
    }

    private func systemCalls(_ rival: Rival, _ load: Load) throws -> Int {
        let report = NSTemporaryDirectory() + "/ferry-strace-\(ProcessInfo.processInfo.processIdentifier)"
        defer { try? FileManager.default.removeItem(atPath: report) }
        let process = try ChildProcess(
            ["strace", "-f", "-c", "-U", "name,calls", "-o", report] + WorkerProcess.arguments(rival.worker, load),
            environment: rival.environment)
        guard process.finish().code == 0 else { throw BenchmarkError("strace failed") }
        let text = try String(contentsOfFile: report, encoding: .utf8)
        for line in text.split(separator: "\n") where line.hasPrefix("total") {
            return Int(line.split(separator: " ").last ?? "") ?? 0
        }
        throw BenchmarkError("strace printed no total")
    }

    private func present(_ rivals: [Rival]) -> [Rival] {
        rivals.filter { programs.has($0) }
    }

    private func measure(_ rival: Rival, _ load: Load) throws -> Measurement {
        try programs.measure(rival, load) ?? WorkerProcess.measure(rival.worker, load, environment: rival.environment)
    }

    private func note(_ text: String) {
        let seconds = Int((ContinuousClock.now - start) / .seconds(1))
        let clock = "\(seconds / 60):" + (seconds % 60 < 10 ? "0" : "") + "\(seconds % 60)"
        FileHandle.standardError.write(Data("\(clock)  \(text)\n".utf8))
    }
}
