import FaultTable
import Ferry
import FerryTesting
import Glibc
import Testing

@testable import FerryTestSupport

/// What distinguishes one stored response from another.
@Suite(.faultTable) struct CacheKeyTests {
    private let bench = CacheBench()

    /// Whether the second request gets the response that the first one stored.
    private func share(
        _ first: Kept, _ second: Kept, _ change: @escaping (inout NetworkConfiguration) -> Void = { _ in }
    ) async throws -> Bool {
        let bench = CacheBench()
        let agent = bench.agent(counting(), change)
        _ = try await agent.send(first)
        let shared = try await agent.send(second).isFromCache
        #expect(try await agent.send(second).isFromCache)
        await agent.shutdown()
        return shared
    }

    @Test func theSameRequestIsTheSame() async throws {
        #expect(try await share(Kept(), Kept()))
        #expect(try await share(Kept(headers: ["X-A": "1"]), Kept(headers: ["X-A": "2"])))
        #expect(try await share(Kept(arguments: ["a": 1, "b": 2]), Kept(arguments: ["b": 2, "a": 1])))
    }

    @Test func methodPathBaseAndCDNTellRequestsApart() async throws {
        #expect(try await !share(Kept(), Kept(method: .put)))
        #expect(try await !share(Kept(), Kept(path: "/y")))
        #expect(try await !share(Kept(), Kept(baseURL: "http://other")))
        #expect(try await !share(Kept(), Kept(cdnURL: "http://cdn", usesCDN: true)))
        #expect(try await share(Kept(), Kept(baseURL: "http://h")))
    }

    /// The agent sets their `Accept`.
    @Test func acceptedContentTypesTellThemApartWhereAcceptDoes() async throws {
        let stub = StubTransport { request in
            .response(headers: ["Content-Type": "text/plain"], body: request.headers["Accept"] ?? "none")
        }
        let agent = bench.agent(stub)
        for types in [nil, ["text/*"], ["text/plain"]] {
            var request = HTTPRequest(.get, "/x", as: String.self)
            request.cachePolicy = Kept().cachePolicy
            request.cacheHeaders = ["Accept"]
            request.acceptedContentTypes = types
            #expect(try await agent.send(request).value == types?.first ?? "none")
        }
        await agent.shutdown()
    }

    @Test func aBaseThatIsExchangedTellsThemApart() async throws {
        let agent = bench.agent(counting())
        _ = try await agent.send(Kept())
        agent.baseURL = "http://staging"
        #expect(try await agent.send(Kept()).cacheMiss == .notFound)
        agent.baseURL = "http://h"
        #expect(try await agent.send(Kept()).isFromCache)
        await agent.shutdown()
    }

    @Test func argumentsTellThemApartButForThoseThatDoNotCount() async throws {
        #expect(try await !share(Kept(arguments: ["page": 1]), Kept(arguments: ["page": 2])))
        #expect(try await !share(Kept(arguments: ["a": "b&c=d"]), Kept(arguments: ["a": "b", "c": "d"])))
        let first = Kept(arguments: ["page": 1, "now": 123], counts: ["page": 1])
        let second = Kept(arguments: ["page": 1, "now": 456], counts: ["page": 1])
        #expect(try await share(first, second))
        let form = Kept(method: .post, arguments: ["page": 1, "now": 1], counts: ["page": 1])
        #expect(try await share(form, Kept(method: .post, arguments: ["page": 1, "now": 2], counts: ["page": 1])))
        #expect(try await !share(form, Kept(method: .post, arguments: ["page": 2, "now": 1], counts: ["page": 2])))
    }

