internal import Ferry

/// Failures by the code of the error with its finer cause, like `tls(untrusted)`, and what the first of each said.
struct BenchErrors: Sendable {
    private var counts: [RequestError.Code: UInt64] = [:]
    private var messages: [RequestError.Code: String] = [:]
    /// Of these, statuses that are not accepted.
    private(set) var byStatus: UInt64 = 0
    /// Of these, whole answers whose body is not as it must be.
    private(set) var byBody: UInt64 = 0

    /// By the code in words.
    var named: [String: UInt64] { Dictionary(uniqueKeysWithValues: counts.map { ($0.key.description, $0.value) }) }
    /// Likewise; none where an error had nothing to add.
    var samples: [String: String] { Dictionary(uniqueKeysWithValues: messages.map { ($0.key.description, $0.value) }) }

    mutating func record(_ code: RequestError.Code, _ message: String) {
        let code = Self.bounded(code)
        counts[code, default: 0] += 1
        if messages[code] == nil, !message.isEmpty { messages[code] = message }
        switch code {
        case .invalidStatusCode: byStatus += 1
        case .invalidJSON, .schemaMismatch: byBody += 1
        default: break
        }
    }

    mutating func add(_ other: BenchErrors) {
        counts.merge(other.counts, uniquingKeysWith: +)
        messages.merge(other.messages) { own, _ in own }
        byStatus += other.byStatus
        byBody += other.byBody
    }

    /// Bodies may break off anywhere, which would make a line of each.
    private static func bounded(_ code: RequestError.Code) -> RequestError.Code {
        if case .incompleteBody = code { .incompleteBody } else { code }
    }
}
