internal import Ferry
internal import FoundationEssentials
internal import Glibc

/// `ferry fetch`: one exchange, or the same one several times through one agent.
enum FetchCommand: Subcommand {
    static let name = "fetch"
    static let summary = "Sends a request and prints the answer"
    static let synopsis = "URL [OPTIONS]"
    static let options = [
        CommandOption("request", "X", value: "METHOD", "GET, or POST with a body, unless said otherwise"),
        CommandOption("header", "H", value: "'N: V'", "A header field; may be repeated"),
        CommandOption("data", "d", value: "DATA|@FILE", "The body; @- is standard input"),
        CommandOption("query", value: "K=V", "Added to the query; may be repeated"),
        CommandOption("form", value: "K=V", "A field of a form body; may be repeated"),
        CommandOption("json-body", value: "JSON|@FILE", "A body of JSON"),
        CommandOption("basic", value: "USER:PW", "Basic credentials"),
        CommandOption("bearer", value: "TOKEN", "A bearer token"),
        CommandOption("status", value: "CODES", "Accepted status codes (200-299)"),
        CommandOption("timeout", value: "S", "Seconds for the exchange, once it has left the queue"),
        CommandOption("connect-timeout", value: "S", "Seconds for the connection"),
        CommandOption("deadline", value: "S", "Seconds for everything"),
        CommandOption("low-speed", value: "B", "Fail below B bytes a second over ten seconds"),
        CommandOption("max-body", value: "N", "Bytes of the body at most (64 MiB)"),
        CommandOption("cacert", value: "FILE", "Authorities to trust instead of the system's"),
        CommandOption("pin", value: "sha256//…", "The server's public key; may be repeated"),
        CommandOption("insecure", "k", "Verifies neither certificate nor name"),
        CommandOption("repeat", value: "N", "Sends it N times"),
        CommandOption("repeat-delay", value: "S", "Seconds between two of them"),
        CommandOption("json", "Prints one object a line in place of the body"),
    ]

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        let plan = try FetchPlan(arguments)
        let (code, wasInterrupted) = try await interruptible { await send(plan) }
        return wasInterrupted ? .interrupted : code
    }

    /// The exit code of the first that did not go well counts.
    private static func send(_ plan: FetchPlan) async -> ExitCode {
        let agent = NetworkAgent(configuration: plan.configuration)
        var code = ExitCode.success
        for round in 0..<plan.count {
            if round > 0 { try? await Task.sleep(for: plan.delay) }
            if Task.isCancelled { break }
            let report = await FetchReport(of: plan.request, by: agent, accepting: plan.accepts)
            show(report, plan)
            if code == .success { code = report.exitCode }
        }
        await agent.shutdown(grace: .zero)
        return code
    }

    private static func show(_ report: FetchReport, _ plan: FetchPlan) {
        if plan.printsJSON {
            Console.out(report.json + "\n")
            return
        }
        if let response = report.response { response.withBytes { Console.out($0) } }
        if let fault = report.fault { Console.error("ferry fetch: \(Main.oneLine(fault.line))\n") }
    }
}

/// What the command line asks for.
struct FetchPlan: Sendable {
    var request: FetchRequest
    var configuration = NetworkConfiguration()
    var statusRanges: [ClosedRange<Int>]
    var count: Int
    var delay: Duration
    var printsJSON: Bool

    init(_ arguments: ParsedArguments) throws {
        guard let url = arguments.operands.first else { throw UsageError("a URL is needed") }
        if arguments.operands.count > 1 { throw UsageError("one URL only, not also '\(arguments.operands[1])'") }
        request = try FetchRequest(url: url, arguments)
        statusRanges = try arguments.statusRanges("status") ?? [200...299]
        count = try arguments.integer("repeat", in: 1...Int.max) ?? 1
        delay = try arguments.seconds("repeat-delay", allowingZero: true) ?? .zero
        printsJSON = arguments.has("json")
        configuration.tls.authorityFile = arguments.last("cacert")
        configuration.tls.pinnedKeys = arguments.all("pin")
        if arguments.has("insecure") { configuration.tls.verification = .none }
        if let file = configuration.tls.authorityFile, access(file, R_OK) != 0 {
            throw InputError("\(file): \(String(cString: strerror(errno)))")
        }
        for pin in configuration.tls.pinnedKeys where !pin.hasPrefix("sha256//") {
            throw UsageError("--pin wants sha256//BASE64, not '\(pin)'")
        }
    }

    func accepts(_ status: Int) -> Bool {
        statusRanges.contains { $0.contains(status) }
    }
}
