extension RequestError {
    /// What happened. An open set: leave room for codes that come later.
    ///
    ///     switch error.code {
    ///     case .timeout(.connect): retryLater()       // no connection in time
    ///     case .timeout: giveUp()                     // any other timeout
    ///     case .invalidStatusCode(500...599): complain()
    ///     default: throw error
    ///     }
    ///     if error.is(.invalidStatusCode(404)) { return nil }
    ///
    /// A code without its finer cause matches every cause, by `~=` and ``RequestError/is(_:)``; `==` compares all of
    /// it.
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

        /// The bare word, like `incompleteBody`.
        public var name: String { word.rawValue }

        /// The finer cause in words, like `connect` of `timeout(.connect)`; `nil` where there is none.
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

        /// `timeout(connect)`
        public var description: String { detail.map { "\(name)(\($0))" } ?? name }

        /// Matches an error of this code, and of this finer cause if the pattern has one.
        public static func ~= (pattern: Code, error: RequestError) -> Bool { pattern ~= error.code }

        /// Matches a code likewise.
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

        /// The text is no URL.
        public static var invalidURL: Code { Code(.invalidURL) }
        /// Neither http nor https, or no scheme at all.
        public static var unsupportedScheme: Code { Code(.unsupportedScheme) }
        /// The request cannot be sent as it is.
        public static var invalidRequest: Code { Code(.invalidRequest) }
        /// Likewise, because of this part.
        public static func invalidRequest(_ part: RequestPart) -> Code { made(.invalidRequest, part) }
        /// The address policy forbids the address.
        public static var addressForbidden: Code { Code(.addressForbidden) }
        /// The name was not found.
        public static var dns: Code { Code(.dns) }
        /// Likewise, for this cause.
        public static func dns(_ fault: DNSFault) -> Code { made(.dns, fault) }
        /// No connection.
        public static var connect: Code { Code(.connect) }
        /// Likewise, for this cause.
        public static func connect(_ fault: ConnectFault) -> Code { made(.connect, fault) }
        /// The proxy refused.
        public static var proxy: Code { Code(.proxy) }
        /// Likewise, for this cause.
        public static func proxy(_ fault: ProxyFault) -> Code { made(.proxy, fault) }
        /// No trust.
        public static var tls: Code { Code(.tls) }
        /// Likewise, for this cause.
        public static func tls(_ fault: TLSFault) -> Code { made(.tls, fault) }
        /// It took too long.
        public static var timeout: Code { Code(.timeout) }
        /// Likewise, in this part.
        public static func timeout(_ part: TimeoutPart) -> Code { Code(.timeout, .timeout(part)) }
        /// The peer broke the connection.
        public static var connectionReset: Code { Code(.connectionReset) }
        /// The peer closed the connection before a whole head came.
        public static var connectionClosed: Code { Code(.connectionClosed) }
        /// The body ended early.
        public static var incompleteBody: Code { Code(.incompleteBody) }
        /// Likewise; `expected` is `nil` where no length was announced.
        public static func incompleteBody(expected: Int64?, got: Int64) -> Code {
            Code(.incompleteBody, .lengths(expected, got))
        }
        /// The answer breaks the rules of HTTP.
        public static var malformedResponse: Code { Code(.malformedResponse) }
        /// Likewise, in this part.
        public static func malformedResponse(_ part: ResponsePart) -> Code { made(.malformedResponse, part) }
        /// The head is larger than allowed.
        public static var headersTooLarge: Code { Code(.headersTooLarge) }
        /// Likewise, by this measure.
        public static func headersTooLarge(_ measure: HeadMeasure) -> Code { made(.headersTooLarge, measure) }
        /// The body is larger than allowed.
        public static var responseTooLarge: Code { Code(.responseTooLarge) }
        /// The compressed body is damaged.
        public static var contentDecoding: Code { Code(.contentDecoding) }
        /// Likewise, in this way.
        public static func contentDecoding(_ fault: DecodingFault) -> Code { made(.contentDecoding, fault) }
        /// More redirects than allowed.
        public static var tooManyRedirects: Code { Code(.tooManyRedirects) }
        /// A redirect that is not followed.
        public static var redirectForbidden: Code { Code(.redirectForbidden) }
        /// Likewise, for this cause.
        public static func redirectForbidden(_ fault: RedirectFault) -> Code { made(.redirectForbidden, fault) }
        /// The body cannot be sent a second time.
        public static var bodyNotReplayable: Code { Code(.bodyNotReplayable) }
        /// The stream of HTTP/2 was ended.
        public static var http2Stream: Code { Code(.http2Stream) }
        /// Likewise, with this error code.
        public static func http2Stream(_ fault: HTTP2Fault) -> Code { made(.http2Stream, fault) }
        /// What came is not the rest of what is there.
        public static var resumeMismatch: Code { Code(.resumeMismatch) }
        /// The file that was downloaded is not the one that was expected.
        public static var contentMismatch: Code { Code(.contentMismatch) }
        /// Likewise, by this measure.
        public static func contentMismatch(_ measure: FileMeasure) -> Code { made(.contentMismatch, measure) }
        /// A file could not be written or read.
        public static var fileIO: Code { Code(.fileIO) }
        /// The source of the body failed.
        public static var uploadSource: Code { Code(.uploadSource) }
        /// The server has responded, and does not take the rest of the body.
        public static var uploadStopped: Code { Code(.uploadStopped) }
        /// The status was not accepted.
        public static var invalidStatusCode: Code { Code(.invalidStatusCode) }
        /// Likewise, this one.
        public static func invalidStatusCode(_ status: Int) -> Code { Code(.invalidStatusCode, .number(status)) }
        /// Any of these, as `catch .invalidStatusCode(500...599)` has it. A pattern: no error has this code itself.
        public static func invalidStatusCode(_ statuses: ClosedRange<Int>) -> Code {
            Code(.invalidStatusCode, .numbers(statuses))
        }
        /// The body is of a content type that was not asked for.
        public static var invalidContentType: Code { Code(.invalidContentType) }
        /// The body is not JSON.
        public static var invalidJSON: Code { Code(.invalidJSON) }
        /// The body is not as its schema says.
        public static var schemaMismatch: Code { Code(.schemaMismatch) }
        /// The body could not be made into the value.
        public static var decoding: Code { Code(.decoding) }
        /// The application's own code threw.
        public static var applicationError: Code { Code(.applicationError) }
        /// The cache had no answer, and the network was not to be asked.
        public static var notCached: Code { Code(.notCached) }
        /// Likewise, for this reason.
        public static func notCached(_ miss: CacheMiss) -> Code { made(.notCached, miss) }
        /// The run was cancelled.
        public static var cancelled: Code { Code(.cancelled) }
        /// The agent has been shut down.
        public static var shutdown: Code { Code(.shutdown) }
        /// As many runs wait as may.
        public static var queueFull: Code { Code(.queueFull) }
        /// Out of memory, or the system or libcurl refused what they must not refuse; see the message.
        public static var internalError: Code { Code(.internalError) }
    }
}

