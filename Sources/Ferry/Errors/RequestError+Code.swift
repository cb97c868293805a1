extension RequestError {
    /// The reason of an error. The set is open: further codes may be added.
    ///
    ///     switch error.code {
    ///     case .timeout(.connect): retryLater()       // no connection in time
    ///     case .timeout: giveUp()                     // any other timeout
    ///     case .invalidStatusCode(500...599): complain()
    ///     default: throw error
    ///     }
    ///     if error.is(.invalidStatusCode(404)) { return nil }
    ///
    /// In a `switch` and with ``RequestError/is(_:)``, a code without a detail matches every detail. `==` compares code
    /// and detail. Write `catch` without a pattern before both: in a closure the compiler rejects `catch .timeout`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        enum Word: String, Sendable, CaseIterable {
            case invalidURL, unsupportedScheme, invalidRequest, addressForbidden, dns, connect, proxy, tls
            case timeout, connectionReset, connectionClosed, incompleteBody, malformedResponse, headersTooLarge
            case responseTooLarge, contentDecoding, tooManyRedirects, redirectForbidden, bodyNotReplayable
            case http2Stream, resumeMismatch, contentMismatch, fileIO, uploadSource, uploadStopped, invalidStatusCode
            case invalidContentType, invalidJSON, schemaMismatch, decoding, applicationError, notCached, cancelled
            case shutdown, queueFull, internalError
        }

        enum Cause: Sendable, Hashable {
            case none
            case word(String)
            case timeout(TimeoutPart)
            case number(Int)
            case numbers(ClosedRange<Int>)
            case lengths(Int64?, Int64)
        }

        let word: Word
        let cause: Cause

        private init(_ word: Word, _ cause: Cause = .none) {
            self.word = word
            self.cause = cause
        }

        /// The name of the code without its detail, like `incompleteBody`.
        public var name: String { word.rawValue }

        /// The name of the detail, like `connect` of `timeout(connect)`; `nil` if there is none.
        public var detail: String? {
            switch cause {
            case .none: nil
            case .word(let word): word
            case .timeout(let part): part.rawValue
            case .number(let number): String(number)
            case .numbers(let range): "\(range.lowerBound)...\(range.upperBound)"
            case .lengths(let expected, let got): "expected: \(expected.map(String.init) ?? "unknown"), got: \(got)"
            }
        }

        /// Code and detail, like `timeout(connect)`.
        public var description: String { detail.map { "\(name)(\($0))" } ?? name }

        /// Matches an error with this code, and with this detail if the pattern has one.
        public static func ~= (pattern: Code, error: RequestError) -> Bool { pattern ~= error.code }

        /// Matches a code, and its detail if the pattern has one.
        public static func ~= (pattern: Code, code: Code) -> Bool {
            if pattern.word != code.word { return false }
            if case .numbers(let range) = pattern.cause, case .number(let number) = code.cause {
                return range.contains(number)
            }
            return pattern.cause == .none || pattern.cause == code.cause
        }

        private static func made<D: RawRepresentable<String>>(_ word: Word, _ detail: D) -> Code {
            Code(word, .word(detail.rawValue))
        }

        /// The text is not a valid URL.
        public static var invalidURL: Code { Code(.invalidURL) }
        /// The scheme is missing, or is another than `http`, `https`, `http+unix` and `https+unix`.
        public static var unsupportedScheme: Code { Code(.unsupportedScheme) }
        /// The request is invalid.
        public static var invalidRequest: Code { Code(.invalidRequest) }
        /// The request is invalid because of this part.
        public static func invalidRequest(_ part: RequestPart) -> Code { made(.invalidRequest, part) }
        /// The address policy forbids the address.
        public static var addressForbidden: Code { Code(.addressForbidden) }
        /// The name could not be resolved.
        public static var dns: Code { Code(.dns) }
        /// The name could not be resolved, with this detail.
        public static func dns(_ fault: DNSFault) -> Code { made(.dns, fault) }
        /// The connection could not be established.
        public static var connect: Code { Code(.connect) }
        /// The connection could not be established, with this detail.
        public static func connect(_ fault: ConnectFault) -> Code { made(.connect, fault) }
        /// The proxy failed or refused.
        public static var proxy: Code { Code(.proxy) }
        /// The proxy failed or refused, with this detail.
        public static func proxy(_ fault: ProxyFault) -> Code { made(.proxy, fault) }
        /// The TLS handshake failed.
        public static var tls: Code { Code(.tls) }
        /// The TLS handshake failed, with this detail.
        public static func tls(_ fault: TLSFault) -> Code { made(.tls, fault) }
        /// A timeout or deadline has passed.
        public static var timeout: Code { Code(.timeout) }
        /// This timeout has passed.
        public static func timeout(_ part: TimeoutPart) -> Code { Code(.timeout, .timeout(part)) }
        /// The peer reset the connection.
        public static var connectionReset: Code { Code(.connectionReset) }
        /// The peer closed the connection before a complete head arrived.
        public static var connectionClosed: Code { Code(.connectionClosed) }
        /// The body ended early.
        public static var incompleteBody: Code { Code(.incompleteBody) }
        /// The body ended early; `expected` is `nil` if no length was announced.
        public static func incompleteBody(expected: Int64?, got: Int64) -> Code {
            Code(.incompleteBody, .lengths(expected, got))
        }
        /// The response violates HTTP.
        public static var malformedResponse: Code { Code(.malformedResponse) }
        /// This part of the response violates HTTP.
        public static func malformedResponse(_ part: ResponsePart) -> Code { made(.malformedResponse, part) }
        /// The head is larger than the limit.
        public static var headersTooLarge: Code { Code(.headersTooLarge) }
        /// The head is larger than this limit.
        public static func headersTooLarge(_ measure: HeadMeasure) -> Code { made(.headersTooLarge, measure) }
        /// The body is larger than the limit.
        public static var responseTooLarge: Code { Code(.responseTooLarge) }
        /// The compressed body is damaged.
        public static var contentDecoding: Code { Code(.contentDecoding) }
        /// The compressed body is damaged in this way.
        public static func contentDecoding(_ fault: DecodingFault) -> Code { made(.contentDecoding, fault) }
        /// There are more redirects than the policy allows.
        public static var tooManyRedirects: Code { Code(.tooManyRedirects) }
        /// The redirect is not allowed.
        public static var redirectForbidden: Code { Code(.redirectForbidden) }
        /// The redirect is not allowed, for this reason.
        public static func redirectForbidden(_ fault: RedirectFault) -> Code { made(.redirectForbidden, fault) }
        /// The body cannot be sent a second time.
        public static var bodyNotReplayable: Code { Code(.bodyNotReplayable) }
        /// The HTTP/2 stream was reset.
        public static var http2Stream: Code { Code(.http2Stream) }
        /// The HTTP/2 stream was reset with this error code.
        public static func http2Stream(_ fault: HTTP2Fault) -> Code { made(.http2Stream, fault) }
        /// The response does not continue the partial file.
        public static var resumeMismatch: Code { Code(.resumeMismatch) }
        /// The downloaded file is not the expected one.
        public static var contentMismatch: Code { Code(.contentMismatch) }
        /// The downloaded file is not the expected one, by this measure.
        public static func contentMismatch(_ measure: FileMeasure) -> Code { made(.contentMismatch, measure) }
        /// A file could not be read or written.
        public static var fileIO: Code { Code(.fileIO) }
        /// The source of the upload failed.
        public static var uploadSource: Code { Code(.uploadSource) }
        /// The server has responded, and does not take the rest of the body.
        public static var uploadStopped: Code { Code(.uploadStopped) }
        /// The status was not accepted.
        public static var invalidStatusCode: Code { Code(.invalidStatusCode) }
        /// This status was not accepted.
        public static func invalidStatusCode(_ status: Int) -> Code { Code(.invalidStatusCode, .number(status)) }
        /// A pattern for any of these statuses, as in `case .invalidStatusCode(500...599)` of a `switch error.code`. No
        /// error has this code itself.
        public static func invalidStatusCode(_ statuses: ClosedRange<Int>) -> Code {
            Code(.invalidStatusCode, .numbers(statuses))
        }
        /// The content type of the body is not accepted.
        public static var invalidContentType: Code { Code(.invalidContentType) }
        /// The body is not JSON.
        public static var invalidJSON: Code { Code(.invalidJSON) }
        /// The body does not match its schema.
        public static var schemaMismatch: Code { Code(.schemaMismatch) }
        /// The value could not be created from the body.
        public static var decoding: Code { Code(.decoding) }
        /// The application's own code threw an error.
        public static var applicationError: Code { Code(.applicationError) }
        /// There is no usable response in the cache, and the network must not be used.
        public static var notCached: Code { Code(.notCached) }
        /// There is no usable response in the cache, for this reason, and the network must not be used.
        public static func notCached(_ miss: CacheMiss) -> Code { made(.notCached, miss) }
        /// The run was cancelled.
        public static var cancelled: Code { Code(.cancelled) }
        /// The agent has been shut down.
        public static var shutdown: Code { Code(.shutdown) }
        /// The request queue is full.
        public static var queueFull: Code { Code(.queueFull) }
        /// Memory ran out, or a system or libcurl call failed unexpectedly; see the message.
        public static var internalError: Code { Code(.internalError) }
    }
}

