import FerryTransport
public import FoundationEssentials

/// May answer a run by itself, without the network.
///
/// Interceptors are asked in their order, after the adapters, for every attempt of a run, redirects included, in a task
/// of the run; the first that answers is the last that is asked. An answer goes the way of one from the network:
/// redirects, retries, validation, hooks and callbacks.
public protocol RequestInterceptor: Sendable {
    /// The answer, or `nil` to pass the request on. What is thrown fails the run: a `RequestError` as it is, anything
    /// else as `userError`.
    func intercept(_ request: OutgoingRequest, of run: RunInfo) async throws -> InterceptedResponse?
}

/// An answer that came from no network.
public struct InterceptedResponse: Sendable {
    /// The status code, 200 to 999.
    public var status: Int
    /// The header fields; what is no field fails the run with `malformedResponse`.
    public var headers: Headers
    /// The body, as it is to be handed over: nothing is decoded.
    public var body: Data
    /// Whether the response calls itself one from a cache. The default is `false`.
    public var isFromCache: Bool

    /// An answer of its parts.
    public init(status: Int = 200, headers: Headers = Headers(), body: Data = Data(), isFromCache: Bool = false) {
        self.status = status
        self.headers = headers
        self.body = body
        self.isFromCache = isFromCache
    }
}

extension InterceptedResponse {
    /// Status line and fields as they would stand on the wire. A line break in a field must not make two of it.
    func head() throws(TransferFailure) -> [UInt8] {
        var head = "HTTP/1.1 \(status) \r\n"
        for field in headers {
            if (field.name + field.value).utf8.contains(where: { $0 == 0x0D || $0 == 0x0A }) {
                throw TransferFailure(.malformedResponse, .header)
            }
            head += "\(field.name): \(field.value)\r\n"
        }
        return Array((head + "\r\n").utf8)
    }
}