extension RequestError {
    /// Whether this is what happened. A code without its finer cause stands for every cause: `error.is(.timeout)`,
    /// `error.is(.timeout(.deadline))`, `error.is(.invalidStatusCode(500...599))`.
    public func `is`(_ code: Code) -> Bool { code ~= self.code }
}

extension RequestError.Code {
    /// The part of a request that cannot be sent.
    public enum RequestPart: String, Sendable, Hashable, CaseIterable {
        /// Not a token.
        case method
        /// Not a token.
        case headerName
        /// A control character other than a tab.
        case headerValue
        /// A `Content-Length` that is not the body's, or a `Transfer-Encoding`.
        case framing
        /// Not JSON.
        case arguments
        /// Cannot be encoded.
        case body
    }

    /// Why a name was not found.
    public enum DNSFault: String, Sendable, Hashable, CaseIterable {
        /// There is none.
        case notFound
        /// The servers could not say.
        case temporary
        /// Any other cause.
        case failed
    }

    /// Why there is no connection.
    public enum ConnectFault: String, Sendable, Hashable, CaseIterable {
        /// Nobody listens.
        case refused
        /// No way there.
        case unreachable
        /// Any other cause.
        case failed
    }

    /// Why a proxy is of no use.
    public enum ProxyFault: String, Sendable, Hashable, CaseIterable {
        /// It wants other credentials, or any (407).
        case authRequired
        /// It does not lead there: its status is the error's.
        case refused
        /// Its name was not found, or nobody listens.
        case unreachable
        /// It broke off, or its SOCKS reply said no.
        case handshake
        /// What the configuration says of it makes no sense.
        case configuration
    }

