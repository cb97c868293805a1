import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct ProxyEnvironmentTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let variables: [String: String]
        let http: String
        let https: String
        var testDescription: String { variables.sorted { $0.key < $1.key }.description }
        init(_ variables: [String: String], http: String, https: String) {
            (self.variables, self.http, self.https) = (variables, http, https)
        }
    }

    @Test(arguments: [
        Row([:], http: "direct", https: "direct"),
        Row(["http_proxy": "a:1"], http: "http://a:1", https: "direct"),
        Row(["HTTP_PROXY": "a:1"], http: "http://a:1", https: "direct"),
        Row(["https_proxy": "a:1"], http: "direct", https: "http://a:1"),
        Row(["HTTPS_PROXY": "a:1"], http: "direct", https: "http://a:1"),
        Row(["all_proxy": "socks5://a"], http: "socks5://a:1080", https: "socks5://a:1080"),
        Row(["ALL_PROXY": "a:1", "https_proxy": "b:2"], http: "http://a:1", https: "http://b:2"),
        Row(["http_proxy": "a:1", "HTTP_PROXY": "b:2"], http: "http://a:1", https: "direct"),
        Row(["http_proxy": "", "HTTP_PROXY": "b:2"], http: "http://b:2", https: "direct"),
        Row(["http_proxy": "", "https_proxy": "", "all_proxy": ""], http: "direct", https: "direct"),
        Row(["http_proxy": "a:1", "no_proxy": "*"], http: "direct", https: "direct"),
        Row(["http_proxy": "a:1", "NO_PROXY": "x, h"], http: "direct", https: "direct"),
        Row(["http_proxy": "a:1", "no_proxy": "x", "NO_PROXY": "h"], http: "http://a:1", https: "direct"),
        Row(["http_proxy": "a:1", "no_proxy": ",, x\ty\nh ,"], http: "direct", https: "direct"),
        Row(["http_proxy": "a b", "https_proxy": "a:1"], http: "fault", https: "http://a:1"),
        Row(["http_proxy": "https://a:1"], http: "fault", https: "direct"),
        Row(["Http_Proxy": "a:1", "PROXY": "b:2"], http: "direct", https: "direct"),
    ])
    func variablesAreRead(_ row: Row) throws {
        let configuration = ProxyConfiguration.environment(row.variables)
        #expect(try ProxyConfigurationTests.route(configuration, "http://h/") == row.http)
        #expect(try ProxyConfigurationTests.route(configuration, "https://h/") == row.https)
    }

    /// CVE-2016-5385: a client's `Proxy` header is `HTTP_PROXY` to a CGI program.
    @Test func headerOfAClientIsNoProxy() throws {
        var variables = ["REQUEST_METHOD": "GET", "HTTP_PROXY": "evil:1"]
        #expect(try ProxyConfigurationTests.route(.environment(variables), "http://h/") == "direct")
        variables["all_proxy"] = "good:2"
        #expect(try ProxyConfigurationTests.route(.environment(variables), "http://h/") == "http://good:2")
        variables["http_proxy"] = "own:3"
        #expect(try ProxyConfigurationTests.route(.environment(variables), "http://h/") == "http://own:3")
        variables["HTTPS_PROXY"] = "secure:4"
        #expect(try ProxyConfigurationTests.route(.environment(variables), "https://h/") == "http://secure:4")
    }

    @Test func processIsAskedOnRequestOnly() {
        #expect(ProxyConfiguration.environment == .environment)
    }
}
