import Dispatch
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// When and where the members of a request are read.
@Suite(.timeLimit(.minutes(1))) struct RequestReadsTests {
    /// Who starts a run.
    private enum Caller {
        @TaskLocal static var name = "nobody"
    }

    /// Notes each read of a member, and for whom it is.
    private final class Reads: Sendable {
        private let notes = Mutex<[String: [String]]>([:])

        func note(_ member: String) { notes.withLock { $0[member, default: []].append(Caller.name) } }
        func take() -> [String: [String]] {
            notes.withLock { notes in
                defer { notes = [:] }
                return notes
            }
        }
    }

    /// What is sent.
    private static let content: Set = [
        "path", "method", "headers", "arguments", "argumentEncoding", "body", "authorization", "acceptedEncodings",
        "idempotencyKey", "prebuiltRequest",
    ]
    /// Settings of the network that are read once, too: the first attempt and the others must agree.
    private static let once: Set = [
        "proxy", "retryPolicy", "redirectPolicy", "timeouts", "addressPolicy", "isIdempotent",
    ]
    /// Other settings.
    private static let others: Set = [
        "baseURL", "usesCDN", "deadline", "priority", "usesAuthenticator", "cachePolicy", "coalesces", "tag",
        "observers", "propagatesTrace",
    ]

    /// A request whose members all note that they are read.
    private final class Watched: BaseRequest, @unchecked Sendable {
        let reads = Reads()
        let verb: HTTPMethod
        let policy: CachePolicy
        let prebuilt: String?
        let isShared: Bool
        /// Accepts no stored response.
        let rejects: Bool

        init(
            _ verb: HTTPMethod, _ policy: CachePolicy, prebuilt: String? = nil, isShared: Bool = false,
            rejects: Bool = false
        ) {
            (self.verb, self.policy, self.prebuilt, self.isShared) = (verb, policy, prebuilt, isShared)
            self.rejects = rejects
        }

        private func read<Value>(_ member: String, _ value: Value) -> Value {
            reads.note(member)
            return value
        }

        override var path: String { read("path", "/x") }
        override var baseURL: String? { read("baseURL", nil) }
        override var usesCDN: Bool { read("usesCDN", false) }
        override var method: HTTPMethod { read("method", verb) }
        override var headers: Headers { read("headers", ["X-Caller": Caller.name]) }
        override var arguments: Arguments { read("arguments", ["a": 1]) }
        override var argumentEncoding: ArgumentEncoding { read("argumentEncoding", .query) }
        override var body: RequestBody? { read("body", verb == .get ? nil : .string("b")) }
        override var authorization: Authorization? { read("authorization", nil) }
        override var acceptedEncodings: [ContentEncoding]? { read("acceptedEncodings", nil) }
        override var idempotencyKey: IdempotencyKey? { read("idempotencyKey", .automatic) }
        override var prebuiltRequest: OutgoingRequest? {
            let body: RequestBody? = verb == .get ? nil : .string("b")
            return read("prebuiltRequest", prebuilt.map { OutgoingRequest(method: verb, url: $0, body: body) })
        }
        override var timeouts: Timeouts? { read("timeouts", nil) }
        override var deadline: Duration? { read("deadline", .seconds(50)) }
        override var priority: RequestPriority { read("priority", .high) }
        override var isIdempotent: Bool { read("isIdempotent", true) }
        override var proxy: ProxyConfiguration? { read("proxy", nil) }
        override var redirectPolicy: RedirectPolicy? { read("redirectPolicy", .follow()) }
        override var retryPolicy: RetryPolicy? { read("retryPolicy", .quick) }
        override var addressPolicy: AddressPolicy? { read("addressPolicy", nil) }
        override var usesAuthenticator: Bool { read("usesAuthenticator", true) }
        override var cachePolicy: CachePolicy { read("cachePolicy", policy) }
        // Not `arguments`, which would count as another read.
        override var cacheArguments: Arguments { Arguments() }
        override var coalesces: Bool { read("coalesces", isShared) }
        override var tag: String? { read("tag", nil) }
        override var observers: [any RequestObserver] { read("observers", []) }
        override var propagatesTrace: Bool { read("propagatesTrace", true) }

        override func value(from response: Response) throws -> Response {
            if rejects && response.isFromCache { throw Rejection() }
            return response
        }
    }

    private struct Rejection: Error {}

    private enum Start: CaseIterable {
        case awaited, closure, progress, stream, download, downloadByClosure, batch, chain, startedBatch, startedChain

        /// Whether it uses the cache.
        var usesCache: Bool { ![.progress, .stream, .download, .downloadByClosure].contains(self) }
        /// Whether a rejected hit goes on where no task of the caller is.
        var endsOnQueue: Bool { self == .closure }
    }

    private func run(_ start: Start, _ request: Watched, by agent: NetworkAgent) async throws -> Response {
        switch start {
        case .awaited: return try await agent.send(request).value
        case .closure: return try await agent.result(request, .closure).get().value
        case .progress: return try await agent.send(request, uploadProgress: { _ in }).value
        case .stream:
            let streamed = try await agent.stream(request)
            for try await _ in streamed.body {}
            return streamed.head
        case .download:
            let place = try DownloadPlace()
            return try await agent.download(request, to: .file(place.target)).response
        case .downloadByClosure:
            let (place, started) = (try DownloadPlace(), StartedDownload())
            agent.download(request, to: .file(place.target), completion: started.take)
            return try await started.file().response
        case .batch: return try await agent.send(BatchRequest([request]))[0]
        case .chain: return try await agent.send(ChainRequest(request))
        case .startedBatch:
            let outcome = Outcome<[Response]>()
            agent.start(BatchRequest([request])) { outcome.take($0.map { Reply(value: $0, response: $0[0]) }) }
            return try await outcome.result.get().value[0]
        case .startedChain:
            let outcome = Outcome<Response>()
            agent.start(ChainRequest(request)) { outcome.take($0.map { Reply(value: $0, response: $0) }) }
            return try await outcome.result.get().value
        }
    }

    /// Runs it for a caller, and checks what was read.
    private func check(
        _ start: Start, _ request: Watched, _ step: String, by agent: NetworkAgent, goesOn: Bool = false
    ) async throws {
        let context = TraceContext()
        let response = try await TraceContext.$current.withValue(context) {
            try await Caller.$name.withValue("somebody") { try await run(start, request, by: agent) }
        }
        #expect(response.status == 200, "\(start) \(step)")
        let reads = request.reads.take()
        for (member, readers) in reads {
            let isContent = Self.content.contains(member)
            if isContent || Self.once.contains(member) {
                #expect(readers.count == 1, "\(start) \(step): \(member)")
            }
            if isContent || (!goesOn && Self.once.union(Self.others).contains(member)) {
                #expect(Set(readers) == ["somebody"], "\(start) \(step): \(member)")
            }
        }
        let isPrebuilt = request.prebuilt != nil
        #expect(reads["prebuiltRequest"]?.count == 1 && (reads["path"] == nil) == isPrebuilt, "\(start) \(step)")
    }

    /// The first response of a server.
    private final class Failure: Sendable {
        private let isOver = Atomic(false)

        func isDue() -> Bool { !isOver.exchange(true, ordering: .relaxed) }
    }

    private func withAgent(
        _ change: (inout NetworkConfiguration) -> Void = { _ in },
        _ body: (LoopbackServer, NetworkAgent) async throws -> Void
    ) async throws {
        let (server, cache, failure) = (try LoopbackServer(), FaultCache(), Failure())
        server.handle("/x") { _ in
            failure.isDue()
                ? LoopbackResponse(status: 503) : LoopbackResponse(headers: ["Cache-Control": "max-age=60"], text: "t")
        }
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.cache = cache.configuration
        change(&configuration)
        let agent = NetworkAgent(configuration: configuration)
        try await body(server, agent)
        await agent.shutdown()
        withExtendedLifetime(cache) {}
    }

    @Test("The content of a request is read once, for its caller", arguments: [HTTPMethod.get, .post], [false, true])
    func readOnce(method: HTTPMethod, isPrebuilt: Bool) async throws {
        let policies: [(String, CachePolicy, isShared: Bool)] = [
            ("none", .none, false), ("shared", .none, true), ("time to live", FaultCache.policy, false),
            ("http", .http(), false), ("http, shared", .http(), true),
        ]
        for start in Start.allCases {
            for (name, policy, isShared) in policies {
                try await withAgent { server, agent in
                    let url = isPrebuilt ? server.baseURL + "/x" : nil
                    let request = Watched(method, policy, prebuilt: url, isShared: isShared)
                    // The first response is retried.
                    try await check(start, request, name, by: agent)
                    #expect(server.requests.count == 2, "\(start) \(name)")
                    let keys = server.requests.map { $0.headers["Idempotency-Key"] }
                    #expect(Set(keys).count == 1 && (keys[0] == nil) == isPrebuilt, "\(start) \(name)")
                    guard start.usesCache, policy.isOn else { return }
                    let isStored = policy.http == nil || method == .get
                    try await check(start, request, name + ", again", by: agent)
                    #expect(server.requests.count == (isStored ? 2 : 3), "\(start) \(name)")
                }
            }
        }
    }

    @Test("What a rejected hit leads to is sent with the content and the trace of its caller")
    func rejectedHit() async throws {
        for start in Start.allCases where start.usesCache {
            for (name, policy) in [("time to live", FaultCache.policy), ("http", .http())] {
                try await withAgent { server, agent in
                    try await check(start, Watched(.get, policy), name, by: agent)
                    let request = Watched(.get, policy, rejects: true)
                    try await check(start, request, name + ", rejected", by: agent, goesOn: start.endsOnQueue)
                    #expect(server.requests.count == 3, "\(start) \(name)")
                    let last = try #require(server.requests.last)
                    #expect(last.headers["traceparent"] != nil, "\(start) \(name)")
                    #expect(last.headers["X-Caller"] == "somebody", "\(start) \(name)")
                }
            }
        }
    }

    @Test("Runs with adapters read their settings for their caller")
    func adapters() async throws {
        struct Mark: RequestAdapter {
            func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
                request.headers["X-Mark"] = "m"
            }
        }
        for start in Start.allCases {
            for policy in [CachePolicy.none, FaultCache.policy, .http()] {
                try await withAgent({ $0.adapters = [Mark()] }) { server, agent in
                    try await check(start, Watched(.post, policy), "adapter", by: agent)
                    #expect(server.requests.allSatisfy { $0.headers["X-Mark"] == "m" }, "\(start)")
                }
            }
        }
    }

    @Test("A hit reads no more than its key needs")
    func hit() async throws {
        try await withAgent { server, agent in
            for policy in [FaultCache.policy, .http()] {
                let request = Watched(.get, policy)
                _ = try await agent.send(request)
                _ = request.reads.take()
                _ = try await agent.send(request)
                let reads = request.reads.take()
                for member in ["timeouts", "deadline", "retryPolicy", "proxy", "isIdempotent", "priority"] {
                    #expect(reads[member] == nil, "\(member)")
                }
            }
        }
    }

    /// Tells whether a hook runs on the processing queue.
    private struct Storing: Request {
        static let key = DispatchSpecificKey<Bool>()
        let isOnQueue = Reads()
        var path: String { "/x" }
        var cachePolicy: CachePolicy { FaultCache.policy }
        func shouldCache(_ response: Response) -> Bool {
            isOnQueue.note(DispatchQueue.getSpecific(key: Self.key) == true ? "queue" : "task")
            return true
        }
    }

    @Test("In a started group `shouldCache` is called on the processing queue", arguments: [true, false])
    func hooksOfStartedGroups(isBatch: Bool) async throws {
        try await withAgent({ $0.statusValidation = .any }) { _, agent in
            agent.core.processingQueue.setSpecific(key: Storing.key, value: true)
            let request = Storing()
            if isBatch {
                let outcome = Outcome<[Response]>()
                agent.start(BatchRequest([request])) { outcome.take($0.map { Reply(value: $0, response: $0[0]) }) }
                _ = try await outcome.result.get()
            } else {
                let outcome = Outcome<Response>()
                agent.start(ChainRequest(request)) { outcome.take($0.map { Reply(value: $0, response: $0) }) }
                _ = try await outcome.result.get()
            }
            #expect(Set(request.isOnQueue.take().keys) == ["queue"])
        }
    }
}
