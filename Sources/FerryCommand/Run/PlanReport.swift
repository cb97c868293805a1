internal import Ferry
internal import FerryMeasurement

/// How a plan went.
struct PlanReport: Sendable {
    let name: String
    let rows: [PlanRow]
    let nanoseconds: UInt64
    /// What ended it; of what is not one request's fault, like the deadline of a batch, no row says it.
    var fault: RequestError?

    var finished: Int { rows.count { $0.state == .finished } }
    var isOK: Bool { finished == rows.count }

    /// By what failed first.
    var exitCode: ExitCode {
        let failures = rows.filter { $0.state == .failed }.sorted { $0.end < $1.end }
        guard let first = failures.first, let code = first.code else { return isOK ? .success : .transferFailed }
        switch code {
        case .invalidStatusCode: return .statusNotAccepted
        case .applicationError, .invalidJSON, .schemaMismatch, .decoding, .invalidContentType: return .validationFailed
        default: return .transferFailed
        }
    }

    /// For people, on a terminal of the usual width.
    var table: String { table(columns: Console.usualColumns) }

    /// For people, in lines of at most `columns`.
    func table(columns: Int) -> String { PlanTable(self, columns: columns).text }

    /// One line, fields in alphabetical order.
    var json: String { jsonLine(self) }
}

/// The parts of a run, as far as they are measured.
enum PlanPhase: String, CaseIterable, Sendable {
    case queue, connect, wait, body

    /// Nanoseconds of each; what did not happen is left out.
    static func times(of row: PlanRow) -> [PlanPhase: UInt64] {
        guard let metrics = row.metrics, metrics.attempts > 0 else { return [:] }
        func nanoseconds(_ duration: Duration?) -> UInt64 {
            duration.map { UInt64(max(0, $0.microseconds)) * 1000 } ?? 0
        }
        var times: [PlanPhase: UInt64] = [.queue: nanoseconds(metrics.queue)]
        let connect = [metrics.nameLookup, metrics.connect, metrics.tls].reduce(0) { $0 + nanoseconds($1) }
        if connect > 0 { times[.connect] = connect }
        if metrics.firstByte != nil { times[.wait] = nanoseconds(metrics.firstByte) }
        let known = times.values.reduce(0, +)
        let total = nanoseconds(metrics.total)
        if metrics.firstByte != nil, total > known { times[.body] = total - known }
        return times
    }
}

extension PlanReport: Encodable {
    private enum Key: String, CodingKey { case ok, plan, seconds, steps }

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(isOK, forKey: .ok)
        try object.encode(name, forKey: .plan)
        try object.encode(Double(nanoseconds / 1000) / 1e6, forKey: .seconds)
        try object.encode(rows, forKey: .steps)
    }
}

extension PlanRow: Encodable {
    private enum Key: String, CodingKey {
        case name, state, reason, status, startUs, endUs, fromCache, cache, attempts, metrics, error
    }

    private struct Fault: Encodable {
        let code: String
        let message: String
    }

    /// Every field is always there; what there is nothing to say of is `null`.
    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(name, forKey: .name)
        try object.encode(state, forKey: .state)
        try object.encode(reason, forKey: .reason)
        try object.encode(status, forKey: .status)
        try object.encode(start / 1000, forKey: .startUs)
        try object.encode(end / 1000, forKey: .endUs)
        try object.encode(isFromCache, forKey: .fromCache)
        try object.encode(metrics?.cache?.rawValue, forKey: .cache)
        try object.encode(attempts, forKey: .attempts)
        try object.encode(metrics.map(FetchTimes.init), forKey: .metrics)
        try object.encode(code.map { Fault(code: $0.name, message: message ?? "") }, forKey: .error)
    }
}
