internal import Ferry

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
    var loops: Int
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
        connections = try arguments.integer("connections", in: 1...100_000) ?? model.usualConnections
        loops = try arguments.integer("loops", in: 1...256) ?? 1
        bodies = try BodyCheck.Rule(arguments)
        output = try BenchOutput(arguments)
        verdict = try BenchVerdict(arguments)
        order = try BenchOrder(arguments)
        order.configuration.loops = loops
        order.configuration.limits.transfersPerHost = connections
        order.configuration.limits.concurrentTransfers = max(
            connections, order.configuration.limits.concurrentTransfers)
    }

    /// Senders of the closed model; of the open one there are none.
    var concurrency: Int {
        if case .closed(let concurrency) = model { concurrency } else { 0 }
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
    /// An open model that waits for connections measures its own bound.
    fileprivate var usualConnections: Int {
        switch self {
        case .closed: 64
        case .open: 1000
        }
    }

    /// For the head of what is shown.
    var title: String {
        switch self {
        case .closed(let concurrency): "closed, \(concurrency) at once"
        case .open(let rate): "open, \(rate == rate.rounded() ? String(Int(rate)) : String(rate)) a second"
        }
    }
}
