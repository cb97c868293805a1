internal import Ferry
internal import FerryMeasurement
internal import Glibc

/// `ferry bench`: puts load on a server and reports latencies, throughput and cost.
enum BenchCommand: Subcommand {
    static let name = "bench"
    static let summary = "Put load on a server and measure it"
    static let synopsis = "[URL] [OPTIONS]"
    static let optionGroups = [load, fleet, request, FetchCommand.credentials, FetchCommand.connection, output]

    private static let load = OptionGroup(
        "The load",
        [
            CommandOption(
                "concurrency", "c", value: "N", "Closed model: N requests at once, each after a response (64)"),
            CommandOption("rate", "r", value: "R", "Open model: R requests per second, regardless of responses"),
            CommandOption("duration", "z", value: "S", "Send requests for S seconds (10, without -n)"),
            CommandOption("requests", "n", value: "N", "Send N requests"),
            CommandOption("warm-up", "w", value: "S", "Warm up for S seconds, which are not counted (0)"),
            CommandOption("connections", value: "N", "Maximum number of connections (as many as -c; 1000 with -r)"),
            CommandOption("loops", value: "N", "Number of event loops (1)"),
            CommandOption("plan", value: "FILE", "Run a plan as the unit of load; measure each of its requests"),
            CommandOption("base", value: "URL", "With --plan: base URL, instead of the plan's"),
            CommandOption("var", value: "N=V", "With --plan: set a variable, as in ferry run; may be repeated"),
            CommandOption("har", value: "FILE", "Replay the requests of a HAR file, each at its time"),
            CommandOption("unpaced", "With --har: ignore the times; keep -c requests in flight"),
        ])

    private static let fleet = OptionGroup(
        "Several machines, which communicate through a Redis server",
        [
            CommandOption(
                "fleet", value: "REDIS#NAME", "Divide the load among workers and merge their figures; send nothing"),
            CommandOption("workers", value: "N", "With --fleet: number of workers, 1 to 1000; all start together"),
            CommandOption("join", value: "REDIS#NAME", "Carry one part of the load of the fleet with this name"),
            CommandOption("join-timeout", value: "S", "Wait at most S seconds until all have joined (60)"),
        ])

    private static let request = OptionGroup(
        "The request and its checks",
        [
            CommandOption("request", "X", value: "METHOD", "Method; the default is GET, or POST with a body"),
            CommandOption("header", "H", value: "'N: V'", "Add a header field; may be repeated"),
            CommandOption("data", "d", value: "DATA|@FILE", "Send DATA or the contents of FILE"),
            CommandOption("json-body", value: "JSON|@FILE", "Send JSON after checking its syntax"),
            CommandOption(
                "from-curl", value: "'curl …'", "Take URL, request and connection from a curl command line"),
            CommandOption("timeout", "m", value: "S", "Time limit for each exchange, without its wait in the queue"),
            CommandOption("status", value: "CODES", "Accept these status codes, like 200-299,404 (200-299)"),
            CommandOption("schema", value: "FILE", "Check every body against a JSON Schema"),
            CommandOption(
                "expect-sha256", value: "HEX", "Compare every body with this digest, not with the first body"),
            CommandOption("any-body", "Do not compare bodies"),
            CommandOption("max-redirects", value: "N", "Maximum number of redirects; 0 follows none (10)"),
            CommandOption("compressed", "Request gzip and deflate, and decode them (default)"),
            CommandOption("no-compressed", "Request the body without compression"),
        ] + HTTPCacheOption.options)

    private static let output = OptionGroup(
        "Output",
        [
            CommandOption(
                "json", optionalValue: "FILE", "Print one JSON object instead of the table, or write it to FILE"),
            CommandOption(
                "compare", value: "CLIENT", words: BenchRival.names,
                "Repeat the load with another client: urlsession"),
            CommandOption("html", value: "FILE", "Write a page with charts of the latencies and the rate"),
            CommandOption("baseline", value: "FILE", "Compare with the --json output of an earlier run, for --fail-if"),
            CommandOption("fail-if", value: "'F>V'", "Exit with 4 if 'p99>+10%', 'failed>0'…; may be repeated"),
        ])