    @Test func argumentsAsJSONTellNumbersFromTheirText() async throws {
        func json(_ arguments: Arguments) -> Kept {
            Kept(method: .post, arguments: arguments, argumentEncoding: .json)
        }
        let pairs: [(Arguments, Arguments)] = [
            (["a": 1], ["a": "1"]), (["a": true], ["a": "true"]), (["a": .null], ["a": ""]),
            (["a": .array([])], ["b": .array([])]), (["a": .array([])], ["a": .object([:])]),
            (["a": .array([])], [:]), (["a": [1]], ["a": ["1"]]),
        ]
        for (first, second) in pairs {
            #expect(try await !share(json(first), json(second)), "\(first) \(second)")
            #expect(try await share(json(first), json(first)))
        }
        #expect(try await share(json(["a": 1, "b": 2]), json(["b": 2, "a": 1])))
    }

    @Test func argumentsThatCannotBeJSONHaveNoKey() async throws {
        let agent = bench.agent(counting())
        let request = Kept(method: .post, arguments: ["a": .number(.nan)], argumentEncoding: .json)
        #expect(await fault { try await agent.send(request) } == .invalidRequest(.arguments))
        #expect(await fault { try await agent.send(request, cache: .cacheOnly) } == .notCached(.notConfigured))
        await agent.shutdown()
    }

