internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials

/// `ferry bench`: puts load on a server and says what it cost.
enum BenchCommand: Subcommand {
    static let name = "bench"
    static let summary = "Puts load on a server and measures it"
    static let synopsis = "[URL] [OPTIONS]"
    static let optionGroups = [
        OptionGroup([
            CommandOption("requests", "n", value: "N", "Sends N requests"),
            CommandOption("duration", "z", value: "S", "Sends for S seconds (10, without -n)"),
            CommandOption("concurrency", "c", value: "N", "Asks for N at once (64)"),
            CommandOption("connections", value: "N", "Of these to the server at most; the others wait (64)"),
            CommandOption("header", "H", value: "'N: V'", "A header field; may be repeated"),
            CommandOption("schema", value: "FILE", "A JSON Schema that every body must fit"),
            CommandOption("plan", value: "FILE", "Runs a plan as the unit of load; figures for each of its requests"),
            CommandOption("loops", value: "N", "Threads that carry (1)"),
            CommandOption("json", "Prints one object in place of the table"),
        ])
    ]
    static let notes = """
        Without a URL it starts a server of its own, in another process, and asks for twelve bytes.
        The first ctrl-C ends the load and prints the summary so far.
        """

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        if let path = arguments.last("plan") { return try await PlanBench.run(path, arguments) }
        var plan = try BenchPlan(arguments)
        raiseDescriptorLimit()
        let server = try plan.url == nil ? BenchServer() : nil
        if let server { plan.url = server.url }
        let run = BenchRun(plan)
        let (summary, wasInterrupted) = try await interruptible { await run.perform() }
        server?.stop()
        Console.out(plan.printsJSON ? summary.json + "\n" : summary.table)
        if wasInterrupted { return .interrupted }
        if summary.failed > 0 { return summary.failedByValidation ? .validationFailed : .transferFailed }
        // Of a server of one's own it is known that every answer is the same.
        return server != nil && summary.wrongBodies > 0 ? .validationFailed : .success
    }
}

/// What the command line asks for.
struct BenchPlan: Sendable {
    /// `nil`: a server is started for it.
    var url: String?
    var requests: Int?
    var duration: Duration?
    var concurrency: Int
    var connections: Int
    var headers = Headers()
    var schema: JSONSchema?
    var loops: Int
    var printsJSON: Bool

    init(_ arguments: ParsedArguments) throws {
        url = arguments.operands.first
        if arguments.operands.count > 1 { throw UsageError("one URL only, not also '\(arguments.operands[1])'") }
        requests = try arguments.integer("requests", in: 1...Int.max)
        duration = try arguments.seconds("duration")
        if requests != nil && duration != nil { throw UsageError("-n and -z exclude each other") }
        if requests == nil && duration == nil { duration = .seconds(10) }
        concurrency = try arguments.integer("concurrency", in: 1...1_000_000) ?? 64
        connections = try arguments.integer("connections", in: 1...100_000) ?? 64
        for field in try arguments.headerFields("header") { headers.append(field.name, field.value) }
        if let path = arguments.last("schema") { schema = try SchemaFile.schema(at: path) }
        loops = try arguments.integer("loops", in: 1...256) ?? 1
        printsJSON = arguments.has("json")
    }
}

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