    static let notes = """
        Without a URL, ferry starts its own server in another process and requests a body of twelve bytes.
        Latencies of the open model count from the time when a request was due, not from when it was sent,
        so slow responses are not left out (coordinated omission). Those of the closed model count from
        sending. It opens as many connections as -c, at most 10,000; HTTP/2: 100 streams per host and loop.

        --fail-if: p50 to p99.9, max, mean, rps, requests, failed, wrong, cpu, memory or connections, then
        >, >=, < or <=, then a value ('p99>250ms', 'rps<5000', 'failed>1%') or, with --baseline, a change.
        rps is accepted responses per second: failures are not throughput, and are counted as attempts.

        --plan can be combined with -c, -z, -n, -w, --connections, --loops, --engine, --base, --var,
        --http-cache, --cache-dir, --cache, --json, --html, and --fail-if on times, rps and failed of whole runs; the
        plan itself says what is sent and expected. --har can be combined with --unpaced, --connections, --loops,
        --engine, -m, --status (200-399), --json, --html, --baseline, --fail-if, --fleet and --workers.

        REDIS#NAME is redis://HOST[:PORT][/DATABASE]#NAME, or with TLS rediss://HOST[:PORT][/DATABASE][?FILES]#NAME,
        where FILES are cacert=FILE, cert=FILE and key=FILE, joined with '&'. --join can be combined with
        --join-timeout, the options under "Connection", and --json and --html for its own part; the coordinator sets
        everything else.

        The first ctrl-C ends the load and prints the summary so far; requests without a response are counted. The
        manual's article "Measuring" explains the figures. Exit codes: 3 transfers failed, 5 a status was not
        accepted, 4 a condition was met or bodies were wrong. Wrong bodies count only with --expect-sha256 or
        without a URL. A condition on failed or wrong replaces these: 'failed>1%' tolerates one failure in a hundred.
        """

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        if let path = arguments.last("plan") { return try await PlanBench.run(path, arguments) }
        if let path = arguments.last("har") { return try await ArchiveBench.run(path, arguments) }
        if arguments.has("join") { return try await FleetBench.join(arguments) }
        if arguments.has("fleet") { return try await FleetBench.coordinate(arguments) }
        for name in ["workers", "join-timeout"] where arguments.has(name) {
            throw UsageError("--\(name) requires --fleet")
        }
        if arguments.has("unpaced") { throw UsageError("--unpaced requires --har") }
        for name in ["base", "var"] where arguments.has(name) { throw UsageError("--\(name) requires --plan") }
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
            // If it fails, the own measurement is still reported.
            do {
                report.comparison = try await rival.perform(plan)
                return (report, nil)
            } catch {
                return (report, error)
            }
        }
        var (report, rivalFault) = outcome
        plan.verdict.judge(&report)
        // The own server always sends the same response.
        let mustBeRight = server != nil || plan.bodies != .likeFirst
        let ruling = BenchRuling(report, plan.verdict, mustBeRight: mustBeRight, wasInterrupted: wasInterrupted)
        let code = plan.output.write(report, ruling)
        if let rivalFault { throw rivalFault }
        return code
    }
}

/// The options of a load, from the command line.
struct BenchPlan: Sendable {
    /// When the next request is sent.
    enum Model: Sendable, Equatable {
        /// A fixed number of senders. Each sends its next request after its last response, so slow responses lower the
        /// rate.
        case closed(concurrency: Int)
        /// A fixed number of requests per second, regardless of responses.
        case open(rate: Double)
    }

    var order: BenchOrder
    var model: Model
    var requests: Int?
    var duration: Duration?
    var warmUp: Duration
    var connections: Int
    /// Whether the command line has `--connections`.
    let namesConnections: Bool
    var loops: Int
    /// The part of the load that this process carries.
    var share = FleetShare.whole
    var bodies: BodyCheck.Rule
    var output: BenchOutput
    var verdict: BenchVerdict
    /// The requests of a recording; `nil` if one request is repeated.
    var archive: ArchiveLoad?

    init(_ arguments: ParsedArguments) throws {
        requests = try arguments.integer("requests", in: 1...1_000_000_000)
        duration = try arguments.seconds("duration")
        if requests != nil && duration != nil { throw UsageError("-n and -z cannot be combined") }
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
            throw UsageError("--http-cache and -r cannot be combined: responses from the cache are not sent")
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

    /// The senders of the closed model; 0 for the open one.
    var concurrency: Int {
        if case .closed(let concurrency) = model { concurrency } else { 0 }
    }

    /// The model in words, for headings.
    var title: String {
        // HTTP/2 counts streams; each loop opens at most a hundred per host.
        let streams = order.configuration.http2 == .never ? Int.max : Self.mostStreams * loops
        let most = min(connections, streams)
        let part = share.count > 1 ? ", part \(share.index + 1) of \(share.count)" : ""
        if archive?.isPaced == true { return "open, each at its time in the file" + part }
        guard case .closed(let concurrency) = model, most < concurrency else { return model.title + part }
        return model.title + part + ", at most \(grouped(UInt64(most))) of them in progress"
    }

    private static let mostStreams = 100
    private static let mostConnections = 10_000
    /// Descriptors kept for files, event loops and everything else.
    private static let spareDescriptors = 100

    /// For the closed model one for each sender, within the limits of the system. For the open model enough that no
    /// request waits for one: the load would measure its own limit.
    static func usualConnections(_ model: Model, descriptors: Int = descriptorLimit) -> Int {
        switch model {
        case .closed(let concurrency):
            max(1, min(concurrency, mostConnections, descriptors - spareDescriptors))
        case .open: 1000
        }
    }

    /// The number of connections for a plan: one for each request that its senders can have in flight, unless the
    /// command line has `--connections`.
    func connections(of root: PlanNode) -> Int {
        if namesConnections { return connections }
        let (atOnce, isTooMany) = concurrency.multipliedReportingOverflow(by: root.width)
        return Self.usualConnections(.closed(concurrency: isTooMany ? .max : atOnce))
    }

    private static func model(_ arguments: ParsedArguments) throws(UsageError) -> Model {
        let concurrency = try arguments.integer("concurrency", in: 1...1_000_000)
        guard let text = arguments.last("rate") else { return .closed(concurrency: concurrency ?? 64) }
        if concurrency != nil { throw UsageError("-c and -r cannot be combined") }
        guard let rate = Double(text), 0.000_01...10_000_000 ~= rate else {
            throw UsageError("--rate must be requests per second, from 0.00001 to 10000000, not '\(text)'")
        }
        return .open(rate: rate)
    }
}

extension BenchPlan.Model {
    /// A description for people.
    var title: String {
        switch self {
        case .closed(let concurrency): "closed, \(grouped(UInt64(concurrency))) at once"
        case .open(let rate): "open, \(rate == rate.rounded() ? String(Int(rate)) : String(rate)) per second"
        }
    }
}

/// The number of descriptors that this process may have after the load has raised its limit.
private var descriptorLimit: Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
    return Int(clamping: limit.rlim_max)
}
