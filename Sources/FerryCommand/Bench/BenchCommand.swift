internal import Ferry
internal import FerryMeasurement
internal import Glibc

/// `ferry bench`: puts load on a server and says what it cost.
enum BenchCommand: Subcommand {
    static let name = "bench"
    static let summary = "Puts load on a server and measures it"
    static let synopsis = "[URL] [OPTIONS]"
    static let optionGroups = [load, fleet, request, FetchCommand.credentials, FetchCommand.connection, output]

    private static let load = OptionGroup(
        "The load",
        [
            CommandOption("concurrency", "c", value: "N", "The closed model: N at once, each after an answer (64)"),
            CommandOption("rate", "r", value: "R", "The open model: R a second, whatever becomes of them"),
            CommandOption("duration", "z", value: "S", "Sends for S seconds (10, without -n)"),
            CommandOption("requests", "n", value: "N", "Sends N requests"),
            CommandOption("warm-up", "w", value: "S", "Seconds of load before that, which do not count (0)"),
            CommandOption("connections", value: "N", "To the server at most; the others wait (as -c, with -r 1000)"),
            CommandOption("loops", value: "N", "Threads that carry (1)"),
            CommandOption("plan", value: "FILE", "Runs a plan as the unit of load; figures for each of its requests"),
            CommandOption("base", value: "URL", "With --plan: what its paths are joined to, in place of its own"),
            CommandOption("var", value: "N=V", "With --plan: a variable, in place of its own; may be repeated"),
            CommandOption("har", value: "FILE", "Replays the requests of a HAR file, each at its time"),
            CommandOption("unpaced", "With --har: -c at once, each after an answer"),
        ])

    private static let fleet = OptionGroup(
        "Several machines, which meet in a Redis server",
        [
            CommandOption(
                "fleet", value: "REDIS#NAME", "Shares the load among workers and merges their figures; sends nothing"),
            CommandOption("workers", value: "N", "With --fleet: how many workers, 1 to 1000; all start together"),
            CommandOption("join", value: "REDIS#NAME", "Carries a part of the load of the fleet with this name"),
            CommandOption("join-timeout", value: "S", "Seconds until all have joined (60)"),
        ])

    private static let request = OptionGroup(
        "The request, and what its answer must be",
        [
            CommandOption("request", "X", value: "METHOD", "GET, or POST with a body, unless said otherwise"),
            CommandOption("header", "H", value: "'N: V'", "A header field; may be repeated"),
            CommandOption("data", "d", value: "DATA|@FILE", "The body, as it is"),
            CommandOption("json-body", value: "JSON|@FILE", "JSON, which is checked"),
            CommandOption(
                "from-curl", value: "'curl …'", "URL, request and connection as this command of curl has them"),
            CommandOption("timeout", "m", value: "S", "Seconds for each exchange, once it has left the queue"),
            CommandOption("status", value: "CODES", "Accepted status codes, like 200-299,404 (200-299)"),
            CommandOption("schema", value: "FILE", "A JSON Schema that every body must fit"),
            CommandOption("expect-sha256", value: "HEX", "The digest of every body, in place of being like the first"),
            CommandOption("any-body", "Compares no bodies"),
            CommandOption("max-redirects", value: "N", "Redirects to follow; 0 for none (10)"),
            CommandOption("compressed", "Asks for gzip and deflate, and undoes them; the default"),
            CommandOption("no-compressed", "Asks for the body as it is"),
        ] + HTTPCacheOption.options)

    private static let output = OptionGroup(
        "What is done with the figures",
        [
            CommandOption(
                "json", optionalValue: "FILE", "Prints one object in place of the table, or writes it to FILE"),
            CommandOption(
                "compare", value: "CLIENT", words: BenchRival.names,
                "Puts the same load on it by another client: urlsession"),
            CommandOption("html", value: "FILE", "Writes a page with the distribution and the course of the load"),
            CommandOption("baseline", value: "FILE", "What --json wrote of an earlier run, for --fail-if"),
            CommandOption("fail-if", value: "'F>V'", "Ends with 4 if 'p99>+10%', 'failed>0'…; may be repeated"),
        ])

