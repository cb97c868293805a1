internal import Ferry
internal import FerryMeasurement
internal import FerrySynchronization

/// Counts all results, in one stripe per event loop. Only that loop's thread writes to its stripe, so the lock is
/// contended only while the totals are read.
final class BenchRecorder: Sendable {
    private final class Stripe: Sendable {
        let totals = Mutex(BenchTotals())
    }

    private let stripes: [Stripe]
    private let bodies: BodyCheck
    /// Has the limits that error messages name; `nil` if there are several requests.
    private let request: HTTPRequest<Response>?

    init(_ bodies: BodyCheck, loops: Int = 1, of request: HTTPRequest<Response>? = nil) {
        self.bodies = bodies
        self.request = request
        stripes = (0..<max(1, loops)).map { _ in Stripe() }
    }

    /// The sum of all stripes.
    var total: BenchTotals {
        var sum = BenchTotals()
        // Under the lock the value is only retained; the loop copies it with its next change.
        for stripe in stripes { sum.add(stripe.totals.withLock { $0 }) }
        return sum
    }

    func record(_ response: Response, nanoseconds: UInt64, stripe: Int) {
        let isRight = bodies.isRight(response)
        let metrics = response.metrics
        change(stripe) { totals in
            totals.latencies.record(nanoseconds)
            totals.bytes += UInt64(response.bodyLength)
            totals.statuses[response.status, default: 0] += 1
            if !isRight { totals.wrongBodies += 1 }
            totals.engines.record(metrics.engine)
            totals.phases.add(metrics)
        }
    }

    func record(_ error: RequestError, stripe: Int) {
        change(stripe) { totals in
            totals.failed += 1
            totals.errors.record(error.code, message(of: error))
            if let status = error.response?.status { totals.statuses[status, default: 0] += 1 }
        }
    }

    private func message(of error: RequestError) -> String {
        request.flatMap { FailureText.explanation(of: error, $0) } ?? error.message
    }

    func recordUnanswered(_ nanoseconds: UInt64, stripe: Int) {
        change(stripe) { $0.unanswered.record(nanoseconds) }
    }

    func recordLateness(_ nanoseconds: UInt64, stripe: Int) {
        change(stripe) { $0.lateness.record(nanoseconds) }
    }

    func recordLag(_ nanoseconds: UInt64, stripe: Int) {
        change(stripe) { $0.lag.record(nanoseconds) }
    }

    func recordDecoding(_ time: Duration) {
        change(0) { $0.phases.record(.decode, time) }
    }

    func recordUnsent(stripe: Int) {
        change(stripe) { totals in
            totals.failed += 1
            totals.unsent += 1
        }
    }

    private func change(_ stripe: Int, _ change: (inout BenchTotals) -> Void) {
        stripes[stripe % stripes.count].totals.withLock { change(&$0) }
    }
}

/// Records how long checking the bodies takes, which only an observer learns.
struct DecodingObserver: RequestObserver {
    let recorder: BenchRecorder

    func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        if let time = metrics.processing { recorder.recordDecoding(time) }
    }
}

/// The results so far.
struct BenchTotals: Sendable, Codable {
    /// Latencies of accepted responses; in the open model from when the request was due.
    var latencies = Histogram()
    /// How late requests of the open model were sent.
    var lateness = Histogram()
    /// How late a loop's clock fired; a response also waits for this time before it is seen.
    var lag = Histogram()
    var phases = BenchPhases()
    /// The number of responses by status, accepted or not.
    var statuses: [Int: UInt64] = [:]
    /// The engines that carried the accepted responses.
    var engines = Engines()
    var errors = BenchErrors()
    var failed: UInt64 = 0
    /// Requests of the open model that were not sent because too many were in flight; they count as failed.
    var unsent: UInt64 = 0
    /// How long interrupted requests had waited, counted like latencies; they are neither ok nor failed.
    var unanswered = Histogram()
    var bytes: UInt64 = 0
    var wrongBodies: UInt64 = 0

    var ok: UInt64 { latencies.count }

    /// The latencies of the open model, with the interrupted requests, which waited at least that long. Without them
    /// the slowest would be missing, above all if somebody ends the load because no more responses arrive.
    func latencies(of model: BenchPlan.Model) -> Histogram {
        guard case .open = model else { return latencies }
        var all = latencies
        all.add(unanswered)
        return all
    }

