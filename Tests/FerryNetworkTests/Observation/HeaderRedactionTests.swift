import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct HeaderRedactionTests {
    @Test(arguments: [
        "Authorization", "authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "Cookie2", "X-Api-Key",
        "X-Auth-Token", "X-Amz-Security-Token", "X-Client-Secret", "X-User-Password", "X-Session-Id", "X_SID",
        "Sec-WebSocket-Key", "X-CSRF-Token", "WWW-Authenticate", "Proxy-Authenticate", "X-Signature", "X-JWT",
        "Authentication-Info", "apikey", "X-Vault-Token", "X-Declared",
    ])
    func valuesOfTheseAreNeverShown(_ name: String) {
        #expect(Redaction.header(name, "canary", sensitive: ["x-declared"]) == "***")
    }

    @Test(arguments: [
        "Accept", "Content-Type", "Content-Length", "Host", "User-Agent", "ETag", "Retry-After", "Inside", "X-Spinning",
        "Keep-Alive", "Access-Control-Allow-Origin", "Date", "Range", "X-Request-Id",
    ])
    func valuesOfTheseAre(_ name: String) { #expect(Redaction.header(name, "v") == "v") }

    @Test(arguments: [
        ("Location", "http://kim:canary@h/x?code=canary#canary", "http://h/x?code=***"),
        ("location", "//kim:canary@h/x?canary", "h/x?***"),
        // To characters, the mark and the slash before it are one.
        ("Location", "//\u{301}kim:canary@h/x", "h/x"),
        ("Location", "/callback?code=canary&state=canary", "/callback?code=***&state=***"),
        ("Content-Location", "/x?t=canary", "/x?t=***"),
        ("Referer", "https://canary@h/", "https://h/"),
        ("Refresh", "5; url=http://kim:canary@h/x?t=canary", "5; url=http://h/x?t=***"),
        ("Link", "<http://h/a>; rel=next, <http://kim:canary@h/b>", "<http://h/b>"),
    ])
    func locationsLoseTheirSecrets(_ name: String, _ value: String, _ redacted: String) {
        #expect(Redaction.header(name, value) == redacted)
    }

    @Test func fieldsKeepOrderNamesAndNumber() {
        let headers: Headers = ["B": "1", "Cookie": "canary", "A": "2", "cookie": "canary"]
        #expect(Redaction.headers(headers) == ["B": "1", "Cookie": "***", "A": "2", "cookie": "***"])
    }
}
