import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// The code of the article "URLs".
@Suite struct URLsExamples {
    private enum URLSigner {
        static func sign(_ path: String, _ key: Int) -> String {
            path + (path.contains("?") ? "&" : "?") + "key=\(key)"
        }
    }

    struct Photo: Request {
        typealias Value = [UInt8]
        let name: String
        var path: String { "/photos/\(name)" }
        var usesCDN: Bool { true }
        var responseFormat: ResponseFormat { .data }
    }

    struct Signature: URLFilter {
        let key: Int

        func filter(_ path: String, of request: any Request) -> String {
            URLSigner.sign(path, key)
        }
    }

    @Test func filtersRunInTheirOrderAndServersAreExchanged() async throws {
        var configuration = NetworkConfiguration(baseURL: "https://api.example.com/v1")
        configuration.cdnURL = "https://cdn.example.com"
        configuration.urlFilters = [ArgumentsFilter(["version": "1.2", "platform": "linux"]), Signature(key: 7)]
        let stub = StubTransport(always: .response(body: "x"))
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        try await agent.send(Photo(name: "1.jpg"))
        #expect(
            stub.requests.last?.url == "https://cdn.example.com/photos/1.jpg?platform=linux&version=1.2&key=7")
        agent.baseURL = "https://staging.example.com/v1"
        agent.updateServers { servers in
            servers.cdnURL = nil
            servers.urlFilters.append(ArgumentsFilter(["staging": true]))
        }
        try await agent.send(Get("/x"))
        #expect(
            stub.requests.last?.url
                == "https://staging.example.com/v1/x?platform=linux&version=1.2&key=7&staging=true")
        await agent.shutdown()
    }

    /// The table of the article.
    @Test(arguments: [
        ("http://h/v1", "foo", "http://h/v1/foo"), ("http://h/v1", "/foo", "http://h/v1/foo"),
        ("http://h/v1/", "/foo", "http://h/v1/foo"), ("http://h", "", "http://h/"), ("http://h/v1", "", "http://h/v1"),
        ("http://h/v1", "../../foo", "http://h/v1/foo"), ("http://h/v1", "a b/ü", "http://h/v1/a%20b/%C3%BC"),
        ("http://h/v1", "a%2Fb", "http://h/v1/a%2Fb"), ("http://h/v1", "http://other/x", "http://other/x"),
    ])
    func theTableIsTrue(base: String, path: String, url: String) async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: .init(baseURL: base), stub: stub)
        try await agent.send(Get(path))
        #expect(stub.requests.last?.url == url)
        await agent.shutdown()
    }
}