    static let notes = """
        Without a URL it starts a server of its own, in another process, and asks for twelve bytes.
        Latencies of the open model count from when a request was due, not from when it was sent: what is
        slow is not left out (coordinated omission). Those of the closed model count from the sending. Its
        connections are as many as -c, 10,000 at most; of HTTP/2 a host gets 100 streams from each loop.

        --fail-if: p50 to p99.9, max, mean, rps, requests, failed, wrong, cpu, memory or connections, then
        >, >=, < or <=, then a value ('p99>250ms', 'rps<5000', 'failed>1%') or, with --baseline, a change.
        rps is accepted answers a second: what failed is no throughput, and is counted as attempts.

        With --plan go -c, -z, -n, -w, --connections, --loops, --engine, --base, --var, --http-cache, --json,
        --html, and --fail-if on times, rps and failed, of whole runs; nothing else does: the plan itself says what is
        sent and expected. With --har go --unpaced, --connections, --loops, --engine, -m, --status (200-399),
        --json, --html, --baseline and --fail-if.

        REDIS#NAME is redis://HOST[:PORT][/DATABASE]#NAME. With --join go the options of the way there, --json and
        --html of its own part, and nothing else: the coordinator says the rest.

        The first ctrl-C ends the load and prints the summary so far; what had no answer yet is counted. The
        manual's article "Measuring" tells what the figures mean. Exit codes: 3 transfers failed, 5 a status
        was not accepted, 4 a condition holds, or bodies were wrong and --expect-sha256, or no URL, was given.
        A condition on failed or wrong decides in place of these: 'failed>1%' lets one in a hundred fail.
        """

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        if let path = arguments.last("plan") { return try await PlanBench.run(path, arguments) }
        if let path = arguments.last("har") { return try await ArchiveBench.run(path, arguments) }
        if arguments.has("join") { return try await FleetBench.join(arguments) }
        if arguments.has("fleet") { return try await FleetBench.coordinate(arguments) }
        for name in ["workers", "join-timeout"] where arguments.has(name) {
            throw UsageError("--\(name) goes with --fleet")
        }
        if arguments.has("unpaced") { throw UsageError("--unpaced goes with --har") }
        for name in ["base", "var"] where arguments.has(name) { throw UsageError("--\(name) goes with --plan") }
        var plan = try BenchPlan(arguments)
        let rival = try BenchRival(arguments)
        raiseDescriptorLimit()
        let server = try plan.order.hasServer ? nil : BenchServer()
        defer { server?.stop() }
        if let server { plan.order.request.path = server.url }
        try plan.order.check()
        let run = BenchRun(plan)
        let (outcome, wasInterrupted) = try await interruptible { [plan] in
            var report = await run.perform()
            guard let rival, !Task.isCancelled else { return (report, nil as (any Error)?) }
            // Whatever becomes of it, there is a measurement to be told of.
            do {
                report.comparison = try await rival.perform(plan)
                return (report, nil)
            } catch {
                return (report, error)
            }
        }
        var (report, rivalFault) = outcome
        plan.verdict.judge(&report)
        // Of a server of one's own it is known that every answer is the same.
        let mustBeRight = server != nil || plan.bodies != .likeFirst
        let ruling = BenchRuling(report, plan.verdict, mustBeRight: mustBeRight, wasInterrupted: wasInterrupted)
        try plan.output.write(report, ruling)
        if let rivalFault { throw rivalFault }
        return ruling.exitCode
    }
}

/// What the command line asks for.
struct BenchPlan: Sendable {
    /// How it is decided when the next request is sent.
    enum Model: Sendable, Equatable {
        /// So many at once, each sent when the one before it was answered: slow answers make it send less.
        case closed(concurrency: Int)
        /// So many a second, whatever becomes of them.
        case open(rate: Double)
    }

    var order: BenchOrder
    var model: Model
    var requests: Int?
    var duration: Duration?
    var warmUp: Duration
    var connections: Int
    /// Whether the command line says so.
    let namesConnections: Bool
    var loops: Int
    /// The part of the load that this process carries.
    var share = FleetShare.whole
    var bodies: BodyCheck.Rule
    var output: BenchOutput
    var verdict: BenchVerdict

