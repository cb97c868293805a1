package import FerryTransport
import Glibc

extension RequestError {
    /// An error of the transport before anything was sent.
    init(_ failure: TransferFailure, url: String) {
        var facts = Facts(code: Code(failure), phase: .preparing)
        facts.url = Redaction.url(url, isBroken: failure.code == .invalidURL)
        facts.message = Self.words(failure)
        facts.curlCode = failure.curlCode
        facts.errno = failure.errno
        self.init(facts)
    }

    /// The error of a transfer that failed.
    init(_ failure: TransferFailure, of result: TransferResult, url: String, origin: ResponseOrigin? = nil) {
        var code = Code(failure)
        if failure.code == .incompleteBody {
            code = .incompleteBody(expected: result.contentLength, got: Int64(clamping: result.bodyBytesReceived))
        }
        var facts = Facts(code: code, phase: RequestPhase(result.phase))
        facts.url = Redaction.url(url, isBroken: failure.code == .invalidURL)
        facts.message = Self.words(failure)
        facts.curlCode = failure.curlCode
        facts.errno = failure.errno
        facts.attempts = origin?.attempts(result) ?? result.attempts
        facts.mayHaveBeenProcessed = result.mayHaveBeenProcessed || origin?.earlier.mayHaveBeenProcessed == true
        facts.redirects = origin?.redirects ?? []
        facts.measure(RequestMetrics(result, origin))
        self.init(facts)
    }

    /// A response that was not accepted, either complete or, in the phase `body`, because of its head.
    package init(
        _ code: Code, phase: RequestPhase = .processing, message: String, cause: (any Error)? = nil, response: Response,
        body: [UInt8]? = nil, isCut: Bool = false
    ) {
        let result = response.result
        var facts = Facts(code: code, phase: phase)
        facts.url = Redaction.url(response.url)
        facts.message = message
        facts.cause = cause
        facts.attempts = response.attempts
        facts.mayHaveBeenProcessed = response.attempts > 0
        facts.redirects = response.redirects
        facts.measure(response.metrics)
        let kept = body?.prefix(RejectedResponse.most) ?? Array(result.body.prefix(RejectedResponse.mostCollected))[...]
        let length = body.map { isCut ? .max : $0.count } ?? result.body.count
        facts.response = RejectedResponse(
            status: response.status, headers: Headers(response.headers.fields), body: Array(kept),
            isTruncated: kept.count < length)
        self.init(facts)
    }

    /// An error that Ferry found before anything was handed to the transport.
    init(preparing code: Code, message: String, url: String = "", isBroken: Bool = false, cause: (any Error)? = nil) {
        var facts = Facts(code: code, phase: .preparing)
        facts.url = Redaction.url(url, isBroken: isBroken)
        facts.message = message
        facts.cause = cause
        self.init(facts)
    }

    static func queueFull(limit: Int?, url: String) -> RequestError {
        let bound = limit.map { " (limit \(max($0, 0)))" } ?? ""
        return RequestError(preparing: .queueFull, message: "the request queue is full\(bound)", url: url)
    }

    /// The cancel of a run that was about to end with this error; it keeps what is known of the run.
    var cancelled: RequestError {
        var facts = facts
        let failure = TransferFailure(.cancelled)
        (facts.code, facts.message, facts.cause) = (Code(failure), Self.words(failure), nil)
        (facts.curlCode, facts.errno, facts.response) = (0, 0, nil)
        return RequestError(facts)
    }

    /// libcurl's message, or Ferry's if libcurl has none.
    private static func words(_ failure: TransferFailure) -> String {
        if !failure.message.isEmpty { return failure.message }
        let sentence = Code(failure).sentence
        return Code(failure) == .fileIO && failure.errno != 0
            ? "\(sentence): \(String(cString: strerror(failure.errno)))" : sentence
    }
}

extension RequestPhase {
    init(_ phase: TransferPhase) {
        self =
            switch phase {
            case .queued: .queued
            case .dns: .dns
            case .connect: .connect
            case .tls: .tls
            case .send: .send
            case .waitHead: .waitingHead
            case .head: .head
            case .body: .body
            case .done: .processing
            }
    }
}

extension RequestError.Code {
    /// The public code for the code and detail of the core.
    package init(_ failure: TransferFailure) {
        let detail = failure.detail
        self =
            switch failure.code {
            case .memory, .internalError: .internalError
            case .invalidURL: .invalidURL
            case .unsupportedScheme: .unsupportedScheme
            case .invalidRequest: Self.find(detail, Self.requestParts).map { .invalidRequest($0) } ?? .invalidRequest
            case .dns: .dns(Self.find(detail, Self.dnsFaults) ?? .failed)
            case .connect: .connect(Self.find(detail, Self.connectFaults) ?? .failed)
            case .tls: .tls(Self.find(detail, Self.tlsFaults) ?? .handshake)
            case .timeout: .timeout(Self.find(detail, Self.timeouts) ?? .total)
            case .connectionReset: .connectionReset
            case .connectionClosed: .connectionClosed
            case .incompleteBody: .incompleteBody
            case .malformedResponse:
                Self.find(detail, Self.responseParts).map { .malformedResponse($0) } ?? .malformedResponse
            case .headTooLarge: .headersTooLarge(detail == .informational ? .informational : .bytes)
            case .bodyTooLarge: .responseTooLarge
            case .contentDecoding: .contentDecoding(detail == .decodingTruncated ? .truncated : .corrupt)
            case .http2Stream: .http2Stream(Self.find(detail, Self.http2Faults) ?? .other)
            case .file: .fileIO
            case .uploadSource: .uploadSource
            case .cancelled: .cancelled
            case .shutdown: .shutdown
            case .proxy: .proxy(Self.find(detail, Self.proxyFaults) ?? .handshake)
            case .addressForbidden: .addressForbidden
            case .bodyNotReplayable: .bodyNotReplayable
            }
    }

