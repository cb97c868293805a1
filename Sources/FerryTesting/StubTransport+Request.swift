public import Ferry
import FerryTransport

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
