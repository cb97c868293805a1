/// The one error of Ferry: a code to match, the phase it happened in, and the truth underneath.
///
///     do throws(RequestError) {
///         try await agent.send(UserInfo(id: 7))
///     } catch {
///         switch error.code {
///         case .timeout(.connect): break  // no connection in time
///         case .timeout: break  // any other timeout
///         case .invalidStatusCode(500...599): break  // the server is in trouble
///         default: throw error
///         }
///     }
///
/// ``is(_:)`` asks for one code. A code is matched, not taken apart: no `let` can stand in these patterns. What it
/// carries is a member of the error, as ``status`` is.
///
/// Nothing in it is secret: the URL has neither user, password nor the values of its query, and no header value and no
/// body stands in its text. ``response`` alone carries what the server sent.
public struct RequestError: Error, Sendable {
    /// What happened, with its finer cause.
    public var code: Code { storage.facts.code }

    /// How far the run had come.
    public var phase: RequestPhase { storage.facts.phase }

    /// The URL, redacted; of a URL that is none the text that failed.
    public var url: String { storage.facts.url }

    /// A sentence of what happened.
    public var message: String { storage.facts.message }

    /// libcurl's `CURLcode`; 0 when libcurl had no part in it.
    public var curlCode: Int { Int(storage.facts.curlCode) }

    /// The system's error number; 0 when there was none.
    public var errno: Int { Int(storage.facts.errno) }

    /// What lies beneath: a `JSONSyntaxError` with its offset (`invalidJSON`), a `JSONMismatch` (`schemaMismatch`,
    /// `decoding`), a `DecodingError` (`decoding`), what the application's own code threw (`applicationError`), the
    /// `RequestError` of a refresh that brought no token.
    public var cause: (any Error)? { storage.facts.cause }

    /// Bytes of the request that were sent, head and body, in all attempts.
    public var bytesSent: UInt64 { storage.facts.bytesSent }

    /// Bytes that were received, head and body, before decoding: of the answer, and of those before it that were not
    /// the last.
    public var bytesReceived: UInt64 { storage.facts.bytesReceived }

    /// How often the request was tried: sent, or begun to be sent, or an attempt that failed before a connection stood.
    /// One that was cancelled, or forbidden by the ``AddressPolicy``, before that does not count.
    public var attempts: Int { storage.facts.attempts }

    /// Whether a server may have acted on the request, in this attempt or in one before it.
    public var mayHaveBeenProcessed: Bool { storage.facts.mayHaveBeenProcessed }

    /// The redirects that were followed before it failed, in their order.
    public var redirects: [Redirect] { storage.facts.redirects }

    /// What the server answered, where a whole answer came: `invalidStatusCode`, and faults of processing.
    public var response: RejectedResponse? { storage.facts.response }

    /// The status of the answer, where a whole one came.
    public var status: Int? { response?.status }

    /// Status, headers and the first bytes of an answer that was not accepted.
    public struct RejectedResponse: Sendable {
        /// The status code.
        public let status: Int
        /// The header fields.
        public let headers: Headers
        /// The first 4,096 bytes of the body at most.
        public let body: [UInt8]

        static let most = 4096
    }

    struct Facts: Sendable {
        var code: Code
        var phase: RequestPhase
        var url = ""
        var message = ""
        var curlCode: Int32 = 0
        var errno: Int32 = 0
        var cause: (any Error)?
        var bytesSent: UInt64 = 0
        var bytesReceived: UInt64 = 0
        var attempts = 0
        var mayHaveBeenProcessed = false
        var redirects: [Redirect] = []
        var response: RejectedResponse?
        /// Code of the application's made it in the place of an answer: it says nothing of the host.
        var isOfApplication = false
        /// For observers; `nil` of a run that never left.
        var measured: RequestMetrics?
        /// In groups, outermost first.
        var groupPath: [GroupPlace] = []
        /// What the others of a batch had brought.
        var finished: (@Sendable () -> [Int: any Sendable])?

        mutating func measure(_ metrics: RequestMetrics) {
            measured = metrics
            (bytesSent, bytesReceived) = (metrics.bytesSent, metrics.bytesReceived)
        }
    }

    /// On the heap, so that what may throw it stays small.
    private final class Storage: Sendable {
        let facts: Facts
        init(_ facts: Facts) { self.facts = facts }
    }

    private let storage: Storage

    init(_ facts: Facts) { storage = Storage(facts) }

    var facts: Facts { storage.facts }

    /// An error of the application's own making, for ``Request/value(from:)`` and for tests.
    public init(_ code: Code, phase: RequestPhase = .processing, message: String = "") {
        self.init(Facts(code: code, phase: phase, message: message))
    }
}

extension RequestError: CustomStringConvertible {
    /// One line without secrets.
    public var description: String {
        var line = code.description
        if !message.isEmpty { line += ": \(message)" }
        if !groupPath.isEmpty { line += ", " + groupPath.map(\.description).joined(separator: ", ") }
        line += " (phase \(phase)"
        if !url.isEmpty { line += ", \(url)" }
        if attempts > 0 { line += ", attempt \(attempts), \(bytesSent) bytes sent, \(bytesReceived) received" }
        if errno != 0 { line += ", errno \(errno)" }
        if curlCode != 0 { line += ", curl \(curlCode)" }
        return line + ")"
    }
}

// All ways to turn it into text: the default of each would show what the server sent.
extension RequestError: CustomDebugStringConvertible, CustomReflectable {
    /// The same line.
    public var debugDescription: String { description }

    /// Without what the server sent.
    public var customMirror: Mirror {
        Mirror(self, children: ["code": code, "phase": phase, "url": url, "message": message])
    }
}

/// How far a run had come.
public enum RequestPhase: String, Sendable, Hashable, CustomStringConvertible {
    /// Nothing was handed over yet.
    case preparing
    /// It waited for its turn.
    case queued
    /// The name was looked up.
    case dns
    /// A connection was made.
    case connect
    /// TLS was negotiated.
    case tls
    /// The request was sent.
    case send
    /// It was sent, and nothing of the answer came.
    case waitingHead
    /// The head of the answer came.
    case head
    /// The body came.
    case body
    /// All had come, and was validated and decoded.
    case processing

    /// Its name.
    public var description: String { rawValue }
}

extension RequestError.RejectedResponse: CustomStringConvertible, CustomReflectable {
    /// How much there is; never what.
    public var description: String { "\(status), \(headers.count) header fields, \(body.count) bytes of the body" }

    /// Likewise.
    public var customMirror: Mirror {
        Mirror(self, children: ["status": status, "headers": headers.count, "body": body.count])
    }
}
