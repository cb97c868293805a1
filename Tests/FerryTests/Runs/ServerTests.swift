import Ferry
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

/// The target of requests: base URL, CDN, filters, absolute URLs, and updates while the agent runs.
@Suite struct ServerTests {
    private struct Append: URLFilter {
        let text: String
        func filter(_ path: String, of request: any Request) -> String { path + text }
    }

    private struct Replace: URLFilter {
        let text: String
        func filter(_ path: String, of request: any Request) -> String { text }
    }

    private struct Tagged: URLFilter {
        func filter(_ path: String, of request: any Request) -> String { "/\(request.tag ?? "none")\(path)" }
    }

    private func page(
        _ path: String = "/x", baseURL: String? = nil, cdnURL: String? = nil, usesCDN: Bool = false
    ) -> HTTPRequest<Response> {
        var page = HTTPRequest(.get, path)
        (page.baseURL, page.cdnURL, page.usesCDN) = (baseURL, cdnURL, usesCDN)
        return page
    }

    private func configuration(_ filters: [any URLFilter] = []) -> NetworkConfiguration {
        var configuration = NetworkConfiguration(baseURL: "http://base/v1")
        configuration.cdnURL = "http://cdn/files"
        configuration.urlFilters = filters
        return configuration
    }

    private func url(of page: some Request, _ configuration: NetworkConfiguration) async throws -> String {
        let stub = StubTransport(always: .response())
        try await NetworkAgent(configuration: configuration, stub: stub).send(page)
        return try #require(stub.requests.first).url
    }

    private func refusal(of page: some Request, _ configuration: NetworkConfiguration) async -> RequestError? {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        defer { #expect(stub.requests.isEmpty) }
        do throws(RequestError) { try await agent.send(page) } catch { return error }
        return nil
    }

    // MARK: Filters

    @Test func filtersRunInTheirOrderOnOneAnothersOutput() async throws {
        let configuration = configuration([Append(text: "/a"), Tagged(), Append(text: "/b")])
        #expect(try await url(of: Get(tag: "t"), configuration) == "http://base/v1/t/x/a/b")
    }

    @Test func filtersSeeThePathAloneAndNotTheBase() async throws {
        let seen = Mutex<[String]>([])
        struct Look: URLFilter {
            let note: @Sendable (String) -> Void
            func filter(_ path: String, of request: any Request) -> String {
                note(path)
                return path
            }
        }
        let configuration = configuration([Look { path in seen.withLock { $0.append(path) } }])
        _ = try await url(of: Full(path: "/x?a=1", arguments: ["b": 2]), configuration)
        _ = try await url(of: page("", usesCDN: true), configuration)
        #expect(seen.withLock { $0 } == ["/x?a=1", ""])
    }

    @Test func absoluteURLsPassNoFilter() async throws {
        let configuration = configuration([ArgumentsFilter(["secret": "canary"])])
        #expect(try await url(of: Get("http://other/x"), configuration) == "http://other/x")
        #expect(try await url(of: page("HTTPS://other/x", usesCDN: true), configuration) == "HTTPS://other/x")
    }

    @Test(arguments: ["http://evil/x", "https://evil", "//evil/x", "http:evil", "ftp://evil/x"])
    func whatAFilterMakesStaysBelowTheBase(_ made: String) async throws {
        let url = try await url(of: Get(), configuration([Replace(text: made)]))
        #expect(url.hasPrefix("http://base/v1/"))
    }

    @Test func aFilterMayClimbNoHigherThanTheBase() async throws {
        #expect(try await url(of: Get(), configuration([Replace(text: "../../x")])) == "http://base/v1/x")
    }

    @Test func whatAFilterMakesMustBeAPath() async {
        #expect(await refusal(of: Get(), configuration([Replace(text: "a\r\nb")]))?.code == .invalidURL)
    }

    @Test func filteredArgumentsStandBeforeTheFragmentAndTheRequestsOwn() async throws {
        let configuration = configuration([ArgumentsFilter(["v": "1 2", "k": ["a"]])])
        let query = "k%5B%5D=a&v=1%202"
        #expect(try await url(of: Get(), configuration) == "http://base/v1/x?\(query)")
        #expect(try await url(of: Get("/x?q=0"), configuration) == "http://base/v1/x?q=0&\(query)")
        #expect(try await url(of: Get("/x#f?g"), configuration) == "http://base/v1/x?\(query)#f?g")
        #expect(try await url(of: Get(""), configuration) == "http://base/v1?\(query)")
        #expect(try await url(of: Full(arguments: ["a": 1]), configuration) == "http://base/v1/x?\(query)&a=1")
        #expect(try await url(of: Get(), self.configuration([ArgumentsFilter([:])])) == "http://base/v1/x")
    }

    // MARK: CDN

    @Test func theCDNTakesTheBasesPlace() async throws {
        #expect(try await url(of: page(usesCDN: true), configuration()) == "http://cdn/files/x")
        #expect(try await url(of: page(cdnURL: "http://own", usesCDN: true), configuration()) == "http://own/x")
        #expect(
            try await url(of: page(baseURL: "http://own", usesCDN: true), configuration()) == "http://cdn/files/x")
        #expect(try await url(of: page(baseURL: "http://own", cdnURL: "http://c"), configuration()) == "http://own/x")
        #expect(try await url(of: page("http://other/x", usesCDN: true), configuration()) == "http://other/x")
    }

