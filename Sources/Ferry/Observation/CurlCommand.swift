/// An exchange as a command line of curl that makes the same one. Its text is without secrets unless they are asked
/// for.
struct CurlCommand: Sendable {
    enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// Of a range of its bytes, these alone.
        case file(path: String, range: Range<UInt64>? = nil)
        /// Comes to the command by its standard input.
        case input
        case multipart([Part])
    }

    struct Part: Sendable {
        enum Content: Sendable {
            case bytes([UInt8])
            case file(path: String)
            case input
        }

        /// curl cannot be told a name with an equals sign in it; it becomes `%3D`.
        var name: String
        var content: Content
        var fileName: String?
        var contentType: String?
        /// Further fields; curl has a word for them since 7.83.
        var headers = Headers()
    }

    enum HTTPVersion: String, Sendable {
        case http11 = "--http1.1"
        case http2 = "--http2"
        /// Without an upgrade, over plain TCP.
        case http2PriorKnowledge = "--http2-prior-knowledge"
    }

    struct Options: Sendable {
        var httpVersion: HTTPVersion?
        var connectTimeout: Duration?
        var totalTimeout: Duration?
        var proxy: String?
        var authorityFile: String?
        var clientCertificate: String?
        var clientKey: String?
        /// `sha256//…`
        var pinnedKeys: [String] = []
        var isInsecure = false
        var requiresTLS13 = false
        /// Answers a challenge of the server's.
        var digest: Credential?
        /// Whether the body is decoded; the `Accept-Encoding` is then curl's.
        var isCompressed = false
        /// Redirects are followed when this is above 0.
        var maxRedirects = 0
    }

    var method: HTTPMethod
    var url: String
    /// All that is sent, but for the fields of the framing, and for those that `isCompressed` and a multipart body
    /// bring.
    var headers: Headers
    var body: Body
    var options: Options
    /// Header fields whose values are secret, besides those known to be.
    var sensitiveHeaders: [String]

    init(
        method: HTTPMethod = .get, url: String, headers: Headers = Headers(), body: Body = .none,
        options: Options = Options(), sensitiveHeaders: [String] = []
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.options = options
        self.sensitiveHeaders = sensitiveHeaders
    }
}

// All three ways to turn a value into text, so that none of them shows a secret.
extension CurlCommand: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { text() }
    var debugDescription: String { text() }
    var customMirror: Mirror { Mirror(self, children: ["text": text()]) }
}
