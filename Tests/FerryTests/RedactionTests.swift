import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct RedactionTests {
    @Test(arguments: [
        ("http://h/x", "http://h/x"),
        ("http://kim:canary@h/x?token=canary&b=canary#canary", "http://h/x?token=***&b=***"),
        ("https://canary@h", "https://h"),
        ("http://h/x?canary", "http://h/x?***"),
        ("http://h/@user/x", "http://h/@user/x"),
        ("http://h/x?", "http://h/x?"),
        ("http://h/x?a=1&&b", "http://h/x?a=***&&***"),
        ("http://h/é/x", "http://h/é/x"),
        ("http://h/a;jsessionid=canary;v=1/b;c", "http://h/a;jsessionid=***;v=1/b;c"),
    ])
    func urlsLoseTheirSecrets(_ url: String, _ redacted: String) { #expect(Redaction.url(url) == redacted) }

    /// Most URLs are shown without being taken apart; an empty query has each taken apart.
    @Test func aURLIsShownAsIfItHadBeenTakenApart() {
        let url = Array("https://host.test:80/a/b".utf8)
        var wrong: [String] = []
        for byte in UInt8(0)..<0x80 where byte != UInt8(ascii: "?") && byte != UInt8(ascii: "#") {
            for place in 0...url.count {
                var bytes = url
                bytes.insert(byte, at: place)
                let text = String(decoding: bytes, as: UTF8.self)
                if Redaction.url(text) + "?" != Redaction.url(text + "?") { wrong.append(text) }
            }
        }
        #expect(wrong.isEmpty, "\(wrong)")
    }

    @Test(arguments: [
        "http://kim:can/ary@h/x", "kim:canary@h/x", "http://kim:canary@h\r\nX: y/", "http://a@b@canary@h x/?t=canary",
        "canary@h",
    ])
    func brokenURLsLoseTheirSecrets(_ text: String) {
        let redacted = Redaction.url(text, isBroken: true)
        #expect(!redacted.contains("canary") && !redacted.contains("ary@"))
        #expect(!redacted.utf8.contains { $0 < 0x20 })
    }

    /// A password that was not escaped may contain what else ends it, or begins the host.
    @Test(arguments: [
        ("http://svc:canary#9@proxy:3128", "http://proxy:3128"), ("https://kim:canary#x@h/", "https://h/"),
        ("https://kim:canary?x@h/y?t=canary", "https://h/y?t=***"), ("kim:can://ary@h", "h"), ("canary://x@h/y", "h/y"),
        ("canary http://x@h/y", "h/y"), ("SOCKS5h://kim:canary#x@h", "SOCKS5h://h"), ("canary:http://x@h", "h"),
        ("<https://h/a?x>, <https://kim:canary@h/?t=1>", "<https://h/?t=***"),
        ("<https://h/a?mail=a@b.c&key=canary>; rel=next", "<https://b.c?key=***"),
        ("0; URL=http://kim:canary#@h/", "0; URL=http://h/"), ("https://h x/y?t=canary#canary", "https://h x/y?t=***"),
    ])
    func brokenURLsAreShownFromTheirHost(_ text: String, _ redacted: String) {
        #expect(Redaction.url(text, isBroken: true) == redacted)
    }

    @Test func descriptionIsOneLineWithoutSecrets() throws {
        var failure = TransferFailure(.timeout, .timeoutConnect)
        failure.curlCode = 28
        failure.message = "no connection in time"
        let error = RequestError(failure, url: "http://kim:canary@h/x?t=canary")
        #expect(
            error.description
                == "timeout(connect): no connection in time (phase preparing, http://h/x?t=***, curl 28)")
        #expect(Authorization.basic("kim", "canary").description == "Basic ***")
        #expect(Authorization.bearer("canary").description == "Bearer ***")
        #expect(!"\(Headers([.init(name: "Cookie", value: "canary")]))".contains("canary"))
    }
}
