import Testing

@testable import Ferry

@Suite struct URLJoinerTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let base: String
        let path: String
        let url: String
        var testDescription: String { "\(base) + \(path)" }
        init(_ base: String, _ path: String, _ url: String) { (self.base, self.path, self.url) = (base, path, url) }
    }

    @Test(arguments: [
        Row("http://h", "", "http://h/"),
        Row("http://h/", "", "http://h/"),
        Row("http://h", "/", "http://h/"),
        Row("http://h", "foo", "http://h/foo"),
        Row("http://h", "/foo", "http://h/foo"),
        Row("http://h/v1", "foo", "http://h/v1/foo"),
        Row("http://h/v1", "/foo", "http://h/v1/foo"),
        Row("http://h/v1/", "foo", "http://h/v1/foo"),
        Row("http://h/v1/", "/foo", "http://h/v1/foo"),
        Row("http://h/v1", "", "http://h/v1"),
        Row("http://h/v1/", "", "http://h/v1/"),
        Row("http://h/v1", "/", "http://h/v1/"),
        Row("http://h/v1", "?q=1", "http://h/v1?q=1"),
        Row("http://h", "?q=1", "http://h/?q=1"),
        Row("http://h/v1", "../x", "http://h/v1/x"),
        Row("http://h/v1", "../../../x", "http://h/v1/x"),
        Row("http://h/v1", "a/../b", "http://h/v1/b"),
        Row("http://h/v1", "a/./b/..", "http://h/v1/a/"),
        Row("http://h/v1", "..", "http://h/v1/"),
        Row("http://h/v1", "%2e%2E/x", "http://h/v1/x"),
        Row("http://h/v1", ".%2e/x", "http://h/v1/x"),
        Row("http://h/v1", ".well-known/x", "http://h/v1/.well-known/x"),
        Row("http://h/v1", "...", "http://h/v1/..."),
        Row("http://h", "a%2Fb", "http://h/a%2Fb"),
        Row("http://h", "100%", "http://h/100%25"),
        Row("http://h", "ü/日", "http://h/%C3%BC/%E6%97%A5"),
        Row("http://h", "a b", "http://h/a%20b"),
        Row("http://h", "a[1]\"<>\\^`{|}", "http://h/a%5B1%5D%22%3C%3E%5C%5E%60%7B%7C%7D"),
        Row("http://h", "a;b=1,c:d@e!$&'()*+", "http://h/a;b=1,c:d@e!$&'()*+"),
        Row("http://h", "x?q=ü z&a[]=1", "http://h/x?q=%C3%BC%20z&a%5B%5D=1"),
        Row("http://h", "x?a=b?c/d", "http://h/x?a=b?c/d"),
        Row("http://h", "x?", "http://h/x?"),
        Row("http://h", "x#part", "http://h/x#part"),
        Row("http://h", "x?q=1#a?b", "http://h/x?q=1#a?b"),
        Row("http://h", "//evil/x", "http://h//evil/x"),
        Row("http://h", "foo:bar", "http://h/foo:bar"),
        Row("http://h/v1?k=1", "x", "http://h/v1/x?k=1"),
        Row("http://h/v1?k=1", "x?q=2", "http://h/v1/x?k=1&q=2"),
        Row("http://h/v1#top", "x", "http://h/v1/x"),
        Row("http://[::1]:80/v1", "x", "http://[::1]:80/v1/x"),
        Row("http://h/ü", "x", "http://h/%C3%BC/x"),
        Row("HTTPS://H:443", "x", "HTTPS://H:443/x"),
        Row("http://h", "http://other/x", "http://other/x"),
        Row("http://h", "https://other", "https://other/"),
        Row("http://h", "http://other?x=1", "http://other/?x=1"),
        Row("http://h", "http://other/a/../b?x#f", "http://other/a/../b?x#f"),
        Row("http://h", "http://other/%2F/ü", "http://other/%2F/%C3%BC"),
    ])
    func joins(_ row: Row) throws {
        let base = try BaseURL(row.base)
        #expect(try URLJoiner.join(row.path, to: base).url == row.url)
    }

    @Test(arguments: [
        "http://h/a b", "http://h/\r\nX: y", "http://h/\0", "http:// h/", "http://", "http:///x", "http://:80/x",
        "http://h:x/", "http://h:65536/", "http://h:123456/", "http://good\\@evil/x", "http://[::1/x", "http://[]/x",
        "http://user@/x", "http:foo", "", "http://h/\u{7F}", "http://h<x>/",
    ])
    func whatIsNoURLIsInvalid(_ text: String) {
        #expect(throws: URLFault.invalid) { try URLJoiner.join(text, to: nil) }
    }

    @Test(arguments: [
        "file:///etc/passwd", "gopher://h/x", "dict://h/x", "ftp://h/x", "example.com/x", "/x", "localhost:80/x",
        "httpx://h/", "ws://h/",
    ])
    func otherSchemesAreUnsupported(_ text: String) {
        #expect(throws: URLFault.unsupportedScheme) { try URLJoiner.join(text, to: nil) }
    }

    @Test(arguments: ["a\rb", "a\nb", "a\0b", "x?\u{1}", "x\u{7F}"])
    func controlBytesOfAPathAreInvalid(_ path: String) throws {
        let base = try BaseURL("http://h")
        #expect(throws: URLFault.invalid) { try URLJoiner.join(path, to: base) }
    }

    @Test(arguments: ["http://h /", "http://h/a b", " http://h", "", "http://h\n"])
    func spaceInABaseIsInvalid(_ text: String) {
        #expect(throws: URLFault.invalid) { try BaseURL(text) }
    }

    @Test func userinfoIsTakenOut() throws {
        let joined = try URLJoiner.join("http://kim:p%40ss:w@h:80/x?y=a@b", to: nil)
        #expect(joined == JoinedURL(url: "http://h:80/x?y=a@b", credentials: .basic("kim", "p@ss:w")))
        let base = try BaseURL("https://kim@h/v1")
        #expect(try URLJoiner.join("x", to: base).credentials == .basic("kim", ""))
        #expect(try URLJoiner.join("x", to: base).url == "https://h/v1/x")
        #expect(try URLJoiner.join("http://other/x", to: base).credentials == nil)
    }

    @Test(arguments: [
        Row("http://h/x", "a=1", "http://h/x?a=1"),
        Row("http://h/x?", "a=1", "http://h/x?a=1"),
        Row("http://h/x?b=2", "a=1", "http://h/x?b=2&a=1"),
        Row("http://h/x?b=2&", "a=1", "http://h/x?b=2&a=1"),
        Row("http://h/x#f?g", "a=1", "http://h/x?a=1#f?g"),
        Row("http://h/x?b#f", "a=1", "http://h/x?b&a=1#f"),
        Row("http://h/x", "", "http://h/x"),
    ])
    func appendsAQuery(_ row: Row) {
        #expect(URLJoiner.append(query: Array(row.path.utf8), to: row.base) == row.url)
    }
}
