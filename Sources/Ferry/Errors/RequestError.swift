public import FerryJSON
import FoundationEssentials

/// The error type of Ferry: a code to match, the phase in which it happened, and the underlying error.
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
/// ``is(_:)`` tests for one code. Codes are patterns without associated values, so they cannot bind with `let`; details
/// are members of the error, like ``status``.
///
/// An error contains no secrets: the URL has no user, password or query values. The ``message`` may name a content
/// type, a redacted redirect target, or keys of a JSON document. Other header values and the body are only in
/// ``response``.
public struct RequestError: Error, Sendable {
    /// The reason, with its detail.
    public var code: Code { storage.facts.code }

    /// The phase in which the error occurred.
    public var phase: RequestPhase { storage.facts.phase }

    /// The redacted URL, or the text that is not a valid URL.
    public var url: String { storage.facts.url }

    /// A sentence that describes the error.
    public var message: String { storage.facts.message }

    /// libcurl's `CURLcode`; 0 if libcurl was not involved.
    public var curlCode: Int { Int(storage.facts.curlCode) }

    /// The system's error number; 0 if there is none.
    public var errno: Int { Int(storage.facts.errno) }

    /// The underlying error: a `JSONSyntaxError` with its offset (`invalidJSON`), a `JSONMismatch` (`schemaMismatch`,
    /// `decoding`), a `DecodingError` or an `XMLReadError` (`decoding`), the encoder's error (`invalidRequest(body)`),
    /// the error of the application's own code (`applicationError`), or the `RequestError` of a failed token refresh.
    public var cause: (any Error)? { storage.facts.cause }

    /// The number of bytes sent, head and body, in all attempts.
    public var bytesSent: UInt64 { storage.facts.bytesSent }

    /// The number of bytes received, head and body before decoding, of all responses.
    public var bytesReceived: UInt64 { storage.facts.bytesReceived }

    /// The number of attempts: those that sent the request or began to, and those that failed before a connection was
    /// established. An attempt that was cancelled, or forbidden by the ``AddressPolicy``, before that does not count.
    /// Redirects that were followed count, unlike in ``RequestMetrics/attempts``.
    public var attempts: Int { storage.facts.attempts }

    /// Whether a server may have processed the request, in this or an earlier attempt.
    public var mayHaveBeenProcessed: Bool { storage.facts.mayHaveBeenProcessed }

    /// The redirects that were followed, in order.
    public var redirects: [Redirect] { storage.facts.redirects }

    /// The response that caused the error: one that was not accepted (of a stream or a download only its head and the
    /// first bytes of its body), one that could not be processed, a redirect that was not followed, or one that stopped
    /// an upload. `nil` for any other error.
    public var response: RejectedResponse? { storage.facts.response }

    /// The status of ``response``.
    public var status: Int? { response?.status }

    /// Status, header fields and the first bytes of a response that caused an error.
    public struct RejectedResponse: Sendable {
        /// The status code.
        public let status: Int
        /// The header fields.
        public let headers: Headers
        /// The first bytes of the body: at most 65,536, and at most 4,096 of a stream, a download or an exchange.
        public let body: [UInt8]
        /// Whether there was more of the body than this. Not known, and `false`, if nothing of a body was read.
        public let isTruncated: Bool

        /// Of a body that is in memory, and of one that is still to be read.
        static let (mostCollected, most) = (65_536, 4_096)

        /// The body as text, decoded with the charset of its `Content-Type`, or as UTF-8 if there is none or it is
        /// unknown on this machine. Invalid bytes are replaced by U+FFFD.
        public var text: String {
            let encoding = TextEncoding(contentType: headers["Content-Type"]) ?? .utf8
            return body.withUnsafeBytes { encoding.decode($0) } ?? String(decoding: body, as: UTF8.self)
        }

        /// A value of the JSON in the body, like the problem details of RFC 9457. Throws a `DecodingError` if the body
        /// is not JSON of this type, for example because it is truncated.
        public func decode<Value: Decodable>(
            _ type: Value.Type = Value.self, by decoder: FerryJSONDecoder = FerryJSONDecoder()
        ) throws -> Value {
            try decoder.decode(type, from: body)
        }
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
        /// Made by code of the application instead of a response, so it does not count for the health of the host.
        var isOfApplication = false
        /// The metrics for observers; `nil` for a run that was never sent.
        var measured: RequestMetrics?
        /// The position in nested groups, outermost first.
        var groupPath: [GroupPlace] = []
        /// The values of the members of a batch that had succeeded.
        var finished: (@Sendable () -> [Int: any Sendable])?

        mutating func measure(_ metrics: RequestMetrics) {
            measured = metrics
            (bytesSent, bytesReceived) = (metrics.bytesSent, metrics.bytesReceived)
        }
    }

    /// On the heap, so that a typed error stays small.
    private final class Storage: Sendable {
        let facts: Facts
        init(_ facts: Facts) { self.facts = facts }
    }

    private let storage: Storage

    init(_ facts: Facts) { storage = Storage(facts) }

    var facts: Facts { storage.facts }

    /// Creates an error of the application, for ``Request/value(from:)`` and for tests.
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

// All conversions to text are defined here, because the defaults would show what the server sent.
extension RequestError: CustomDebugStringConvertible, CustomReflectable {
    /// The same as ``description``.
    public var debugDescription: String { description }

    /// The members without what the server sent.
    public var customMirror: Mirror {
        Mirror(self, children: ["code": code, "phase": phase, "url": url, "message": message])
    }
}

/// The phase in which the error occurred.
public enum RequestPhase: String, Sendable, Hashable, CustomStringConvertible {
    /// The request was not yet handed to the transport.
    case preparing
    /// The request was waiting in the queue.
    case queued
    /// The name was being resolved.
    case dns
    /// The connection was being established.
    case connect
    /// The TLS handshake was in progress.
    case tls
    /// The request was being sent.
    case send
    /// The request was sent, and no byte of the response had arrived.
    case waitingHead
    /// The head of the response was arriving.
    case head
    /// The body was arriving.
    case body
    /// The response was complete, and was being validated and decoded.
    case processing

    /// Its name.
    public var description: String { rawValue }
}

extension RequestError.RejectedResponse: CustomStringConvertible, CustomReflectable {
    /// Status and sizes, without content.
    public var description: String { "\(status), \(headers.count) header fields, \(body.count) body bytes" }

    /// Status and sizes, without content.
    public var customMirror: Mirror {
        Mirror(self, children: ["status": status, "headers": headers.count, "body": body.count])
    }
}
