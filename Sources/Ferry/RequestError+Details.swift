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