    /// Why a stream of HTTP/2 was ended: its error code (RFC 9113, section 7).
    public enum HTTP2Fault: String, Sendable, Hashable, CaseIterable {
        /// Certainly not processed.
        case refused
        /// The server lost interest.
        case cancel
        /// The server failed.
        case `internal`
        /// The server wants fewer requests.
        case enhanceYourCalm
        /// Any other code.
        case other
    }

    /// Why there is no trust.
    public enum TLSFault: String, Sendable, Hashable, CaseIterable {
        /// The certificate is of another time.
        case expired
        /// The certificate is another host's.
        case hostname
        /// No known authority stands behind it.
        case untrusted
        /// None of the pinned keys.
        case pinMismatch
        /// No agreement, or no TLS.
        case handshake
        /// Our own files or options cannot be used.
        case configuration
    }

    /// What took too long.
    public enum TimeoutPart: String, Sendable, Hashable, CaseIterable {
        /// Its wait in the queue.
        case queue
        /// The look-up of the name.
        case dns
        /// The connection.
        case connect
        /// The TLS handshake.
        case tls
        /// The sending: the peer does not read.
        case write
        /// The head of the answer.
        case responseHead
        /// The body: nothing came for the idle time.
        case read
        /// The rate was too low for too long.
        case lowSpeed
        /// The exchange as a whole.
        case total
        /// Everything, the queue included.
        case deadline
    }

    /// The part of an answer that breaks the rules.
    public enum ResponsePart: String, Sendable, Hashable, CaseIterable {
        /// The first line.
        case statusLine
        /// A header field.
        case header
        /// A `Content-Length`.
        case length
        /// Two lengths that differ.
        case conflictingLength
        /// A `Transfer-Encoding`.
        case transferEncoding
        /// The chunks.
        case chunk
        /// A field after the body.
        case trailer
        /// Another protocol, which nobody asked for.
        case upgrade
    }

    /// What of a head was too much.
    public enum HeadMeasure: String, Sendable, Hashable, CaseIterable {
        /// Its bytes.
        case bytes
        /// Answers before the answer (1xx).
        case informational
    }

    /// Why a redirect is not followed.
    public enum RedirectFault: String, Sendable, Hashable, CaseIterable {
        /// Neither to http nor to https.
        case scheme
        /// From https to http.
        case downgrade
        /// The rule of the policy refused it.
        case policy
        /// It points to what is no URL, or to two places at once.
        case invalidLocation
    }

    /// What of a downloaded file is not as expected.
    public enum FileMeasure: String, Sendable, Hashable, CaseIterable {
        /// Its length.
        case length
        /// Its SHA-256.
        case sha256
    }

    /// How a compressed body is damaged.
    public enum DecodingFault: String, Sendable, Hashable, CaseIterable {
        /// It ends early.
        case truncated
        /// It is wrong.
        case corrupt
    }
}
