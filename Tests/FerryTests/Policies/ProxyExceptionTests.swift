import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct ProxyExceptionTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let exception: String
        let direct: [String]
        let proxied: [String]
        var testDescription: String { exception }
        init(_ exception: String, direct: [String], proxied: [String]) {
            (self.exception, self.direct, self.proxied) = (exception, direct, proxied)
        }
    }

    @Test(arguments: [
        Row("*", direct: ["http://h/", "https://10.0.0.1/", "http://[::1]:81/"], proxied: []),
        Row("*:81", direct: ["http://h:81/"], proxied: ["http://h/"]),
        Row(
            "example.com",
            direct: [
                "http://example.com/", "https://EXAMPLE.com:8443/", "http://a.b.example.com/", "http://example.com./",
            ],
            proxied: ["http://notexample.com/", "http://example.com.evil/", "http://com/", "http://example.co/"]),
        Row(
            ".example.com", direct: ["http://example.com/", "http://a.example.com/"],
            proxied: ["http://notexample.com/"]),
        Row("*.example.com", direct: ["http://a.example.com/"], proxied: ["http://notexample.com/"]),
        Row("Example.COM.", direct: ["http://example.com/"], proxied: ["http://h/"]),
        Row("  example.com\t", direct: ["http://example.com/"], proxied: ["http://h/"]),
        Row("example.com:8080", direct: ["http://a.example.com:8080/"], proxied: ["http://example.com/"]),
        Row("example.com:443", direct: ["https://example.com/"], proxied: ["http://example.com/"]),
        Row("localhost", direct: ["http://localhost:99/"], proxied: ["http://127.0.0.1/"]),
        Row("bücher.example", direct: ["http://xn--bcher-kva.example/", "http://BÜCHER.example"], proxied: []),
        Row(
            "10.0.0.1", direct: ["http://10.0.0.1/", "http://10.1/", "http://[::ffff:10.0.0.1]/"],
            proxied: ["http://10.0.0.2/"]),
        Row("10.0.0.1:81", direct: ["http://10.0.0.1:81/"], proxied: ["http://10.0.0.1/"]),
        Row("0.1", direct: ["http://0.0.0.1/"], proxied: ["http://10.0.0.1/"]),
        Row("::1", direct: ["http://[::1]/", "http://[0:0:0:0:0:0:0:1]/"], proxied: ["http://[::2]/"]),
        Row("[::1]", direct: ["http://[::1]:81/"], proxied: ["http://[::2]/"]),
        Row("[::1]:81", direct: ["http://[::1]:81/"], proxied: ["http://[::1]/"]),
        Row("fe80::1", direct: ["http://[fe80::1%25eth0]/"], proxied: ["http://[fe80::2]/"]),
        Row(
            "10.0.0.0/8", direct: ["http://10.255.0.1/", "http://0xA000001/"],
            proxied: ["http://11.0.0.1/", "http://a.example/"]),
        Row("10.1.2.3/8", direct: ["http://10.9.9.9/"], proxied: ["http://11.0.0.1/"]),
        Row("192.168.1.128/25", direct: ["http://192.168.1.200/"], proxied: ["http://192.168.1.127/"]),
        Row("10.0.0.1/32", direct: ["http://10.0.0.1/"], proxied: ["http://10.0.0.2/"]),
        Row("0.0.0.0/0", direct: ["http://1.2.3.4/"], proxied: ["http://[::1]/", "http://h/"]),
        Row("::/0", direct: ["http://[2001:db8::1]/", "http://1.2.3.4/"], proxied: ["http://h/"]),
        Row("fd00::/8", direct: ["http://[fdab::1]/"], proxied: ["http://[fc00::1]/"]),
        Row("[2001:db8::]/33", direct: ["http://[2001:db8:7fff::1]/"], proxied: ["http://[2001:db8:8000::1]/"]),
        Row("2001:db8::1/128", direct: ["http://[2001:db8::1]/"], proxied: ["http://[2001:db8::2]/"]),
        Row("2001:db8::/65", direct: ["http://[2001:db8::7fff:0:0:1]/"], proxied: ["http://[2001:db8::8000:0:0:1]/"]),
    ])
    func whatIsNamedIsDirect(_ row: Row) throws {
        let configuration = ProxyConfiguration.http("p", port: 1).except(row.exception)
        for url in row.direct { #expect(try ProxyConfigurationTests.route(configuration, url) == "direct", "\(url)") }
        for url in row.proxied {
            #expect(try ProxyConfigurationTests.route(configuration, url) == "http://p:1", "\(url)")
        }
    }

    @Test(arguments: [
        "", " ", ".", "..", "*.", ":80", "h:", "h:x", "h:0", "h:65536", "h:-1", "h/x", "h?x", "a@b", "a b", "<local>",
        "10.*", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/8/8", "/8", "10.0.0/8", "::/129", "h/8", "[::1",
        "[::1]x",
        "[h]", "http://h", "h\0", "10.0.0.1\0", "10.0.0.0/-1", "10.0.0.0/+8",
    ])
    func whatMakesNoSenseIsAFaultOrIgnored(_ exception: String) throws {
        let strict = ProxyConfiguration.http("p", port: 1).except("h", exception)
        #expect(try ProxyConfigurationTests.route(strict, "http://g/") == "fault")
        let lenient = ProxyConfiguration.environment(["http_proxy": "p:1", "no_proxy": "h,\(exception),g.example"])
        #expect(try ProxyConfigurationTests.route(lenient, "http://other.example/") == "http://p:1")
        #expect(try ProxyConfigurationTests.route(lenient, "http://g.example/") == "direct")
    }

    @Test func exceptionsAddUp() throws {
        let configuration = ProxyConfiguration.http("p", port: 1).except("a", "b").except(["c"])
        for host in ["a", "b", "c"] {
            #expect(try ProxyConfigurationTests.route(configuration, "http://\(host)/") == "direct")
        }
        #expect(try ProxyConfigurationTests.route(configuration, "http://d/") == "http://p:1")
    }

    @Test func exceptionGoesPastAProxyThatIsNone() throws {
        let configuration = ProxyConfiguration.url("x y").except("h")
        #expect(try ProxyConfigurationTests.route(configuration, "http://h/") == "direct")
        #expect(try ProxyConfigurationTests.route(configuration, "http://g/") == "fault")
    }
}
