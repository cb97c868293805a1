/// Why a transfer did not end well, in the core's own words.
package struct TransferFailure: Error, Sendable, Equatable {
    package enum Code: Int32, Sendable {
        case memory = -1
        case internalError = -2
        case invalidURL = -3
        case unsupportedScheme = -4
        case invalidRequest = -5
        case dns = -6
        case connect = -7
        case tls = -8
        case timeout = -9
        case connectionReset = -10
        case connectionClosed = -11
        case incompleteBody = -12
        case malformedResponse = -13
        case headTooLarge = -14
        case bodyTooLarge = -15
        case contentDecoding = -16
        case http2Stream = -17
        case file = -18
        case uploadSource = -19
        case cancelled = -20
        case shutdown = -21
        case proxy = -22
        case addressForbidden = -23
        case bodyNotReplayable = -24
    }

    /// The finer cause; the order is that of `FERRY_D_…` in CFerry.h.
    package enum Detail: Int32, Sendable {
        case none = 0
        case method, headerName, headerValue, framing
        case dnsNotFound, dnsTemporary, dnsFailed
        case connectRefused, connectUnreachable, connectFailed
        case tlsExpired, tlsHostname, tlsUntrusted, tlsPinMismatch, tlsHandshake, tlsConfiguration
        case timeoutQueue, timeoutDNS, timeoutConnect, timeoutTLS, timeoutWrite, timeoutResponseHead, timeoutRead
        case timeoutLowSpeed, timeoutTotal, timeoutDeadline
        case statusLine, header, length, conflictingLength, transferEncoding, chunk, trailer, upgrade
        case headBytes, informational
        case decodingTruncated, decodingCorrupt
        case proxyAuthRequired, proxyRefused, proxyUnreachable, proxyHandshake
        case http2Refused, http2Cancel, http2Internal, http2EnhanceYourCalm, http2Other
    }

    package var code: Code
    package var detail: Detail
    /// libcurl's `CURLcode`, 0 when libcurl had no part in it.
    package var curlCode: Int32 = 0
    package var errno: Int32 = 0
    /// libcurl's or the core's words; carries no header, no URL and no body.
    package var message = ""

    package init(_ code: Code, _ detail: Detail = .none) {
        self.code = code
        self.detail = detail
    }
}

/// How far a transfer had come; the order is that of `FERRY_PHASE_…` in CFerry.h.
package enum TransferPhase: Int32, Sendable {
    case queued = 0
    case dns, connect, tls, send, waitHead, head, body, done
}

/// Microseconds. `queue` and `total` count from the submit, the others from the start; 0 = did not happen.
package struct TransferMetrics: Sendable, Equatable {
    package var queue: UInt64 = 0
    package var name: UInt64 = 0
    package var connect: UInt64 = 0
    package var tls: UInt64 = 0
    package var firstByte: UInt64 = 0
    package var total: UInt64 = 0

    package init() {}
}
