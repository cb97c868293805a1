internal import Dispatch
internal import Ferry
internal import FerryMeasurement
internal import FerrySynchronization
internal import FoundationEssentials

/// The result of one exchange.
struct FetchReport: Sendable {
    let response: Response?
    private(set) var verdict: FetchVerdict
    private let url: String
    private let attempts: Int
    /// `nil` if it was refused before it started.
    private let metrics: RequestMetrics?

    var fault: FetchVerdict.Fault? { verdict.fault }
    var exitCode: ExitCode { verdict.exitCode }

    /// Sends the request and judges the response.
    init(of plan: FetchPlan, by agent: NetworkAgent) async {
        var request = plan.request
        let meter = FetchMeter()
        request.observers.append(meter)
        do throws(RequestError) {
            let response = try await agent.send(request).response
            self.response = response
            verdict = FetchVerdict(response, by: plan)
            url = response.url
            attempts = response.attempts
        } catch {
            response = nil
            verdict = FetchVerdict(error, of: plan.request)
            url = error.url
            attempts = error.attempts
        }
        metrics = meter.metrics
    }

    /// The body could not be written to a file. An earlier failure counts.
    mutating func failToWrite(_ reason: String) {
        if exitCode == .success { verdict = FetchVerdict(unwritten: reason) }
    }

    /// One line, with fields in alphabetical order.
    var json: String { jsonLine(self) }
}

extension FetchReport: Encodable {
    private enum Key: String, CodingKey {
        case ok, status, url, fromCache, bytes, sha256, headers, redirects, attempts, reusedConnection, engine, metrics
        case error, cacheStatus, trailers, informational
    }

    /// Every field is always present; a missing value is `null`.
    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(exitCode == .success, forKey: .ok)
        try object.encode(response?.status, forKey: .status)
        try object.encode(url, forKey: .url)
        try object.encode(response?.isFromCache ?? false, forKey: .fromCache)
        try object.encode(response?.cacheStatus?.description, forKey: .cacheStatus)
        try object.encode(response?.bodyLength ?? 0, forKey: .bytes)
        try object.encode(response.map { $0.withBytes { SHA256.hexadecimal(of: $0) } }, forKey: .sha256)
        try object.encode(Self.joined(response?.headers), forKey: .headers)
        try object.encode(Self.joined(response?.trailers), forKey: .trailers)
        let asides = response?.informational ?? []
        try object.encode(
            asides.map { FetchAside(status: $0.status, headers: Self.joined($0.headers)) }, forKey: .informational)
        try object.encode(response?.redirects.map(\.target) ?? [], forKey: .redirects)
        try object.encode(attempts, forKey: .attempts)
        try object.encode(response?.isReusedConnection ?? false, forKey: .reusedConnection)
        try object.encode(metrics?.engine?.word, forKey: .engine)
        try object.encode(metrics.map(FetchTimes.init), forKey: .metrics)
        try object.encode(fault, forKey: .error)
    }

    /// By lower-case name. Fields with the same name are joined as in RFC 9110, 5.2, except `set-cookie`, whose values
    /// are joined by line breaks.
    private static func joined(_ headers: Headers?) -> [String: String] {
        var joined: [String: String] = [:]
        for field in headers?.fields ?? [] {
            let name = field.name.lowercased()
            let separator = name == "set-cookie" ? "\n" : ", "
            joined[name] = joined[name].map { $0 + separator + field.value } ?? field.value
        }
        return joined
    }
}

/// An informational response.
private struct FetchAside: Encodable {
    let status: Int
    let headers: [String: String]
}

/// Stores the metrics of one run.
private final class FetchMeter: RequestObserver {
    private let measured = Mutex<RequestMetrics?>(nil)

    var metrics: RequestMetrics? { measured.withLock { $0 } }

    func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        // A run that was refused has only zeros.
        if metrics.total > .zero { measured.withLock { $0 = metrics } }
    }
}

/// Microseconds; `null` for what did not happen.
struct FetchTimes: Encodable {
    private let metrics: RequestMetrics

    init(_ metrics: RequestMetrics) {
        self.metrics = metrics
    }