    mutating func add(_ other: BenchTotals) {
        latencies.add(other.latencies)
        lateness.add(other.lateness)
        lag.add(other.lag)
        phases.add(other.phases)
        statuses.merge(other.statuses, uniquingKeysWith: +)
        engines.add(other.engines)
        errors.add(other.errors)
        failed += other.failed
        unsent += other.unsent
        unanswered.add(other.unanswered)
        bytes += other.bytes
        wrongBodies += other.wrongBodies
    }

    /// Responses by the engine that carried them.
    struct Engines: Sendable, Equatable, Codable {
        var http1: UInt64 = 0
        var libcurl: UInt64 = 0

        mutating func record(_ engine: RequestMetrics.Engine?) {
            switch engine {
            case .http1: http1 += 1
            case .libcurl: libcurl += 1
            case nil: break
            }
        }

        mutating func add(_ other: Engines) {
            http1 += other.http1
            libcurl += other.libcurl
        }

        /// The counts by their names in the JSON report; engines without a response are left out.
        var named: [String: UInt64] {
            ["http1": http1, "libcurl": libcurl].filter { $0.value > 0 }
        }
    }
}

/// Failures by error code with details, like `tls(untrusted)`, and the message of the first of each.
struct BenchErrors: Sendable {
    private var counts: [RequestError.Code: UInt64] = [:]
    private var messages: [RequestError.Code: String] = [:]
    /// The counts of other processes, by the text of the code.
    private var others: [String: UInt64] = [:]
    private var otherMessages: [String: String] = [:]
    /// The failures because of a status that was not accepted.
    private(set) var byStatus: UInt64 = 0
    /// The failures because of an invalid body in a complete response.
    private(set) var byBody: UInt64 = 0

    /// The number of failures by code.
    var named: [String: UInt64] {
        others.merging(counts.map { ($0.key.description, $0.value) }, uniquingKeysWith: +)
    }
    /// The first message by code; none if the error had no message.
    var samples: [String: String] {
        otherMessages.merging(messages.map { ($0.key.description, $0.value) }) { other, _ in other }
    }

    mutating func record(_ code: RequestError.Code, _ message: @autoclosure () -> String) {
        let code = Self.bounded(code)
        counts[code, default: 0] += 1
        if messages[code] == nil {
            let message = message()
            if !message.isEmpty { messages[code] = message }
        }
        switch code {
        case .invalidStatusCode: byStatus += 1
        case .invalidJSON, .schemaMismatch: byBody += 1
        default: break
        }
    }

    mutating func add(_ other: BenchErrors) {
        counts.merge(other.counts, uniquingKeysWith: +)
        messages.merge(other.messages) { own, _ in own }
        others.merge(other.others, uniquingKeysWith: +)
        otherMessages.merge(other.otherMessages) { own, _ in own }
        byStatus += other.byStatus
        byBody += other.byBody
    }

    /// The code, without the lengths of an incomplete body: they differ, and each would get its own line.
    private static func bounded(_ code: RequestError.Code) -> RequestError.Code {
        if case .incompleteBody = code { .incompleteBody } else { code }
    }
}

extension BenchErrors: Codable {
    private enum CodingKeys: String, CodingKey { case counts, messages, byStatus, byBody }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        others = try container.decode([String: UInt64].self, forKey: .counts)
        otherMessages = try container.decode([String: String].self, forKey: .messages)
        byStatus = try container.decode(UInt64.self, forKey: .byStatus)
        byBody = try container.decode(UInt64.self, forKey: .byBody)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(named, forKey: .counts)
        try container.encode(samples, forKey: .messages)
        try container.encode(byStatus, forKey: .byStatus)
        try container.encode(byBody, forKey: .byBody)
    }
}

/// How long each phase of the exchanges took; a phase counts only where it happened.
struct BenchPhases: Sendable, Codable {
    enum Phase: String, CaseIterable, Sendable {
        /// From the start until the request left Ferry's queue.
        case queue
        /// Resolving the host name.
        case name
        case connect
        case tls
        /// From sending the request to the first byte of the response.
        case firstByte = "first_byte"
        /// From the first byte to the last, including decompression.
        case body
        /// Checking the body against the schema.
        case decode
    }

