extension RequestError {
    /// What happened. An open set: match with `catch .timeout` or `catch .timeout(.connect)`, and leave room for codes
    /// that come later.
    ///
    /// A code without its finer cause matches every cause, by `~=`; `==` compares all of it.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The bare word, like `incompleteBody`.
        public let name: String

        /// The finer cause in words, like `connect` of `timeout(.connect)`; `nil` where there is none.
        public var detail: String? {
            switch cause {
            case .none: nil
            case .word(let word): word
            case .number(let number): String(number)
            case .numbers(let range): "\(range.lowerBound)...\(range.upperBound)"
            case .lengths(let expected, let got): "expected: \(expected.map(String.init) ?? "unknown"), got: \(got)"
            }
        }

        private enum Cause: Sendable, Hashable {
            case none
            case word(String)
            case number(Int)
            case numbers(ClosedRange<Int>)
            case lengths(Int64?, Int64)
        }

        private let cause: Cause

        private init(_ name: String, _ cause: Cause = .none) {
            self.name = name
            self.cause = cause
        }

        /// `timeout(connect)`
        public var description: String { detail.map { "\(name)(\($0))" } ?? name }

        /// Matches an error of this code, and of this finer cause if the pattern has one.
        public static func ~= (pattern: Code, error: RequestError) -> Bool { pattern ~= error.code }

        /// Matches a code likewise.
        public static func ~= (pattern: Code, code: Code) -> Bool {
            pattern.name == code.name
                && (pattern.cause == .none || pattern.cause == code.cause || covers(pattern, code))
        }

        private static func covers(_ pattern: Code, _ code: Code) -> Bool {
            guard case .numbers(let range) = pattern.cause, case .number(let number) = code.cause else { return false }
            return range.contains(number)
        }

        private static func made<D: RawRepresentable<String>>(_ name: String, _ detail: D) -> Code {
            Code(name, .word(detail.rawValue))
        }

        /// The text is no URL.
        public static var invalidURL: Code { Code("invalidURL") }
        /// Neither http nor https, or no scheme at all.
        public static var unsupportedScheme: Code { Code("unsupportedScheme") }
        /// The request cannot be sent as it is.
        public static var invalidRequest: Code { Code("invalidRequest") }
        /// Likewise, because of this part.
        public static func invalidRequest(_ part: RequestPart) -> Code { made("invalidRequest", part) }
        /// The address policy forbids the address.
        public static var addressForbidden: Code { Code("addressForbidden") }
        /// The name was not found.
        public static var dns: Code { Code("dns") }
        /// Likewise, for this cause.
        public static func dns(_ fault: DNSFault) -> Code { made("dns", fault) }
        /// No connection.
        public static var connect: Code { Code("connect") }
        /// Likewise, for this cause.
        public static func connect(_ fault: ConnectFault) -> Code { made("connect", fault) }
        /// The proxy refused.
        public static var proxy: Code { Code("proxy") }
        /// Likewise, for this cause.
        public static func proxy(_ fault: ProxyFault) -> Code { made("proxy", fault) }
        /// No trust.
        public static var tls: Code { Code("tls") }
        /// Likewise, for this cause.
        public static func tls(_ fault: TLSFault) -> Code { made("tls", fault) }
        /// It took too long.
        public static var timeout: Code { Code("timeout") }
        /// Likewise, in this part.
        public static func timeout(_ part: TimeoutPart) -> Code { made("timeout", part) }
        /// The peer broke the connection.
        public static var connectionReset: Code { Code("connectionReset") }
        /// The peer closed the connection before a whole head came.
        public static var connectionClosed: Code { Code("connectionClosed") }
        /// The body ended early.
        public static var incompleteBody: Code { Code("incompleteBody") }
        /// Likewise; `expected` is `nil` where no length was announced.
        public static func incompleteBody(expected: Int64?, got: Int64) -> Code {
            Code("incompleteBody", .lengths(expected, got))
        }
        /// The answer breaks the rules of HTTP.
        public static var malformedResponse: Code { Code("malformedResponse") }
        /// Likewise, in this part.
        public static func malformedResponse(_ part: ResponsePart) -> Code { made("malformedResponse", part) }
        /// The head is larger than allowed.
        public static var headersTooLarge: Code { Code("headersTooLarge") }
        /// Likewise, by this measure.
        public static func headersTooLarge(_ measure: HeadMeasure) -> Code { made("headersTooLarge", measure) }
        /// The body is larger than allowed.
        public static var responseTooLarge: Code { Code("responseTooLarge") }
        /// The compressed body is damaged.
        public static var contentDecoding: Code { Code("contentDecoding") }
        /// Likewise, in this way.
        public static func contentDecoding(_ fault: DecodingFault) -> Code { made("contentDecoding", fault) }
        /// More redirects than allowed.
        public static var tooManyRedirects: Code { Code("tooManyRedirects") }
        /// A redirect that is not followed.
        public static var redirectForbidden: Code { Code("redirectForbidden") }
        /// Likewise, for this cause.
        public static func redirectForbidden(_ fault: RedirectFault) -> Code { made("redirectForbidden", fault) }
        /// The body cannot be sent a second time.
        public static var bodyNotReplayable: Code { Code("bodyNotReplayable") }
        /// The stream of HTTP/2 was ended.
        public static var http2Stream: Code { Code("http2Stream") }
        /// Likewise, with this error code.
        public static func http2Stream(_ fault: HTTP2Fault) -> Code { made("http2Stream", fault) }
        /// What came is not the rest of what is there.
        public static var resumeMismatch: Code { Code("resumeMismatch") }
        /// The file that was downloaded is not the one that was expected.
        public static var contentMismatch: Code { Code("contentMismatch") }
        /// Likewise, by this measure.
        public static func contentMismatch(_ measure: FileMeasure) -> Code { made("contentMismatch", measure) }
        /// A file could not be written or read.
        public static var fileIO: Code { Code("fileIO") }
        /// The source of the body failed.
        public static var uploadSource: Code { Code("uploadSource") }
        /// The status was not accepted.
        public static var invalidStatusCode: Code { Code("invalidStatusCode") }
        /// Likewise, this one.
        public static func invalidStatusCode(_ status: Int) -> Code { Code("invalidStatusCode", .number(status)) }
        /// Any of these, as `catch .invalidStatusCode(500...599)` has it. A pattern: no error has this code itself.
        public static func invalidStatusCode(_ statuses: ClosedRange<Int>) -> Code {
            Code("invalidStatusCode", .numbers(statuses))
        }
        /// The body is of a content type that was not asked for.
        public static var invalidContentType: Code { Code("invalidContentType") }
        /// The body is not JSON.
        public static var invalidJSON: Code { Code("invalidJSON") }
        /// The body is not as its schema says.
        public static var schemaMismatch: Code { Code("schemaMismatch") }
        /// The body could not be made into the value.
        public static var decoding: Code { Code("decoding") }
        /// The application's own code threw.
        public static var userError: Code { Code("userError") }
        /// The cache had no answer, and the network was not to be asked.
        public static var notCached: Code { Code("notCached") }
        /// Likewise, for this reason.
        public static func notCached(_ miss: CacheMiss) -> Code { made("notCached", miss) }
        /// The run was cancelled.
        public static var cancelled: Code { Code("cancelled") }
        /// The agent has been shut down.
        public static var shutdown: Code { Code("shutdown") }
        /// As many runs wait as may.
        public static var queueFull: Code { Code("queueFull") }
        /// Out of memory, or the system or libcurl refused what they must not refuse; see the message.
        public static var internalError: Code { Code("internalError") }
    }
}
