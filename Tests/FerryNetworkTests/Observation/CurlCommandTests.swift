import FerryMeasurement
import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The text of commands. `CurlRunTests` run them.
@Suite struct CurlCommandTests {
    @Test func aPlainRequestIsAPlainCommand() {
        let headers: Headers = ["User-Agent": "Ferry", "Accept": "*/*"]
        #expect(
            curlCommand(url: "http://h/x", headers: headers)
                == "curl -H 'User-Agent: Ferry' -H 'Accept: */*' 'http://h/x'")
        #expect(curlCommand(url: "http://h/x") == "curl -H 'User-Agent:' -H 'Accept:' 'http://h/x'")
        #expect(curlCommand(method: .delete, url: "http://h", headers: headers).hasPrefix("curl -X DELETE -H"))
        #expect(curlCommand(method: .head, url: "http://h", headers: headers).hasPrefix("curl --head -H"))
        #expect(curlCommand(method: "it's", url: "http://h", headers: headers).hasPrefix("curl -X 'it'\\''s' -H"))
    }

    @Test func everyOptionHasItsWord() {
        var options = CurlCommand.Options()
        options.httpVersion = .http11
        options.connectTimeout = .milliseconds(1500)
        options.totalTimeout = .seconds(30)
        options.proxy = "http://kim:canary@proxy:3128"
        options.authorityFile = "/etc/my ca.pem"
        options.clientCertificate = "c.pem"
        options.clientKey = "k.pem"
        options.pinnedKeys = ["sha256//a=", "sha256//b="]
        options.isInsecure = true
        options.isCompressed = true
        options.maxRedirects = 10
        let headers: Headers = ["User-Agent": "Ferry", "Accept": "a", "Accept-Encoding": "gzip, deflate"]
        #expect(
            curlCommand(url: "https://h/", headers: headers, options: options)
                == "curl --http1.1 --connect-timeout 1.500 --max-time 30 --proxy 'http://proxy:3128'"
                + " --cacert '/etc/my ca.pem' --cert c.pem --key k.pem --pinnedpubkey 'sha256//a=;sha256//b='"
                + " --insecure --compressed --location --max-redirs 10 -H 'User-Agent: Ferry' -H 'Accept: a' 'https://h/'"
        )
        options = .init()
        for proxy in ["kim:canary@proxy:3128", "kim:can/ary@proxy:3128"] {
            options.proxy = proxy
            #expect(curlCommand(url: "https://h/", options: options).contains("--proxy 'proxy:3128'"))
        }
        options.proxy = "kim:canary@proxy:3128"
        #expect(curlCommand(url: "https://h/", options: options, redacted: false).contains("'kim:canary@proxy:3128'"))
    }

    /// `--cert FILE[:PASSWORD]`, in which a backslash protects a colon and a backslash.
    @Test func aColonInThePathOfTheCertificateBeginsNoPassword() {
        var options = CurlCommand.Options()
        options.clientCertificate = "/etc/pki/api:8443\\x.pem"
        options.clientKey = "/etc/pki/api:8443\\x.key"
        let text = curlCommand(url: "https://h/", options: options)
        #expect(text.contains(" --cert '/etc/pki/api\\:8443\\\\x.pem' --key '/etc/pki/api:8443\\x.key' "), "\(text)")
    }

    @Test func onlyTheWholeCommandNamesTheProxiesThatItDoesNotUse() {
        var options = CurlCommand.Options()
        #expect(!curlCommand(url: "http://h/").contains("--noproxy"))
        #expect(curlCommand(url: "http://h/", redacted: false).hasPrefix("curl --noproxy '*' -H"))
        options.proxy = "http://proxy:3128"
        #expect(
            curlCommand(url: "http://h/", options: options, redacted: false)
                .hasPrefix("curl --proxy 'http://proxy:3128' --noproxy '' -H"))
    }

    @Test func whatCurlWouldTakeForAPatternIsNone() {
        #expect(curlCommand(url: "http://[::1]:80/x").contains(" --globoff "))
        #expect(curlCommand(url: "http://h/a{b}").contains(" --globoff "))
        #expect(curlCommand(url: "http://h/a/../b").contains(" --path-as-is "))
        #expect(!curlCommand(url: "http://h/a").contains("--globoff"))
    }

    @Test func secretsAreLeftOutUnlessAskedFor() {
        let bodies: [CurlCommand.Body] = [
            .none, .bytes(Array("canary".utf8)), .bytes([0, 1] + Array("canary".utf8)), .file(path: "/f"), .input,
            .multipart([
                .init(name: "a", content: .bytes(Array("canary".utf8))),
                .init(name: "b", content: .bytes([0] + Array("canary".utf8)), fileName: "f", contentType: "x/y"),
                .init(name: "c", content: .file(path: "/f")),
                .init(name: "d", content: .input, headers: ["Authorization": "canary", "X-Mine": "canary"]),
            ]),
        ]
        for body in bodies {
            var options = CurlCommand.Options()
            options.proxy = "http://kim:canary@proxy"
            let command = CurlCommand(
                method: .post, url: "http://kim:canary@h/x?token=canary#canary",
                headers: [
                    "Authorization": "Basic canary", "Cookie": "a=canary", "Proxy-Authorization": "canary",
                    "X-Api-Key": "canary", "X-Mine": "canary", "Referer": "http://h/?canary",
                ], body: body, options: options, sensitiveHeaders: ["x-mine"])
            var dumped = ""
            dump(command, to: &dumped)
            for text in [command.text(), "\(command)", String(reflecting: command), dumped] {
                #expect(!text.contains("canary"), "\(text)")
            }
            #expect(command.text().contains("-H 'X-Mine: ***'"))
            #expect(command.text(redacted: false).contains("X-Mine: canary"))
        }
    }

    @Test func aRedactedBodySaysItsSize() {
        let text = curlCommand(method: .post, url: "http://h/", body: .bytes(Array("canary".utf8)))
        #expect(text.contains("--data-raw '*** (6 bytes)'"))
        #expect(curlCommand(method: .post, url: "http://h/", body: .bytes([])).contains("--data-raw ''"))
        let form = curlCommand(
            method: .post, url: "http://h/",
            body: .multipart([
                .init(name: "a", content: .bytes([1]), fileName: "x.bin", contentType: "a/b"),
                .init(name: "b", content: .file(path: "/tmp/b c")),
            ]))
        #expect(form.contains("-F 'a=***;filename=\"x.bin\";type=a/b' -F 'b=@\"/tmp/b c\"'"))
    }

    @Test(arguments: [
        ("plain", "plain"), ("", "''"), ("it's", "'it'\\''s'"), ("$(rm)`x`", "'$(rm)`x`'"), ("a\nb", "$'a\\nb'"),
        ("tab\t!'\\", "$'tab\\t\\041\\'\\\\'"), ("ä!", "'ä!'"), ("\u{202E}x", "$'\\342\\200\\256x'"),
        ("a\u{1B}1", "$'a\\0331'"), ("\u{A0}", "$'\\302\\240'"), ("\u{7F}", "$'\\177'"),
    ])
    func wordsOfAShell(_ text: String, _ word: String) { #expect(ShellText.word(text) == word) }

    @Test func noTextHasMoreThanOneLineOrAControl() {
        let text = curlCommand(
            method: .post, url: "http://h/\n\u{1B}", headers: ["A": "b\r\nc"],
            body: .bytes(Array((0...255).map { UInt8($0) })), redacted: false)
        #expect(text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value < 0x7F })
    }

    @Test func aQuotationMarkWithACombiningMarkEndsNoWord() {
        #expect(Array(ShellText.quoted("a'\u{301}; b").utf8) == Array("'a'\\''\u{301}; b'".utf8))
    }
}
