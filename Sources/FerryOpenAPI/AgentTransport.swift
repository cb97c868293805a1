#if OpenAPI
public import Ferry
internal import FerryHTTPTypes
public import FoundationEssentials
public import HTTPTypes
public import OpenAPIRuntime

/// A transport for clients that swift-openapi-generator has made: their requests are runs of an agent.
///
///     let client = Client(serverURL: try Servers.Server1.url(), transport: AgentTransport(agent))
///
/// All that the agent is configured for holds: timeouts, retries, credentials, observers. Every status is passed on, as
/// the client has the responses of its document. The tag of a run is the operation's id. Bodies stream in both
/// directions; the request's is sent again after a fault only where it can be read more than once. A run that fails
/// throws its `RequestError`, which the client wraps into a `ClientError`, and the body of a response, too.
public struct AgentTransport: ClientTransport {
    /// Who sends.
    public let agent: NetworkAgent

    /// A transport over `agent`, which stays the caller's to shut down.
    public init(_ agent: NetworkAgent) { self.agent = agent }

    /// Sends a request, and returns when the head of the response has come.
    public func send(
        _ request: HTTPTypes.HTTPRequest, body: HTTPBody?, baseURL: URL, operationID: String
    ) async throws -> (HTTPTypes.HTTPResponse, HTTPBody?) {
        var sent = Ferry.HTTPRequest(request, body: body.map(RequestBody.init))
        sent.path = Self.url(request.path ?? "", below: baseURL)
        sent.tag = operationID
        sent.statusValidation = .any
        let response = try await agent.stream(sent)
        return (HTTPTypes.HTTPResponse(response.head), Self.body(of: response, to: request.method))
    }

    /// The path of an operation begins with a slash, and stands below that of the server.
    private static func url(_ path: String, below base: URL) -> String {
        var text = base.absoluteString
        while text.hasSuffix("/") { text.removeLast() }
        if path.isEmpty || path.hasPrefix("/") || path.hasPrefix("?") { return text + path }
        return "\(text)/\(path)"
    }

    /// `nil` where a response has no body whatever its fields say (RFC 9110, 6.4.1).
    private static func body(of response: StreamedResponse, to method: HTTPTypes.HTTPRequest.Method) -> HTTPBody? {
        if method == .head || response.status == 204 || response.status == 304 { return nil }
        // The announced length is the coded one, and what is handed over is decoded.
        let isCoded = response.headers.contains("Content-Encoding")
        let length = isCoded ? nil : response.contentLength
        return HTTPBody(
            response.body.map { ArraySlice($0) }, length: length.map { .known($0) } ?? .unknown,
            iterationBehavior: .single)
    }
}

extension RequestBody {
    fileprivate init(_ body: HTTPBody) {
        var length: UInt64?
        if case .known(let bytes) = body.length { length = UInt64(exactly: bytes) }
        switch body.iterationBehavior {
        case .single: self = .stream(once: body, length: length)
        case .multiple: self = .stream(length: length) { body }
        }
    }
}
#endif
