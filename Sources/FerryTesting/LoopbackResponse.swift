/// The answer of a handler.
///
/// ```swift
/// LoopbackResponse(status: 201, headers: ["Location": "/orders/7"], text: "made")
/// ```
public struct LoopbackResponse: Sendable, Equatable {
    /// The status, 200 … 999.
    public var status: Int
    /// What stands behind the status; nil for the usual words.
    public var reason: String?
    /// Fields, sent as they are. `Content-Length` is added unless it or `Transfer-Encoding` is among them, so a handler
    /// can lie about its body. `Connection: close` closes behind the answer.
    public var headers: LoopbackHeaders
    /// The body; left out in the answer to HEAD.
    public var body: [UInt8]

    /// Makes an answer.
    public init(status: Int = 200, reason: String? = nil, headers: LoopbackHeaders = [:], body: [UInt8] = []) {
        self.status = status
        self.reason = reason
        self.headers = headers
        self.body = body
    }

    /// Makes an answer of text, as `text/plain` unless the headers say otherwise.
    public init(status: Int = 200, headers: LoopbackHeaders = [:], text: String) {
        self.init(status: status, headers: headers, body: Array(text.utf8))
        if headers["Content-Type"] == nil { self.headers["Content-Type"] = "text/plain; charset=utf-8" }
    }

    /// Makes an answer of JSON text.
    public init(status: Int = 200, headers: LoopbackHeaders = [:], json: String) {
        self.init(status: status, headers: headers, body: Array(json.utf8))
        self.headers["Content-Type"] = "application/json"
    }
}
