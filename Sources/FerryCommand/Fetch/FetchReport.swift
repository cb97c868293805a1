internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials

/// What became of one exchange.
struct FetchReport: Sendable {
    let response: Response?
    let fault: Fault?
    let exitCode: ExitCode

    /// Why it is not accepted.
    struct Fault: Sendable, Encodable {
        var code: String
        var phase: String
        var message: String
        var mayHaveBeenProcessed: Bool

        /// For stderr.
        var line: String { message.isEmpty ? code : "\(code): \(message)" }
    }

    /// Sends the request and judges the answer.
    init(of request: FetchRequest, by agent: NetworkAgent, accepting accepts: (Int) -> Bool) async {
        do throws(RequestError) {
            let response = try await agent.send(request).response
            self.response = response
            let isAccepted = accepts(response.status)
            fault = isAccepted ? nil : Fault(status: response.status)
            exitCode = isAccepted ? .success : .statusNotAccepted
            url = response.url
        } catch {
            response = nil
            fault = Fault(error)
            exitCode = error.code == .cancelled ? .interrupted : .transferFailed
            url = error.url
            attempts = error.attempts
        }
    }

    private let url: String
    private var attempts = 0

    /// One line, fields in alphabetical order.
    var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else { preconditionFailure("a report is always JSON") }
        return String(decoding: data, as: UTF8.self)
    }
}

extension FetchReport.Fault {
    init(_ error: RequestError) {
        let words = [error.code.detail ?? "", error.message].filter { !$0.isEmpty }
        self.init(
            code: error.code.name, phase: error.phase.rawValue, message: words.joined(separator: ": "),
            mayHaveBeenProcessed: error.mayHaveBeenProcessed)
    }

    init(status: Int) {
        self.init(
            code: "invalidStatusCode", phase: RequestPhase.processing.rawValue,
            message: "status \(status) is not accepted", mayHaveBeenProcessed: true)
    }
}

extension FetchReport: Encodable {
    private enum Key: String, CodingKey {
        case ok, status, url, fromCache, bytes, sha256, headers, redirects, attempts, reusedConnection, metrics, error
    }

    /// Every field is always there; what there is nothing to say of is `null`.
    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(exitCode == .success, forKey: .ok)
        try object.encode(response?.status, forKey: .status)
        try object.encode(url, forKey: .url)
        try object.encode(response?.isFromCache ?? false, forKey: .fromCache)
        try object.encode(response?.bodyLength ?? 0, forKey: .bytes)
        try object.encode(response.flatMap { $0.withBytes(Digest.sha256) }, forKey: .sha256)
        try object.encode(joinedHeaders, forKey: .headers)
        try object.encode([String](), forKey: .redirects)
        try object.encode(response?.attempts ?? attempts, forKey: .attempts)
        try object.encode(response?.isReusedConnection ?? false, forKey: .reusedConnection)
        try object.encode(response.map { FetchTimes($0.metrics) }, forKey: .metrics)
        try object.encode(fault, forKey: .error)
    }

    /// By lower-case name. Fields of one name are joined as RFC 9110, 5.2 says, `set-cookie`, which must not be, by line
    /// breaks.
    private var joinedHeaders: [String: String] {
        var joined: [String: String] = [:]
        for field in response?.headers.fields ?? [] {
            let name = field.name.lowercased()
            let separator = name == "set-cookie" ? "\n" : ", "
            joined[name] = joined[name].map { $0 + separator + field.value } ?? field.value
        }
        return joined
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
        try object.encode(microseconds(metrics.queue), forKey: .queue)
        try object.encode(metrics.nameLookup.map(microseconds), forKey: .nameLookup)
        try object.encode(metrics.connect.map(microseconds), forKey: .connect)
        try object.encode(metrics.tls.map(microseconds), forKey: .tls)
        try object.encode(metrics.firstByte.map(microseconds), forKey: .firstByte)
        try object.encode(microseconds(metrics.total), forKey: .total)
    }
}

/// Whole microseconds.
func microseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
}