    @Test func aMissingCDNIsInvalid() async {
        var configuration = configuration()
        configuration.cdnURL = nil
        #expect(await refusal(of: page(usesCDN: true), configuration)?.code == .invalidURL)
        configuration.cdnURL = ""
        #expect(await refusal(of: page(usesCDN: true), configuration)?.code == .invalidURL)
        configuration.cdnURL = "http://c d"
        let broken = await refusal(of: page(usesCDN: true), configuration)
        #expect(broken?.code == .invalidURL)
        #expect(broken?.url == "http://c d")
        #expect(await refusal(of: page(cdnURL: "ftp://c", usesCDN: true), configuration)?.code == .unsupportedScheme)
    }

    // MARK: Updates

    @Test func serversAreExchangedWhileTheAgentRuns() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: configuration(), stub: stub)
        #expect(agent.baseURL == "http://base/v1" && agent.cdnURL == "http://cdn/files" && agent.urlFilters.isEmpty)
        try await agent.send(Get())
        agent.baseURL = "http://other"
        try await agent.send(Get())
        agent.cdnURL = "http://other-cdn"
        try await agent.send(page(usesCDN: true))
        agent.urlFilters = [Append(text: "/a")]
        try await agent.send(Get())
        agent.urlFilters.append(Append(text: "/b"))
        try await agent.send(Get())
        #expect(agent.urlFilters.count == 2)
        agent.baseURL = nil
        #expect(await code { () throws(RequestError) in try await agent.send(Get()) } == .unsupportedScheme)
        #expect(
            stub.requests.map(\.url) == [
                "http://base/v1/x", "http://other/x", "http://other-cdn/x", "http://other/x/a", "http://other/x/a/b",
            ])
        #expect(agent.configuration.baseURL == "http://base/v1", "the configuration is what it was made with")
    }

    @Test func runsInFlightKeepTheirServer() async throws {
        let stub = StubTransport { request in
            request.number == 1 ? .hold : .response()
        }
        let agent = NetworkAgent(configuration: configuration(), stub: stub)
        let first = Task { try await agent.send(Get()).url }
        await stub.waitForHeld(1)
        agent.baseURL = "http://other"
        try await agent.send(Get())
        stub.respond(to: stub.requests[0], with: .response(status: 302, headers: ["Location": "y"]))
        #expect(try await first.value == "http://base/v1/y")
        #expect(stub.requests.map(\.url) == ["http://base/v1/x", "http://other/x", "http://base/v1/y"])
    }

    @Test func aRunThatIsSentAgainKeepsItsServer() async throws {
        let stub = StubTransport { $0.number == 1 ? .hold : .response() }
        var configuration = configuration([Tagged()])
        configuration.headers = ["Authorization": "ours"]
        configuration.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .zero)
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let outcome = Outcome<Response>()
        agent.start(Get(tag: "t"), completion: outcome.take)
        await stub.waitForHeld(1)
        agent.updateServers { servers in
            servers.baseURL = "http://other"
            servers.urlFilters = []
        }
        stub.respond(to: stub.requests[0], with: .response(status: 503))
        #expect(await outcome.code == nil)
        #expect(stub.requests.map(\.url) == ["http://base/v1/t/x", "http://base/v1/t/x"])
    }

    @Test func exchangesFromManyThreadsLoseNothing() async {
        let agent = NetworkAgent(configuration: configuration(), stub: StubTransport(always: .response()))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<400 {
                group.addTask {
                    switch number % 4 {
                    case 0: agent.baseURL = "http://base\(number)"
                    case 1: agent.cdnURL = "http://cdn\(number)"
                    case 2: agent.updateServers { $0.urlFilters.append(Append(text: "/\(number)")) }
                    default: _ = try? await agent.send(Get())
                    }
                }
            }
        }
        #expect(agent.urlFilters.count == 100, "each exchange is made of what was there")
        #expect(agent.baseURL?.hasPrefix("http://base") == true && agent.baseURL != "http://base/v1")
        #expect(agent.cdnURL?.hasPrefix("http://cdn") == true && agent.cdnURL != "http://cdn/files")
    }

    @Test func anExchangeOfAllIsSeenWhole() async {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: "http://0"), stub: stub)
        agent.urlFilters = [Append(text: "/0")]
        await withTaskGroup(of: Void.self) { group in
            for number in 1...50 {
                group.addTask {
                    agent.updateServers { servers in
                        servers.baseURL = "http://\(number)"
                        servers.urlFilters = [Append(text: "/\(number)")]
                    }
                }
                group.addTask { for _ in 0..<4 { _ = try? await agent.send(Get()) } }
            }
        }
        #expect(stub.requests.count == 200)
        for request in stub.requests {
            let parts = request.url.split(separator: "/")
            #expect(parts[1] == parts[3], "\(request.url)")
        }
    }

    // MARK: Secrets of the configuration

    private func headers(for path: String, _ configuration: NetworkConfiguration) async throws -> Headers {
        let stub = StubTransport(always: .response())
        try await NetworkAgent(configuration: configuration, stub: stub).send(Get(path))
        return try #require(stub.requests.first).headers
    }

    private var secretive: NetworkConfiguration {
        var configuration = configuration()
        configuration.headers = [
            "Authorization": "canary", "cookie": "canary", "Proxy-Authorization": "canary", "X-Api-Key": "canary",
            "Accept": "a",
        ]
        configuration.sensitiveHeaders = ["x-api-key"]
        return configuration
    }

    @Test(arguments: ["/x", "http://base/y", "HTTP://BASE/y", "http://base:80/y", "http://base", "http://cdn/y?z"])
    func secretsGoToServersOfOurOwn(_ path: String) async throws {
        #expect(try await headers(for: path, secretive).count == 5)
    }

    @Test(arguments: [
        "http://other/x", "https://base/x", "http://base:81/x", "http://base.evil/x", "http://evil/base",
        "http://evil/?http://base/", "http://base@evil/x", "http://evil#http://base/",
    ])
    func secretsDoNotGoToAbsoluteURLsOfOthers(_ path: String) async throws {
        let headers = try await headers(for: path, secretive)
        #expect(headers["Accept"] == "a")
        #expect(!headers.contains { $0.value.contains("canary") })
    }

    @Test func withoutServersOfTheConfigurationEverythingGoes() async throws {
        var configuration = secretive
        (configuration.baseURL, configuration.cdnURL) = (nil, nil)
        #expect(try await headers(for: "http://other/x", configuration).count == 5)
    }

    @Test func anExchangedBaseIsOfOurOwnToo() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: secretive, stub: stub)
        agent.baseURL = "http://staging"
        try await agent.send(Get())
        try await agent.send(Get("http://staging/x"))
        try await agent.send(Get("http://base/x"))
        #expect(stub.requests.map(\.headers.count) == [5, 5, 1])
    }
}
