import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct RunInfoTests {
    private let secret = RunInfo(
        id: 7, method: .post, url: "http://kim:canary@H:8080/x?token=canary#canary", tag: "t",
        userInfo: ["k": "canary"])

    @Test func noTextOfItShowsASecret() {
        var dumped = ""
        dump(secret, to: &dumped)
        for text in ["\(secret)", String(reflecting: secret), String(describing: secret), dumped, secret.url] {
            #expect(!text.contains("canary"), "\(text)")
        }
        #expect("\(secret)" == "request 7 POST http://H:8080/x?token=***")
        #expect("\([secret])" == "[request 7 POST http://H:8080/x?token=***]")
    }

    @Test func aGroupHasNoURLAndNoHost() {
        let batch = RunInfo(id: 3, kind: .batch, tag: "b")
        #expect(batch.url.isEmpty && batch.host.isEmpty && batch.method == nil)
        #expect("\(batch)" == "batch 3")
    }

    @Test func redactedURLsStayAsTheyAre() {
        let once = RunInfo(id: 1, url: "http://kim:canary@h/x?canary&a=canary").url
        #expect(RunInfo(id: 1, url: once).url == once)
    }

    @Test func cancelledErrorsAreTheOutcomeCancelled() {
        #expect("\(RunOutcome(RequestError(.cancelled)))" == "cancelled")
        #expect(RunOutcome(RequestError(.cancelled)).error == nil)
        #expect(RunOutcome(RequestError(.shutdown)).error?.code == .shutdown)
        #expect("\(RunOutcome.finished(status: 200, isFromCache: true))" == "finished 200 from the cache")
        #expect("\(RunOutcome.finished(status: nil, isFromCache: false))" == "finished")
        #expect(RunOutcome.finished(status: 204, isFromCache: false).status == 204)
    }
}

@Suite struct HostKeyTests {
    @Test func theSchemeIsReadInAnyCase() {
        #expect(HostKey.isSecure("https://h/") && HostKey.isSecure("HTTPS://h/"))
        for url in ["http://h/", "https+unix://%2Fs/", "https", ""] { #expect(!HostKey.isSecure(url)) }
    }

    @Test(arguments: [
        ("http://h/x", "http://h", "h"),
        ("http://h", "http://h", "h"),
        ("HTTP://Example.COM:80/x", "http://example.com", "example.com"),
        ("https://h:443?x", "https://h", "h"),
        ("https://h:80/", "https://h:80", "h:80"),
        ("http://h:8080#f", "http://h:8080", "h:8080"),
        ("http://h:/", "http://h", "h"),
        ("http://kim:canary@h:81/x", "http://h:81", "h:81"),
        ("http://a@b@h/", "http://h", "h"),
        ("http://[::1]:8080/x", "http://[::1]:8080", "[::1]:8080"),
        ("http://[::80]/x", "http://[::80]", "[::80]"),
        ("http://h\n/x", "http://h%0A", "h%0A"),
        ("h\u{1B}p://h", "h%1Bp://h", "h"),
    ])
    func spellingsOfAHostAreOne(_ url: String, _ text: String, _ authority: String) throws {
        let key = try #require(HostKey(url: url))
        #expect(key.text == text)
        #expect(key.authority == authority)
        #expect(HostKey.authority(of: url) == authority)
    }

    @Test(arguments: ["/", "?", "#", "\\", ""], 1...40)
    func theAuthorityEndsAtTheFirstOfItsEnds(_ end: String, _ length: Int) {
        let host = String(repeating: "a", count: length)
        for rest in ["", "/x", "?x", "#x", "\\x", "bcdefghijklmnop"] where end != "" || !rest.hasPrefix("b") {
            #expect(HostKey(url: "http://\(host)\(end)\(rest)")?.authority == host)
        }
    }

    @Test(arguments: [
        "", "h", "/x", "http:", "http:/h", "http://", "http:///x", "http://kim@/x", "http://:80/", "mailto:x",
    ])
    func whatHasNoHostHasNoKey(_ text: String) {
        #expect(HostKey(url: text) == nil)
        #expect(HostKey.authority(of: text) == "")
    }
}
