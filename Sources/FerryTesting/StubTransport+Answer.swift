public import Ferry
import FerryTransport

extension StubTransport {
    /// What happened to a request; the number is ``Request/number``.
    public enum Event: Sendable, Hashable {
        /// It was handed over.
        case submitted(Int)
        /// It was cancelled before it was answered.
        case cancelled(Int)
        /// It was moved among those that wait.
        case priorityChanged(Int, RequestPriority)
        /// The agent was shut down.
        case shutdown
    }

    /// An answer of the script.
    public struct Answer: Sendable {
        private enum Kind: Sendable {
            case hold
            case response(head: [UInt8], body: [UInt8])
            case failure(TransferFailure, TransferPhase)
        }

        private let kind: Kind

        /// No answer until the test gives one.
        public static var hold: Answer { Answer(kind: .hold) }

        /// A response; its head is parsed by the rules for one from the wire.
        public static func response(status: Int = 200, headers: Headers = Headers(), body: [UInt8]) -> Answer {
            var head = "HTTP/1.1 \(status) \r\n"
            for field in headers { head += "\(field.name): \(field.value)\r\n" }
            return Answer(kind: .response(head: Array((head + "\r\n").utf8), body: body))
        }

        /// A response with a text as its body.
        public static func response(status: Int = 200, headers: Headers = Headers(), body: String = "") -> Answer {
            response(status: status, headers: headers, body: Array(body.utf8))
        }

        /// An answer that points elsewhere, by a relative or an absolute URL.
        public static func redirect(
            to location: String, status: Int = 302, headers: Headers = Headers()
        ) -> Answer {
            var headers = headers
            headers.append("Location", location)
            return response(status: status, headers: headers)
        }

        /// A fault of the network. Only codes that a transport can end with: `decoding`, for one, is not among them.
        public static func failure(_ code: RequestError.Code) -> Answer {
            guard let failure = TransferFailure(code) else {
                preconditionFailure("no transport ends with \(code)")
            }
            return Answer(kind: .failure(failure, .waitHead))
        }

        /// A fault of the network, in words of one's own.
        static func failure(_ failure: TransferFailure) -> Answer { Answer(kind: .failure(failure, .connect)) }

        /// `nil` when it is held back.
        func result(_ id: TransferID) -> TransferResult? {
            switch kind {
            case .hold: return nil
            case .failure(let failure, let phase): return TransferResult(id: id, failure: failure, phase: phase)
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
    /// The core's words for a code of the public face; the first cause where the code names none.
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
    /// A request as it would have gone to the network.
    public struct Request: Sendable, Identifiable {
        /// 1 for the first, and so on.
        public internal(set) var number: Int

        /// The same as ``number``.
        public var id: Int { number }

        /// Absolute and escaped.
        public let url: String
        /// The word as it would be sent.
        public let method: HTTPMethod
        /// All that Ferry sets; a `User-Agent`, a `Content-Length` and their like are the network's to add.
        public let headers: Headers
        /// All of it; empty when there is none. One that is pulled from a file or a stream stands here when it is
        /// complete.
        public internal(set) var body: [UInt8]
        /// Whether a body would be announced, also an empty one.
        public let hasBody: Bool
        /// Its place among those that wait, as it is now.
        public internal(set) var priority: RequestPriority
        /// Whether it may be sent a second time.
        public let isIdempotent: Bool
        /// In milliseconds; `nil` = none.
        public let timeouts: Timeouts
        /// What a challenge of the server would be answered with; credentials that are sent at once stand in the
        /// headers.
        public let credential: Credential?

        /// The body as text.
        public var text: String { String(decoding: body, as: UTF8.self) }

        /// The bounds of a request, in milliseconds.
        public struct Timeouts: Sendable, Hashable {
            /// For a connection.
            public let connect: Int?
            /// Without a byte.
            public let idle: Int?
            /// For the exchange.
            public let total: Int?
            /// For everything, the queue included.
            public let deadline: Int?
        }

        init(_ request: borrowing TransferRequest) {
            func bound(_ value: UInt32) -> Int? { value == 0 ? nil : Int(value) }
            number = 0
            url = request.url
            method = HTTPMethod(request.method)
            headers = Headers(request.headers)
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
