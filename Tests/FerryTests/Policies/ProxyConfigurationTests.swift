import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct ProxyConfigurationTests {
    /// `direct`, the proxy's description with its credential, or `fault`.
    static func route(_ configuration: ProxyConfiguration, _ url: String) throws -> String {
        let parts = try URLParts(url)
        do throws(ProxyConfigurationFault) {
            let route = try configuration.route(isSecure: parts.isSecure, host: parts.host, port: parts.port)
            guard let route else { return "direct" }
            return route.credential.map { "\(route) \($0.user)|\($0.password)" } ?? "\(route)"
        } catch {
            return "fault"
        }
    }

    @Test func noneIsNone() throws {
        #expect(ProxyConfiguration.none.isNone)
        #expect(try Self.route(.none, "http://h/") == "direct")
        #expect(!ProxyConfiguration.http("p", port: 1).isNone)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let text: String
        let route: String
        var testDescription: String { text }
        init(_ text: String, _ route: String) { (self.text, self.route) = (text, route) }
    }

    @Test(arguments: [
        Row("http://proxy:3128", "http://proxy:3128"),
        Row("HTTP://Proxy.Example:3128/", "http://proxy.example:3128"),
        Row("proxy:3128", "http://proxy:3128"),
        Row("http://proxy", "http://proxy:80"),
        Row("http://proxy:", "http://proxy:80"),
        Row("http://proxy:80", "http://proxy:80"),
        Row("socks5://proxy", "socks5://proxy:1080"),
        Row("socks5h://proxy:80", "socks5h://proxy:80"),
        Row("socks5h://[::1]", "socks5h://[::1]:1080"),
        Row("socks5h://[::1]:9050/", "socks5h://[::1]:9050"),
        Row("http://kim:secret@proxy:3128", "http://proxy:3128 kim|secret"),
        Row("http://kim@proxy:3128", "http://proxy:3128 kim|"),
        Row("http://@proxy:3128", "http://proxy:3128"),
        Row("http://kim:p%40s%3As%2F%25@proxy", "http://proxy:80 kim|p@s:s/%"),
        Row("http://kim:a@b@proxy", "http://proxy:80 kim|a@b"),
        Row("kim:s@proxy:3128", "http://proxy:3128 kim|s"),
        Row("http://127.1:3128", "http://127.0.0.1:3128"),
        Row("http://bücher.example:3128", "http://xn--bcher-kva.example:3128"),
    ])
    func urlsAreRead(_ row: Row) throws {
        #expect(try Self.route(.url(row.text), "http://h/") == row.route)
        #expect(try Self.route(.url(row.text), "https://h/") == row.route)
    }

    @Test(arguments: [
        "", "http://", "http://:3128", "https://proxy:3128", "socks4://proxy", "ftp://proxy", "file:///etc/passwd",
        "http://proxy:x", "http://proxy:99999", "http://proxy:0", "http://proxy/path", "http://proxy?x",
        "http://pro xy",
        "http://proxy#x", "http://proxy:3128/@evil", "http://proxy\r\n:3128", "http://a:b%00@proxy",
        "http://a%3Ab:c@proxy",
        "http://a:%ff@proxy", "http://[::1", #"http://good\@evil"#, "http://proxy:3128:80", "://proxy",
    ])
    func whatIsNoProxyFailsTheRuns(_ text: String) throws {
        let configuration = ProxyConfiguration.url(text)
        #expect(!configuration.isNone)
        #expect(try Self.route(configuration, "http://h/") == "fault")
        #expect(try Self.route(configuration, "https://h/") == "fault")
        #expect(configuration.description == "http: invalid, https: invalid")
    }

    @Test func partsAreGivenOneByOne() throws {
        #expect(try Self.route(.http("::1", port: 3128), "http://h/") == "http://[::1]:3128")
        #expect(
            try Self.route(.http("Proxy", port: 80, credential: Credential(user: "u", password: "p:q")), "http://h/")
                == "http://proxy:80 u|p:q")
        #expect(try Self.route(.socks5("gate"), "http://h/") == "socks5h://gate:1080")
        #expect(try Self.route(.socks5("gate", port: 9, resolvesNames: .local), "http://h/") == "socks5://gate:9")
    }

    @Test(arguments: [
        ProxyConfiguration.http("", port: 3128), .http("proxy", port: 0), .http("proxy", port: 65536),
        .http("proxy", port: -1), .http("proxy/x", port: 1), .http("u:p@proxy", port: 1), .socks5("pro xy"),
        .http("proxy", port: 1, credential: Credential(user: "a:b", password: "")),
        .http("proxy", port: 1, credential: Credential(user: "a", password: "\0")),
        .http("proxy", port: 1, credential: Credential(user: "a\r\nX-Evil: 1", password: "")),
        .socks5("proxy", port: 1, credential: Credential(user: "a", password: "\u{7F}")),
        .http("http://proxy", port: 1),
    ])
    func partsThatAreNoProxyFailTheRuns(_ configuration: ProxyConfiguration) throws {
        #expect(try Self.route(configuration, "http://h/") == "fault")
    }

    @Test func routeIsHandedToTheTransport() throws {
        let routes = [
            try ProxyRoute(url: "http://u:p@proxy:3128"), try ProxyRoute(url: "socks5://[::1]:9"),
            try ProxyRoute(url: "socks5h://gate"),
        ]
        #expect(
            routes.map(\.transfer) == [
                TransferProxy(kind: .http, address: "proxy:3128", user: "u", password: "p"),
                TransferProxy(kind: .socks5, address: "[::1]:9"), TransferProxy(kind: .socks5h, address: "gate:1080"),
            ])
    }

    @Test func schemesHaveProxiesOfTheirOwn() throws {
        let configuration = ProxyConfiguration.schemes(http: .none, https: .http("p", port: 1).except("h"))
        #expect(try Self.route(configuration, "http://g/") == "direct")
        #expect(try Self.route(configuration, "https://g/") == "http://p:1")
        #expect(try Self.route(configuration, "https://h/") == "direct")
        let broken = ProxyConfiguration.schemes(http: .url("x y"), https: .http("p", port: 1))
        #expect(try Self.route(broken, "http://g/") == "fault")
        #expect(try Self.route(broken, "https://g/") == "http://p:1")
    }

    @Test func nothingShowsACredential() throws {
        let configurations: [ProxyConfiguration] = [
            .url("http://canary1:canary2@proxy:3128"), .url("canary1:canary2@pro xy"), .url("ftp://canary1:canary2@p"),
            .url("http://a:canary1%ff@p"), .url("http://canary1%3Ab:canary2@p"), .url("http://p:1/canary1@x"),
            .http("p", port: 1, credential: Credential(user: "canary1", password: "canary2")),
            .http("canary1:canary2@p", port: 1),
        ]
        for configuration in configurations {
            var text = "\(configuration) \(String(reflecting: configuration))"
            dump(configuration, to: &text)
            do throws(ProxyConfigurationFault) {
                let route = try configuration.route(isSecure: false, host: "h", port: 80)
                text += String(reflecting: route)
            } catch {
                text += "\(error)"
            }
            #expect(!text.contains("canary"), "\(text)")
        }
    }
}