    private(set) var times = [Histogram](repeating: Histogram(), count: Phase.allCases.count)

    subscript(phase: Phase) -> Histogram { times[Self.place(phase)] }

    mutating func record(_ phase: Phase, _ time: Duration) {
        times[Self.place(phase)].record(UInt64(max(0, time.microseconds)) * 1000)
    }

    private mutating func record(_ phase: Phase, _ time: Duration?, in sum: inout Duration) {
        guard let time else { return }
        record(phase, time)
        sum += time
    }

    /// All phases except decoding, which is not part of the exchange. After a retry or a redirect the metrics are those
    /// of the last exchange, and the rest of the run is not the time of its body.
    mutating func add(_ metrics: RequestMetrics) {
        // Without an array of them, which would cost as much as recording.
        var known = Duration.zero
        record(.queue, metrics.queue, in: &known)
        record(.name, metrics.nameLookup, in: &known)
        record(.connect, metrics.connect, in: &known)
        record(.tls, metrics.tls, in: &known)
        record(.firstByte, metrics.firstByte, in: &known)
        let isOnly = metrics.attempts == 1 && metrics.redirects == 0
        if isOnly && metrics.firstByte != nil { record(.body, metrics.total - known) }
    }

    mutating func add(_ other: BenchPhases) {
        for place in times.indices { times[place].add(other.times[place]) }
    }

    private static func place(_ phase: Phase) -> Int {
        switch phase {
        case .queue: 0
        case .name: 1
        case .connect: 2
        case .tls: 3
        case .firstByte: 4
        case .body: 5
        case .decode: 6
        }
    }
}

/// A window of the measured time, with the results in it.
struct BenchWindow: Sendable, Equatable, Codable {
    /// The start and the end of the window, in seconds since the measurement began.
    var start: Double
    var end: Double
    var latencies: Histogram
    var failed: UInt64

    /// Accepted responses per second.
    var rate: Double { end > start ? Double(latencies.count) / (end - start) : 0 }

    mutating func join(_ next: BenchWindow) {
        end = next.end
        latencies.add(next.latencies)
        failed += next.failed
    }
}

/// The course of the load, in at most ``mostWindows`` windows. When there are more, neighbours are merged without loss,
/// and the next windows are twice as long.
struct BenchTimeline: Sendable {
    static let mostWindows = 120
    private static let shortest = 0.1

    private(set) var windows: [BenchWindow] = []
    private var length: Double
    private var seen = Histogram()
    private var failed: UInt64 = 0
    private var end = 0.0

    /// Creates a timeline for a load that takes about `seconds`, if that is known.
    init(seconds: Double? = nil) {
        length = max(Self.shortest, (seconds ?? 0) / Double(Self.mostWindows - 20))
    }

    /// Observes the totals at a time; does nothing unless a window is over.
    mutating func observe(_ latencies: Histogram, failed: UInt64, at seconds: Double) {
        // Looks come a little earlier or later.
        if seconds - end < length * 0.9 { return }
        append(latencies, failed, seconds)
        if windows.count <= Self.mostWindows { return }
        for index in stride(from: 0, to: windows.count - 1, by: 2) { windows[index].join(windows[index + 1]) }
        windows = stride(from: 0, to: windows.count, by: 2).map { windows[$0] }
        length *= 2
    }

    /// Adds the rest; less than half a window is added to the last one.
    mutating func finish(_ latencies: Histogram, failed: UInt64, at seconds: Double) {
        if seconds <= end { return }
        let isShort = seconds - end < length / 2
        append(latencies, failed, seconds)
        if isShort, windows.count > 1 {
            let rest = windows.removeLast()
            windows[windows.count - 1].join(rest)
        }
    }

    private mutating func append(_ latencies: Histogram, _ failed: UInt64, _ seconds: Double) {
        windows.append(
            BenchWindow(
                start: end, end: seconds, latencies: latencies.since(seen), failed: failed - self.failed))
        (seen, self.failed, end) = (latencies, failed, seconds)
    }
}