extension RequestError {
    /// Whether the error has this code. A code without a detail matches every detail: `error.is(.timeout)`,
    /// `error.is(.timeout(.deadline))`, `error.is(.invalidStatusCode(500...599))`.
    public func `is`(_ code: Code) -> Bool { code ~= self.code }
}

extension RequestError.Code {
    /// The invalid part of a request.
    public enum RequestPart: String, Sendable, Hashable, CaseIterable {
        /// The method is not a token, or it is CONNECT.
        case method
        /// The name of a header field is not a token, or the field cannot be a trailer or in the head of a part.
        case headerName
        /// The value of a header field contains a control character other than a tab.
        case headerValue
        /// A `Content-Length` that is not that of the body, a `Transfer-Encoding`, a second `Host`, or a body of a HEAD
        /// request.
        case framing
        /// The arguments cannot be JSON.
        case arguments
        /// The body cannot be encoded, its multipart boundary is invalid, a `Content-Encoding` contradicts its
        /// compression, or an exchange has a second body.
        case body
    }

    /// Why a name could not be resolved.
    public enum DNSFault: String, Sendable, Hashable, CaseIterable {
        /// The name does not exist.
        case notFound
        /// The name servers could not answer.
        case temporary
        /// Any other reason.
        case failed
    }

    /// Why a connection could not be established.
    public enum ConnectFault: String, Sendable, Hashable, CaseIterable {
        /// No server listens on the port.
        case refused
        /// There is no route to the address.
        case unreachable
        /// Any other reason.
        case failed
    }