    private enum Key: String, CodingKey {
        case queue, nameLookup, connect, tls, firstByte, total
    }

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(metrics.queue.microseconds, forKey: .queue)
        try object.encode(metrics.nameLookup.map(\.microseconds), forKey: .nameLookup)
        try object.encode(metrics.connect.map(\.microseconds), forKey: .connect)
        try object.encode(metrics.tls.map(\.microseconds), forKey: .tls)
        try object.encode(metrics.firstByte.map(\.microseconds), forKey: .firstByte)
        try object.encode(metrics.total.microseconds, forKey: .total)
    }
}

/// Whether an exchange succeeded.
struct FetchVerdict: Sendable {
    /// Why it did not.
    struct Fault: Sendable, Encodable {
        var code: String
        var phase: String
        var message: String
        var mayHaveBeenProcessed: Bool

        /// The message for stderr.
        var line: String

        private enum CodingKeys: CodingKey { case code, phase, message, mayHaveBeenProcessed }
    }

    let fault: Fault?
    let exitCode: ExitCode

    /// A response arrived with this status.
    init(status: Int, accepting ranges: [ClosedRange<Int>]) {
        let isAccepted = ranges.contains { $0.contains(status) }
        fault = isAccepted ? nil : Fault(status: status, expected: ranges)
        exitCode = isAccepted ? .success : .statusNotAccepted
    }

    /// A response arrived, but its body could not be written.
    init(unwritten reason: String) {
        fault = Fault(
            code: RequestError.Code.fileIO.name, phase: RequestPhase.processing.rawValue, message: reason,
            mayHaveBeenProcessed: true, line: reason)
        exitCode = .transferFailed
    }

    /// A complete response arrived. If its status is not accepted, its body is not checked.
    init(_ response: Response, by plan: FetchPlan) {
        self.init(status: response.status, accepting: plan.statusRanges)
        guard exitCode == .success, let schema = plan.schema else { return }
        do throws(RequestError) {
            try response.check(by: schema)
        } catch {
            self.init(error, of: plan.request)
        }
    }

    init(_ error: RequestError, of request: FetchRequest) {
        fault = Fault(error, of: request)
        exitCode =
            switch error.code {
            case .cancelled: .interrupted
            case _ where error.isWrongUsage: .usage
            case .invalidJSON, .schemaMismatch, .invalidContentType: .validationFailed
            default: .transferFailed
            }
    }
}

extension FetchVerdict {
    /// Sends the request and prints the body as it arrives, whatever its status, as long as somebody reads it.
    init(streaming plan: FetchPlan, by agent: NetworkAgent, to writer: FetchWriter) async {
        let end = InterruptionFlag()
        if let deadline = plan.request.deadline { Self.endIfStuck(after: deadline, unless: end) }
        defer {
            writer.end()
            _ = end.raise()
        }
        do throws(RequestError) {
            let answer = try await agent.stream(plan.request)
            writer.head(answer.head)
            for try await piece in answer.body {
                piece.withUnsafeBytes(writer.body)
                if writer.hasEnded { break }
            }
            self.init(status: answer.status, accepting: plan.statusRanges)
        } catch {
            self.init(error, of: plan.request)
        }
    }

    /// Ends the process soon after the deadline if the response is then waiting for standard output.
    private static func endIfStuck(after deadline: Duration, unless end: InterruptionFlag) {
        DispatchQueue.global().asyncAfter(deadline: .now() + deadline / .seconds(1)) {
            let limit = FailureText.text(deadline)
            let message = "ferry fetch: no end within \(limit) (deadline): the output is blocked\n"
            Console.endsIfStuck(.transferFailed, saying: message, unless: end)
        }
    }
}

extension FetchVerdict.Fault {
    init(_ error: RequestError, of request: any Request) {
        var words = [error.code.detail ?? "", error.message].filter { !$0.isEmpty }
        // The typed URL begins differently, usually with the host.
        if case .unsupportedScheme = error.code { words.append("a URL begins with http:// or https://") }
        self.init(
            code: error.code.name, phase: error.phase.rawValue, message: words.joined(separator: ": "),
            mayHaveBeenProcessed: error.mayHaveBeenProcessed, line: FailureText.of(error, request))
    }

    init(status: Int, expected: [ClosedRange<Int>]) {
        let text = "status \(status) is not accepted (expected \(FailureText.text(expected)))"
        self.init(
            code: RequestError.Code.invalidStatusCode.name, phase: RequestPhase.processing.rawValue,
            message: text, mayHaveBeenProcessed: true, line: text)
    }
}
