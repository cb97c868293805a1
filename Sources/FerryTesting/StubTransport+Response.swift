public import Ferry
import FerryTransport

extension StubTransport {
    /// An event of a request; the number is ``Request/number``.
    public enum Event: Sendable, Hashable {
        /// The request was submitted.
        case submitted(Int)
        /// It was cancelled before its response.
        case cancelled(Int)
        /// It was moved to another queue.
        case priorityChanged(Int, RequestPriority)
        /// The agent was shut down.
        case shutdown
    }

    /// How the stub responds to a request: as a server, with a failure of the network, or not yet.
    public struct Response: Sendable {
        private enum Kind: Sendable {
            case hold
            case response(head: [UInt8], body: [UInt8])
            case failure(TransferFailure, TransferPhase, mayHaveBeenProcessed: Bool)
        }

        private let kind: Kind

        /// Holds the request until the test responds to it with ``StubTransport/respond(to:with:)``.
        public static var hold: Response { Response(kind: .hold) }

        /// A response; its head is parsed by the same rules as one from the network.
        public static func response(status: Int = 200, headers: Headers = Headers(), body: [UInt8]) -> Response {
            var head = "HTTP/1.1 \(status) \r\n"
            for field in headers { head += "\(field.name): \(field.value)\r\n" }
            return Response(kind: .response(head: Array((head + "\r\n").utf8), body: body))
        }

        /// A response with a text body.
        public static func response(status: Int = 200, headers: Headers = Headers(), body: String = "") -> Response {
            response(status: status, headers: headers, body: Array(body.utf8))
        }

        /// A redirect to a relative or an absolute URL.
        public static func redirect(
            to location: String, status: Int = 302, headers: Headers = Headers()
        ) -> Response {
            var headers = headers
            headers.append("Location", location)
            return response(status: status, headers: headers)
        }

        /// A failure of the network, in the phase in which it usually occurs: `.connect(.refused)` before the request
        /// is sent, `.connectionReset` while its response is awaited, `.incompleteBody` in the body. From the phase
        /// follows whether the server may have processed the request (`RequestError.mayHaveBeenProcessed`), unless
        /// you say so; it decides about retries. A code that no transport can produce, like `decoding`, ends the
        /// process. A detail that none can produce is left out.
        public static func failure(_ code: RequestError.Code, mayHaveBeenProcessed: Bool? = nil) -> Response {
            guard let failure = TransferFailure(code) else {
                preconditionFailure("no transport ends with \(code)")
            }
            let phase = phase(of: code)
            // A server refuses a stream before it processes it (RFC 9113, 8.7).
            let wasSent = phase.rawValue > TransferPhase.tls.rawValue && code != .http2Stream(.refused)
            return Response(kind: .failure(failure, phase, mayHaveBeenProcessed: mayHaveBeenProcessed ?? wasSent))
        }

        private static func phase(of code: RequestError.Code) -> TransferPhase {
            switch code {
            case .queueFull, .timeout(.queue), .invalidURL, .unsupportedScheme, .invalidRequest: .queued
            case .dns, .timeout(.dns): .dns
            case .connect, .proxy, .addressForbidden, .timeout(.connect): .connect
            case .tls, .timeout(.tls): .tls
            case .incompleteBody, .responseTooLarge, .contentDecoding, .timeout(.read), .timeout(.lowSpeed): .body
            default: .waitHead
            }
        }

        /// A failure of the network with a message.
        static func failure(_ failure: TransferFailure) -> Response {
            Response(kind: .failure(failure, .connect, mayHaveBeenProcessed: false))
        }

        /// The result; `nil` for a request that is held.
        func result(_ id: TransferID) -> TransferResult? {
            switch kind {
            case .hold: return nil
            case .failure(let failure, let phase, let mayHaveBeenProcessed):
                return TransferResult(
                    id: id, failure: failure, phase: phase, mayHaveBeenProcessed: mayHaveBeenProcessed)
            case .response(let head, let body):
                do throws(TransferFailure) {
                    return try TransferResult(id: id, head: head, body: body)
                } catch {
                    return TransferResult(id: id, failure: error, phase: .head)
                }
            }
        }
    }
}

extension TransferFailure {
    /// The core's code for a public code, with the first cause that fits.
    fileprivate init?(_ code: RequestError.Code) {
        for raw in stride(from: Int32(-1), through: -64, by: -1) {
            guard let found = Code(rawValue: raw) else { continue }
            for detail in Int32(0)...64 {
                guard let detail = Detail(rawValue: detail) else { continue }
                let failure = TransferFailure(found, detail)
                if RequestError.Code(failure) == code {
                    self = failure
                    return
                }
            }
        }
        for raw in stride(from: Int32(-1), through: -64, by: -1) {
            guard let found = Code(rawValue: raw) else { continue }
            if RequestError.Code(TransferFailure(found)).name == code.name {
                self = TransferFailure(found)
                return
            }
        }
        return nil
    }
}

extension StubTransport {
    /// A request in the form in which it would be sent.
    public struct Request: Sendable, Identifiable {
        /// The number, 1 for the first request.
        public internal(set) var number: Int

        /// The same as ``number``.
        public var id: Int { number }

        /// The URL, absolute and escaped.
        public let url: String
        /// The method, as it would be sent.
        public let method: HTTPMethod
        /// The fields that Ferry sets. The transport adds others, such as `User-Agent` and `Content-Length`.
        public let headers: Headers
        /// The whole body; empty if there is none. A body from a file or a stream is here once it is complete.
        public internal(set) var body: [UInt8]
        /// Whether a body would be announced, even an empty one.
        public let hasBody: Bool
        /// The queue it is in, at the moment.
        public internal(set) var priority: RequestPriority
        /// Whether it may be sent again.
        public let isIdempotent: Bool
        /// The timeouts.
        public let timeouts: Timeouts
        /// The credential for the server's challenges. Credentials that are sent without a challenge are in the
        /// headers.
        public let credential: Credential?

        /// The body decoded as UTF-8.
        public var text: String { String(decoding: body, as: UTF8.self) }

        /// The timeouts of a request, in milliseconds; `nil` = none.
        public struct Timeouts: Sendable, Hashable {
            /// The limit for connecting.
            public let connect: Int?
            /// The limit for a time without a byte.
            public let idle: Int?
            /// The limit for the exchange.
            public let total: Int?
            /// The limit for everything, including the time in the queue.
            public let deadline: Int?
        }

        init(_ request: borrowing TransferRequest) {
            func bound(_ value: UInt32) -> Int? { value == 0 ? nil : Int(value) }
            number = 0
            url = request.url
            method = HTTPMethod(request.method)
            headers = Headers(request.allHeaders)
            isIdempotent = request.isIdempotent
            credential = request.credentials.map { Credential(user: $0.user, password: $0.password) }
            timeouts = Timeouts(
                connect: bound(request.timeouts.connect), idle: bound(request.timeouts.idle),
                total: bound(request.timeouts.total), deadline: bound(request.timeouts.deadline))
            switch request.body {
            case .none: (body, hasBody) = ([], false)
            case .bytes(let bytes): (body, hasBody) = (bytes, true)
            case .data(let data): (body, hasBody) = (Array(data), true)
            case .pull: (body, hasBody) = ([], true)
            }
            switch request.ring {
            case .low: priority = .low
            case .normal: priority = .normal
            case .high: priority = .high
            }
        }
    }
}