    private static func find<Word>(_ detail: TransferFailure.Detail, _ table: [(TransferFailure.Detail, Word)]) -> Word?
    {
        table.first { $0.0 == detail }?.1
    }

    private static let requestParts: [(TransferFailure.Detail, RequestPart)] = [
        (.method, .method), (.headerName, .headerName), (.headerValue, .headerValue), (.framing, .framing),
    ]
    private static let dnsFaults: [(TransferFailure.Detail, DNSFault)] = [
        (.dnsNotFound, .notFound), (.dnsTemporary, .temporary), (.dnsFailed, .failed),
    ]
    private static let connectFaults: [(TransferFailure.Detail, ConnectFault)] = [
        (.connectRefused, .refused), (.connectUnreachable, .unreachable), (.connectFailed, .failed),
    ]
    private static let tlsFaults: [(TransferFailure.Detail, TLSFault)] = [
        (.tlsExpired, .expired), (.tlsHostname, .hostname), (.tlsUntrusted, .untrusted),
        (.tlsPinMismatch, .pinMismatch), (.tlsHandshake, .handshake), (.tlsConfiguration, .configuration),
    ]
    private static let timeouts: [(TransferFailure.Detail, TimeoutPart)] = [
        (.timeoutQueue, .queue), (.timeoutDNS, .dns), (.timeoutConnect, .connect), (.timeoutTLS, .tls),
        (.timeoutWrite, .write), (.timeoutResponseHead, .responseHead), (.timeoutRead, .read),
        (.timeoutLowSpeed, .lowSpeed), (.timeoutTotal, .total), (.timeoutDeadline, .deadline),
    ]
    private static let proxyFaults: [(TransferFailure.Detail, ProxyFault)] = [
        (.proxyAuthRequired, .authRequired), (.proxyRefused, .refused), (.proxyUnreachable, .unreachable),
        (.proxyHandshake, .handshake),
    ]
    private static let http2Faults: [(TransferFailure.Detail, HTTP2Fault)] = [
        (.http2Refused, .refused), (.http2Cancel, .cancel), (.http2Internal, .internal),
        (.http2EnhanceYourCalm, .enhanceYourCalm), (.http2Other, .other),
    ]
    private static let responseParts: [(TransferFailure.Detail, ResponsePart)] = [
        (.statusLine, .statusLine), (.header, .header), (.length, .length),
        (.conflictingLength, .conflictingLength), (.transferEncoding, .transferEncoding), (.chunk, .chunk),
        (.trailer, .trailer), (.upgrade, .upgrade),
    ]
}

extension RequestError.Code {
    /// The message of errors that the core finds itself and for which libcurl has no message.
    var sentence: String {
        switch word {
        case .invalidURL: "not a valid URL"
        case .unsupportedScheme: "the scheme is not http or https"
        case .invalidRequest: "the request is invalid"
        case .addressForbidden: "the address policy forbids the address"
        case .dns: "the name could not be resolved"
        case .connect: "the connection could not be established"
        case .proxy: "the proxy refused the connection"
        case .tls: "the server's certificate could not be verified"
        case .timeout: timeoutSentence
        case .connectionReset: "the peer reset the connection"
        case .connectionClosed: "the peer closed the connection before a complete head arrived"
        case .incompleteBody: "the body ended early"
        case .malformedResponse: "the response violates HTTP"
        case .headersTooLarge: "the head is larger than the limit"
        case .responseTooLarge: "the body is larger than the limit"
        case .contentDecoding: "the compressed body is damaged"
        case .fileIO: "a file could not be read or written"
        case .uploadSource: "the source of the body failed"
        case .uploadStopped: "the server does not take the rest of the body"
        case .bodyNotReplayable: "the body cannot be sent a second time"
        case .http2Stream: "the HTTP/2 stream was reset"
        case .cancelled: "the run was cancelled"
        case .shutdown: "the agent has been shut down"
        case .internalError: "out of memory, or a system call failed"
        case .tooManyRedirects: "too many redirects"
        case .redirectForbidden: "the redirect is not allowed"
        case .resumeMismatch: "the response does not continue the partial download"
        case .contentMismatch: "the file is not the expected one"
        case .invalidStatusCode: "the status was not accepted"
        case .invalidContentType: "the content type was not accepted"
        case .invalidJSON: "the body is not JSON"
        case .schemaMismatch: "the body does not match its schema"
        case .decoding: "the body could not be decoded"
        case .applicationError: "the application's code threw an error"
        case .notCached: "the cache has no response"
        case .queueFull: "the request queue is full"
        }
    }

    private var timeoutSentence: String {
        guard case .timeout(let part) = cause else { return "the timeout has passed" }
        return switch part {
        case .queue: "the deadline passed in the queue"
        case .dns: "the name lookup timed out"
        case .connect: "the connect timed out"
        case .tls: "the TLS handshake timed out"
        case .write: "the peer stopped reading the request"
        case .responseHead: "no response arrived in time"
        case .read: "the peer stopped sending the body"
        case .lowSpeed: "the transfer rate was too low for too long"
        case .deadline: "the deadline has passed"
        case .total: "the timeout has passed"
        }
    }
}
