import FerryTransport
import Testing

/// libcurl's parser, without the input that it gets wrong.
@Suite struct URLPartsTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let base: String
        let reference: String
        let url: String
        var testDescription: String { "\(base) + \(reference)" }
        init(_ base: String, _ reference: String, _ url: String) {
            (self.base, self.reference, self.url) = (base, reference, url)
        }
        /// Of RFC 3986, 5.4.
        init(_ reference: String, _ url: String) { self.init("http://a/b/c/d;p?q", reference, url) }
    }

    @Test(arguments: [
        Row("g", "http://a/b/c/g"), Row("./g", "http://a/b/c/g"), Row("g/", "http://a/b/c/g/"),
        Row("/g", "http://a/g"), Row("//g", "http://g/"), Row("?y", "http://a/b/c/d;p?y"),
        Row("g?y", "http://a/b/c/g?y"), Row("#s", "http://a/b/c/d;p?q#s"), Row("g#s", "http://a/b/c/g#s"),
        Row("g?y#s", "http://a/b/c/g?y#s"), Row(";x", "http://a/b/c/;x"), Row("g;x", "http://a/b/c/g;x"),
        Row("g;x?y#s", "http://a/b/c/g;x?y#s"), Row("", "http://a/b/c/d;p?q"), Row(".", "http://a/b/c/"),
        Row("./", "http://a/b/c/"), Row("..", "http://a/b/"), Row("../", "http://a/b/"), Row("../g", "http://a/b/g"),
        Row("../..", "http://a/"), Row("../../", "http://a/"), Row("../../g", "http://a/g"),
        Row("../../../g", "http://a/g"), Row("../../../../g", "http://a/g"), Row("/./g", "http://a/g"),
        Row("/../g", "http://a/g"), Row("g.", "http://a/b/c/g."), Row(".g", "http://a/b/c/.g"),
        Row("g..", "http://a/b/c/g.."), Row("..g", "http://a/b/c/..g"), Row("./../g", "http://a/b/g"),
        Row("./g/.", "http://a/b/c/g/"), Row("g/./h", "http://a/b/c/g/h"), Row("g/../h", "http://a/b/c/h"),
        Row("g;x=1/./y", "http://a/b/c/g;x=1/y"), Row("g;x=1/../y", "http://a/b/c/y"),
        Row("g?y/./x", "http://a/b/c/g?y/./x"), Row("g?y/../x", "http://a/b/c/g?y/../x"),
        Row("g#s/./x", "http://a/b/c/g#s/./x"), Row("g#s/../x", "http://a/b/c/g#s/../x"),
    ])
    func resolvesAsTheStandardSays(_ row: Row) throws {
        #expect(try URLParts(row.base).resolving(row.reference).text == row.url)
    }

    @Test(arguments: [
        Row("http://h", "x", "http://h/x"),
        Row("http://h?q=/a/b", "x", "http://h/x"),
        Row("http://h/a?x=/b/c", "d", "http://h/d"),
        Row("http://h/a", "x?", "http://h/x?"),
        Row("http://h/a", "?", "http://h/a?"),
        Row("http://h/a?", "", "http://h/a?"),
        Row("https://h/a", "//g/y", "https://g/y"),
        Row("http://h/a", "HTTPS://G.Example:443/X", "https://g.example/X"),
        Row("http://h:8080/a", "/b", "http://h:8080/b"),
        Row("http://h/a", "  \t/b ", "http://h/b"),
        Row("http://h/a", "http://g?x", "http://g/?x"),
        Row("http://h/a", "http://g#x", "http://g/#x"),
    ])
    func resolvesReferences(_ row: Row) throws {
        #expect(try URLParts(row.base).resolving(row.reference).text == row.url)
    }

    @Test(arguments: [
        Row("http://h/a/b#f/g", "d", "http://h/a/d#f/g"),
        Row("http://h/a#f", "http://g/", "http://g/#f"),
        Row("http://h/a#f", "/b#own", "http://h/b#own"),
        Row("http://h/a#f", "/b#", "http://h/b"),
        Row("http://h/a?x#f", "", "http://h/a?x#f"),
        Row("http://h/a?x#f", "#own", "http://h/a?x#own"),
    ])
    func fragmentIsInherited(_ row: Row) throws {
        #expect(try URLParts(row.base).resolving(row.reference).text == row.url)
    }

    @Test(arguments: [
        Row("http://h/", "/ü/日 本", "http://h/%C3%BC/%E6%97%A5%20%E6%9C%AC"),
        Row("http://h/", "/a?q=ü b", "http://h/a?q=%C3%BC%20b"),
        Row("http://h/", "/a#ü b", "http://h/a#%C3%BC%20b"),
        Row("http://h/", "/\"<>^`{|}", "http://h/%22%3C%3E%5E%60%7B%7C%7D"),
        Row("http://h/", "/%2f%2F/%", "http://h/%2f%2F/%"),
        Row("http://h/", "/a[1]?b[]='x'", "http://h/a[1]?b[]='x'"),
        Row("http://h/x", #"/\evil.example/"#, "http://h/%5Cevil.example/"),
        Row("http://h/x", #"\\evil.example/"#, "http://h/%5C%5Cevil.example/"),
    ])
    func whatBrowsersEscapeIsEscaped(_ row: Row) throws {
        #expect(try URLParts(row.base).resolving(row.reference).text == row.url)
    }

    @Test(arguments: [
        "http:g", "http:/g", "http:///g", "///g", "//", "http://", "http://g h/", "//g h/", #"http://good\@evil/"#,
        #"//good\.evil/"#, "http://a@b@c/", "http://h:x/", "http://h:99999/", "http://[::1", "http://[]/",
        "http://h%00.example/", "http://h%2f/", "http://h<x>/", "http://good%%2eevil/", "http://%%36%31/",
        "http://h%ff/", "/a\r\nX: y", "/a\nb", "/a\tb", "/a\0b", "/\u{7F}",
        "http://xn--\u{FF}--.example/",
    ])
    func whatIsNoURLIsRefused(_ reference: String) throws {
        let base = try URLParts("http://h/x")
        #expect(throws: TransferFailure(.invalidURL)) { try base.resolving(reference) }
    }

    @Test(arguments: [
        "file:///etc/passwd", "ftp://h/", "gopher://h/x", "javascript:alert(1)", "mailto:a@b", "data:,x", "ws://h/",
        "localhost:80/x", "httpx://h/", "HTTP2://h/",
    ])
    func otherSchemesAreRefused(_ reference: String) throws {
        let base = try URLParts("http://h/x")
        #expect(throws: TransferFailure(.unsupportedScheme)) { try base.resolving(reference) }
        #expect(throws: TransferFailure(.unsupportedScheme)) { try URLParts(reference) }
    }

    @Test(arguments: ["", "/x", "x", "//h/x", "#f"])
    func whatHasNoSchemeHasNoParts(_ text: String) {
        #expect(throws: TransferFailure(.unsupportedScheme)) { try URLParts(text) }
    }

    @Test func hugeReferenceIsRefused() throws {
        let base = try URLParts("http://h/x")
        let long = "/" + String(repeating: "a", count: 1_000_000)
        #expect(throws: TransferFailure(.invalidURL)) { try base.resolving(long) }
        let most = try base.resolving("/" + String(repeating: "ü", count: 100_000))
        #expect(most.text.utf8.count == "http://h/".utf8.count + 600_000)
    }

    @Test func credentialsAreDropped() throws {
        let base = try URLParts("http://kim:secret@h:8080/x")
        #expect(base.hasUserinfo)
        #expect(base.text == "http://h:8080/x")
        let relative = try base.resolving("y")
        #expect(relative.text == "http://h:8080/y")
        #expect(!relative.hasUserinfo)
        let other = try base.resolving("http://u:p@g/")
        #expect(other.text == "http://g/")
        #expect(other.hasUserinfo)
        #expect(try base.resolving("//u@g/").hasUserinfo)
    }

    struct Host: Sendable, CustomTestStringConvertible {
        let url: String
        let host: String
        let port: UInt16
        var testDescription: String { url }
        init(_ url: String, _ host: String, _ port: UInt16) { (self.url, self.host, self.port) = (url, host, port) }
    }

    @Test(arguments: [
        Host("http://EXAMPLE.com/", "example.com", 80),
        Host("https://example.com", "example.com", 443),
        Host("https://example.com:8443/x", "example.com", 8443),
        Host("http://h:/x", "h", 80),
        Host("http://127.1/", "127.0.0.1", 80),
        Host("http://0x7f000001/", "127.0.0.1", 80),
        Host("http://2130706433", "127.0.0.1", 80),
        Host("http://0177.0.0.1/", "127.0.0.1", 80),
        Host("http://%65xample.com/", "example.com", 80),
        Host("http://[::FFFF:127.0.0.1]:81/", "[::ffff:127.0.0.1]", 81),
        Host("http://[0:0:0:0:0:0:0:1]/", "[::1]", 80),
        Host("http://[fe80::1%25Eth0]/", "[fe80::1%25Eth0]", 80),
        Host("http://bücher.example/", "xn--bcher-kva.example", 80),
        Host("http://FULL．example/", "full.example", 80),
    ])
    func hostIsTheOneConnectedTo(_ row: Host) throws {
        let parts = try URLParts(row.url)
        #expect(parts.host == row.host)
        #expect(parts.port == row.port)
        #expect(try URLParts(parts.text) == parts)
    }

    @Test func originIsSchemeHostAndPort() throws {
        let one = try URLParts("http://h/a")
        #expect(one.isSameOrigin(as: try URLParts("HTTP://H:80/b?c")))
        for other in ["https://h/a", "http://h:81/a", "http://g/a", "http://h./a", "https://h:80/a"] {
            #expect(!one.isSameOrigin(as: try URLParts(other)), "\(other)")
        }
    }
}

extension URLParts {
    fileprivate func resolving(_ reference: String) throws(TransferFailure) -> URLParts {
        try resolving(Array(reference.utf8))
    }
}
