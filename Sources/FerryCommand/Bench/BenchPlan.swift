internal import Ferry
internal import FerryMeasurement
internal import Glibc

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
        connections = try arguments.integer("connections", in: 1...100_000) ?? Self.usualConnections(model)
        loops = try arguments.integer("loops", in: 1...256) ?? 1
        bodies = try BodyCheck.Rule(arguments)
        output = try BenchOutput(arguments)
        verdict = try BenchVerdict(arguments)
        order = try BenchOrder(arguments)
        if order.configuration.cache != nil, case .open = model {
            throw UsageError("--http-cache and -r exclude each other: what the cache answers is not sent")
        }
        order.configuration.eventLoopCount = loops
        order.configuration.limits.transfersPerHost = connections
        order.configuration.limits.maxConcurrentTransfers = max(
            connections, order.configuration.limits.maxConcurrentTransfers)
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
        guard case .closed(let concurrency) = model, most < concurrency else { return model.title }
        return model.title + ", at most \(grouped(UInt64(most))) of them on their way"
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