    @Test("R104: a response stored without verification never serves a request with verification")
    func theTrustTellsThemApart() async throws {
        let trusts: [TLSConfiguration] = [
            TLSConfiguration(), TLSConfiguration(verification: .none), TLSConfiguration(authorityFile: "/ca.pem"),
            TLSConfiguration(pinnedKeys: ["sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]),
            TLSConfiguration(minimumVersion: .v13),
        ]
        for (index, trust) in trusts.enumerated() {
            let agent = bench.agent(counting()) { $0.tls = trust }
            let request = Kept(path: "https://h/x")
            #expect(try await agent.send(request).cacheMiss == .notFound, "\(index)")
            #expect(try await agent.send(request).isFromCache, "\(index)")
            await agent.shutdown()
        }
    }

    /// As in `--cacert <(command)`, whose descriptor has the same number each time.
    @Test func authoritiesFromDescriptorsAreToldApartByTheirContent() async throws {
        let (first, second) = (try TemporaryFile([1]), try TemporaryFile([2]))
        let descriptor = open(first.path, O_RDONLY)
        let other = open(second.path, O_RDONLY)
        defer {
            close(descriptor)
            close(other)
        }
        func isCached() async throws -> Bool {
            let agent = bench.agent(counting()) {
                $0.tls = TLSConfiguration(authorityFile: "/proc/self/fd/\(descriptor)")
            }
            let reply = try await agent.send(Kept(path: "https://h/x"))
            await agent.shutdown()
            return reply.isFromCache
        }
        let before = [try await isCached(), try await isCached()]
        #expect(before == [false, true])
        #expect(dup2(other, descriptor) == descriptor)
        let after = [try await isCached(), try await isCached()]
        #expect(after == [false, true])
    }

    @Test func bodiesTellThemApart() async throws {
        #expect(try await !share(Kept(method: .post, body: .string("a")), Kept(method: .post, body: .string("b"))))
        #expect(try await share(Kept(method: .post, body: .string("a")), Kept(method: .post, body: .string("a"))))
        let object = ["a": 1, "b": 2, "c": 3, "d": 4, "e": 5]
        #expect(try await share(Kept(method: .post, body: .json(object)), Kept(method: .post, body: .json(object))))
        #expect(try await !share(Kept(method: .post, body: .json(object)), Kept(method: .post, body: .json(["a": 1]))))
        var slashes = FerryJSONEncoder()
        slashes.outputFormatting = .withoutEscapingSlashes
        let paths = ["a/b": 1]
        let (plain, own) = (RequestBody.json(paths), RequestBody.json(paths, encoder: slashes))
        #expect(try await !share(Kept(method: .post, body: plain), Kept(method: .post, body: own)))
    }

    @Test func aBodyThatWouldHaveToBeReadIsNotKept() async throws {
        let agent = bench.agent(counting())
        let body = RequestBody.stream(length: 1) {
            AsyncStream<[UInt8]> { pieces in
                pieces.yield([1])
                pieces.finish()
            }
        }
        let request = Kept(method: .post, body: body)
        #expect(try await texts(agent, request, request) == ["answer 1", "answer 2"])
        #expect(await fault { try await agent.send(request, cache: .cacheOnly) } == .notCached(.notConfigured))
        await agent.shutdown()
    }

    @Test func theHeaderFieldsThatARequestNamesTellThemApart() async throws {
        let german = Kept(headers: ["Accept-Language": "de"], cacheHeaders: ["accept-language"])
        let english = Kept(headers: ["Accept-Language": "en"], cacheHeaders: ["accept-language"])
        #expect(try await !share(german, english))
        #expect(try await share(german, german))
    }

    @Test("R104: credentials always distinguish requests") func credentialsAlwaysSeparateEntries() async throws {
        let kinds: [(Kept, Kept)] = [
            (Kept(authorization: .basic("a", "1")), Kept(authorization: .basic("b", "1"))),
            (Kept(authorization: .bearer("a")), Kept(authorization: .bearer("b"))),
            (Kept(authorization: .digest("a", "1")), Kept(authorization: .digest("b", "1"))),
            (Kept(authorization: .bearer("a")), Kept()),
            (Kept(), Kept(authorization: .bearer("a"))),
            (Kept(headers: ["Authorization": "x"]), Kept(headers: ["authorization": "y"])),
            (Kept(headers: ["Cookie": "s=1"]), Kept(headers: ["Cookie": "s=2"])),
            (Kept(headers: ["X-Api-Key": "1"]), Kept(headers: ["X-Api-Key": "2"])),
            (Kept(path: "http://a:1@h/x"), Kept(path: "http://b:1@h/x")),
            (Kept(path: "/x?token=a"), Kept(path: "/x?token=b")),
        ]
        for (first, second) in kinds {
            #expect(try await !share(first, second) { $0.sensitiveHeaders = ["X-Api-Key"] })
            #expect(try await share(first, first) { $0.sensitiveHeaders = ["X-Api-Key"] })
        }
    }

    /// Basic would send both as the user `a`.
    @Test func aUserNameWithAColonGetsNoResponseOfAnotherUser() async throws {
        let agent = bench.agent(counting())
        _ = try await agent.send(Kept(authorization: .basic("a", "b:c")))
        let other = Kept(authorization: .basic("a:b", "c"))
        #expect(await code { () throws(RequestError) in try await agent.send(other) } == .invalidRequest)
        await agent.shutdown()
    }

    @Test func credentialsOfTheConfigurationTellAgentsApart() async throws {
        let first = bench.agent(counting()) { $0.headers = ["Authorization": "Bearer a"] }
        _ = try await first.send(Kept())
        #expect(try await first.send(Kept()).isFromCache)
        await first.shutdown()
        let second = bench.agent(counting()) { $0.headers = ["Authorization": "Bearer b"] }
        #expect(try await second.send(Kept()).cacheMiss == .notFound)
        await second.shutdown()
    }

    @Test func aCompleteRequestHasAKeyToo() async throws {
        let first = Kept(prebuiltRequest: OutgoingRequest(url: "http://h/a", headers: ["Authorization": "a"]))
        let second = Kept(prebuiltRequest: OutgoingRequest(url: "http://h/a", headers: ["Authorization": "b"]))
        #expect(try await share(first, first))
        #expect(try await !share(first, second))
    }

    @Test("R107: the cache's files contain no secret of a request") func noSecretOfARequestStandsInTheFiles()
        async throws
    {
        let agent = bench.agent(counting(["Set-Cookie": "session=canary-set"])) { $0.sensitiveHeaders = ["X-Key"] }
        _ = try await agent.send(
            Kept(
                path: "/x?token=canary-token", headers: ["Cookie": "s=canary-cookie", "X-Key": "canary-key"],
                authorization: .bearer("canary-bearer"),
                cachePolicy: .timeToLive(.seconds(60), sensitiveData: "canary-sensitive", write: .synchronous)))
        #expect(bench.content.contains("answer 1"))
        #expect(!bench.content.contains("canary"))
        await agent.shutdown()
    }
}
