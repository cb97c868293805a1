package import FerryTransport

extension RequestError {
    /// What the transport refused, before anything was sent.
    init(_ failure: TransferFailure, url: String) {
        var facts = Facts(code: Code(failure), phase: .preparing)
        facts.url = Redaction.url(url, isBroken: failure.code == .invalidURL)
        facts.message = Self.words(failure)
        facts.curlCode = failure.curlCode
        facts.errno = failure.errno
        self.init(facts)
    }

    /// A transfer that ended badly.
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

    /// An answer that was not accepted, as a whole or, in the phase `body`, by what its head announced.
    package init(
        _ code: Code, phase: RequestPhase = .processing, message: String, cause: (any Error)? = nil, response: Response,
        body: [UInt8]? = nil
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
        facts.response = RejectedResponse(
            status: response.status, headers: Headers(response.headers.fields),
            body: Array((body ?? Array(result.body.prefix(RejectedResponse.most))).prefix(RejectedResponse.most)))
        self.init(facts)
    }

    /// A fault of Ferry's own, before anything was handed over.
    init(preparing code: Code, message: String, url: String = "", isBroken: Bool = false, cause: (any Error)? = nil) {
        var facts = Facts(code: code, phase: .preparing)
        facts.url = Redaction.url(url, isBroken: isBroken)
        facts.message = message
        facts.cause = cause
        self.init(facts)
    }

    static func queueFull(url: String) -> RequestError {
        RequestError(preparing: .queueFull, message: "as many runs wait as may", url: url)
    }

    /// The cancel of a run that was about to end with this: what is known of it stays true.
    var cancelled: RequestError {
        var facts = facts
        let failure = TransferFailure(.cancelled)
        (facts.code, facts.message, facts.cause) = (Code(failure), Self.words(failure), nil)
        (facts.curlCode, facts.errno, facts.response) = (0, 0, nil)
        return RequestError(facts)
    }

    /// libcurl's words, or ours where it had none.
    private static func words(_ failure: TransferFailure) -> String {
        failure.message.isEmpty ? Code(failure).sentence : failure.message
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
    /// The core's code and detail in the words of the public face.
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
    /// What happened, for the faults that the core finds without libcurl's having words for them.
    var sentence: String {
        switch word {
        case .invalidURL: "this is not a URL"
        case .unsupportedScheme: "only http and https are carried"
        case .invalidRequest: "the request cannot be sent as it is"
        case .addressForbidden: "the address policy forbids the address"
        case .dns: "the name was not found"
        case .connect: "there is no connection"
        case .proxy: "the proxy refused"
        case .tls: "there is no trust"
        case .timeout: timeoutSentence
        case .connectionReset: "the peer broke the connection"
        case .connectionClosed: "the peer closed the connection before a whole head came"
        case .incompleteBody: "the body ended early"
        case .malformedResponse: "the answer breaks the rules of HTTP"
        case .headersTooLarge: "the head is larger than allowed"
        case .responseTooLarge: "the body is larger than allowed"
        case .contentDecoding: "the compressed body is damaged"
        case .fileIO: "a file could not be written or read"
        case .uploadSource: "the source of the body failed"
        case .uploadStopped: "the server does not take the rest of the body"
        case .bodyNotReplayable: "the body cannot be sent a second time"
        case .http2Stream: "the stream of HTTP/2 was ended"
        case .cancelled: "the run was cancelled"
        case .shutdown: "the agent has been shut down"
        case .internalError: "out of memory, or the system refused"
        case .tooManyRedirects: "too many redirects"
        case .redirectForbidden: "the redirect is not followed"
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
        guard case .timeout(let part) = cause else { return "it took too long" }
        return switch part {
        case .queue: "it waited too long for its turn"
        case .dns: "looking up the name took too long"
        case .connect: "connecting took too long"
        case .tls: "the TLS handshake took too long"
        case .write: "the peer has stopped reading"
        case .responseHead: "no answer came in time"
        case .read: "the body has stopped coming"
        case .lowSpeed: "the rate was too low for too long"
        case .deadline: "the deadline has passed"
        case .total: "it took too long"
        }
    }
}