    /// Why a proxy could not be used.
    public enum ProxyFault: String, Sendable, Hashable, CaseIterable {
        /// The proxy requires (other) credentials (407).
        case authRequired
        /// The proxy refused the connection.
        case refused
        /// The proxy's name could not be resolved, or it does not accept connections.
        case unreachable
        /// The proxy closed the connection, or refused in its SOCKS reply.
        case handshake
        /// The proxy configuration is invalid.
        case configuration
    }

    /// The error code of an HTTP/2 stream (RFC 9113, 7).
    public enum HTTP2Fault: String, Sendable, Hashable, CaseIterable {
        /// The request was certainly not processed.
        case refused
        /// The server has reset the stream because it does not need it any more.
        case cancel
        /// The server failed.
        case `internal`
        /// The server wants fewer requests.
        case enhanceYourCalm
        /// Any other error code.
        case other
    }

    /// Why a TLS handshake failed.
    public enum TLSFault: String, Sendable, Hashable, CaseIterable {
        /// The certificate has expired or is not yet valid.
        case expired
        /// The certificate is for another host.
        case hostname
        /// The certificate is not signed by a trusted authority.
        case untrusted
        /// The server's key is not one of the pinned keys.
        case pinMismatch
        /// The two sides could not agree, or the server does not use TLS.
        case handshake
        /// The client's own files or options cannot be used.
        case configuration
    }

    /// The phase in which a timeout passed.
    public enum TimeoutPart: String, Sendable, Hashable, CaseIterable {
        /// The wait in the queue.
        case queue
        /// The name lookup.
        case dns
        /// The connect.
        case connect
        /// The TLS handshake.
        case tls
        /// Sending the request: the peer does not read.
        case write
        /// Waiting for the head of the response.
        case responseHead
        /// Reading the body: no byte arrived for the idle time.
        case read
        /// The rate was too low for too long.
        case lowSpeed
        /// The exchange as a whole.
        case total
        /// The whole run. A run that still waits in the queue at its deadline fails with `queue`.
        case deadline
    }

    /// The part of a response that violates HTTP.
    public enum ResponsePart: String, Sendable, Hashable, CaseIterable {
        /// The status line.
        case statusLine
        /// A header field.
        case header
        /// A `Content-Length`.
        case length
        /// Two different lengths.
        case conflictingLength
        /// A `Transfer-Encoding`.
        case transferEncoding
        /// The chunks.
        case chunk
        /// A trailer field.
        case trailer
        /// A switch to a protocol that was not requested.
        case upgrade
    }

    /// The limit that a head exceeded.
    public enum HeadMeasure: String, Sendable, Hashable, CaseIterable {
        /// The size in bytes.
        case bytes
        /// The number of informational responses (1xx).
        case informational
    }

    /// Why a redirect is not allowed.
    public enum RedirectFault: String, Sendable, Hashable, CaseIterable {
        /// The target is neither http nor https.
        case scheme
        /// From https to http.
        case downgrade
        /// The rule of the policy refused it.
        case policy
        /// The target is not a valid URL, or there are two targets.
        case invalidLocation
    }

    /// The property of a downloaded file that is not as expected.
    public enum FileMeasure: String, Sendable, Hashable, CaseIterable {
        /// The length.
        case length
        /// The SHA-256.
        case sha256
    }

    /// How a compressed body is damaged.
    public enum DecodingFault: String, Sendable, Hashable, CaseIterable {
        /// It ends early.
        case truncated
        /// It is invalid.
        case corrupt
    }
}