    init(_ arguments: ParsedArguments) throws {
        requests = try arguments.integer("requests", in: 1...1_000_000_000)
        duration = try arguments.seconds("duration")
        if requests != nil && duration != nil { throw UsageError("-n and -z exclude each other") }
        if requests == nil && duration == nil { duration = .seconds(10) }
        warmUp = try arguments.seconds("warm-up", allowingZero: true) ?? .zero
        model = try Self.model(arguments)
        connections = try arguments.integer("connections", in: 1...100_000) ?? Self.usualConnections(model)
        namesConnections = arguments.has("connections")
        loops = try arguments.integer("loops", in: 1...256) ?? 1
        bodies = try BodyCheck.Rule(arguments)
        output = try BenchOutput(arguments)
        verdict = try BenchVerdict(arguments)
        order = try BenchOrder(arguments)
        if order.configuration.cache != nil, case .open = model {
            throw UsageError("--http-cache and -r exclude each other: what the cache answers is not sent")
        }
        order.configuration.eventLoopCount = loops
        limit(to: connections)
    }

    mutating func limit(to count: Int) {
        connections = count
        order.configuration.limits.transfersPerHost = count
        order.configuration.limits.maxConcurrentTransfers = max(
            count, order.configuration.limits.maxConcurrentTransfers)
    }

    /// Senders of the closed model; of the open one there are none.
    var concurrency: Int {
        if case .closed(let concurrency) = model { concurrency } else { 0 }
    }

    /// For the head of what is shown.
    var title: String {
        // HTTP/2 counts streams, of which a host gets a hundred at a time from each loop.
        let streams = order.configuration.http2 == .never ? Int.max : Self.mostStreams * loops
        let most = min(connections, streams)
        let part = share.count > 1 ? ", part \(share.index + 1) of \(share.count)" : ""
        guard case .closed(let concurrency) = model, most < concurrency else { return model.title + part }
        return model.title + part + ", at most \(grouped(UInt64(most))) of them on their way"
    }

    private static let mostStreams = 100
    private static let mostConnections = 10_000
    /// For files, loops, and what else a process opens.
    private static let spareDescriptors = 100

    /// Of the closed model one for each sender, as far as the system lets a process have them. An open model that waits
    /// for connections measures its own bound.
    static func usualConnections(_ model: Model, descriptors: Int = descriptorLimit) -> Int {
        switch model {
        case .closed(let concurrency):
            max(1, min(concurrency, mostConnections, descriptors - spareDescriptors))
        case .open: 1000
        }
    }

    /// For plans: one for each request that its senders may have on their way at once, unless the command line says
    /// how many.
    func connections(of root: PlanNode) -> Int {
        if namesConnections { return connections }
        let (atOnce, isTooMany) = concurrency.multipliedReportingOverflow(by: root.width)
        return Self.usualConnections(.closed(concurrency: isTooMany ? .max : atOnce))
    }

    private static func model(_ arguments: ParsedArguments) throws(UsageError) -> Model {
        let concurrency = try arguments.integer("concurrency", in: 1...1_000_000)
        guard let text = arguments.last("rate") else { return .closed(concurrency: concurrency ?? 64) }
        if concurrency != nil { throw UsageError("-c and -r exclude each other") }
        guard let rate = Double(text), 0.000_01...10_000_000 ~= rate else {
            throw UsageError("--rate wants requests a second, from 0.00001 to 10000000, not '\(text)'")
        }
        return .open(rate: rate)
    }
}

extension BenchPlan.Model {
    /// In words.
    var title: String {
        switch self {
        case .closed(let concurrency): "closed, \(grouped(UInt64(concurrency))) at once"
        case .open(let rate): "open, \(rate == rate.rounded() ? String(Int(rate)) : String(rate)) a second"
        }
    }
}

/// Descriptors that this process may have once the load has lifted its limit.
private var descriptorLimit: Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
    return Int(clamping: limit.rlim_max)
}
