import Ferry
import Testing

@testable import FerryCommand

@Suite struct ShellWordsTests {
    @Test(arguments: [
        ("curl  a\tb\n", ["curl", "a", "b"]),
        (#"'a b' "c d" e\ f"#, ["a b", "c d", "e f"]),
        (#"a'b'"c"d ''"#, ["abcd", ""]),
        (#""a\"b\\c\$d\n" 'a\b'"#, [#"a"b\c$d\n"#, #"a\b"#]),
        ("a \\\n  b\\\r\n c", ["a", "b", "c"]),
        (#"$'a\'b\n\t\u00e9\x41\\'"#, ["a'b\n\té" + "A\\"]),
        ("a#b # a comment\nc", ["a#b", "c"]),
        ("", []),
    ])
    func wordsAreAsAShellReadsThem(_ text: String, words: [String]) throws {
        #expect(try ShellWords.split(text) == words)
    }

    @Test(arguments: [
        "'a", "\"a", "$'a", "$HOME", "\"$HOME\"", "`ls`", "a | b", "a; b", "a > b", "a & b", "(a)", #"$'\q'"#,
    ])
    func whatAShellWouldDoMoreIsRefused(_ text: String) {
        #expect(throws: UsageError.self) { try ShellWords.split(text) }
    }
}

@Suite struct CurlCommandLineTests {
    private func parse(_ text: String) throws -> CurlCommandLine {
        try CurlCommandLine(text) { path in Array("file \(path)\r\n".utf8) }
    }

    private func body(_ text: String) throws -> String? {
        try parse(text).body.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func aURLIsEnough() throws {
        let line = try parse("curl example.com/a?b=1")
        #expect(line.url == "http://example.com/a?b=1" && line.method == nil && line.body == nil)
        #expect(try parse("/usr/bin/curl --url https://h/ -sS -o /dev/null").url == "https://h/")
    }

    @Test func headersMayBeAddedEmptiedAndRemoved() throws {
        let line = try parse("curl h -H 'A: b:c' -H 'B;' -H 'Accept:' -e http://from/ -b 'x=1; y=2'")
        #expect(line.headers.map(\.name) == ["A", "B", "Referer", "Cookie"])
        #expect(line.headers.map(\.value) == ["b:c", "", "http://from/", "x=1; y=2"])
        #expect(line.removed == ["accept"])
    }

    @Test func dataIsAsCurlTakesIt() throws {
        #expect(try body("curl h -d a=1 --data b=2") == "a=1&b=2")
        #expect(try body("curl h -d @f") == "file f")
        #expect(try body("curl h --data-binary @f") == "file f\r\n")
        #expect(try body("curl h --data-raw @f") == "@f")
        #expect(try body("curl h --data-urlencode 'q=a b&c' --data-urlencode '=ü'") == "q=a+b%26c&%C3%BC")
        #expect(try body("curl h --data-urlencode n@f") == "n=file+f%0D%0A")
        #expect(try body(#"curl h --json '{"a":' --json ' 1}'"#) == #"{"a": 1}"#)
        #expect(try parse("curl h --json 1").contentType == "application/json")
        #expect(try parse("curl h -d 1").contentType == "application/x-www-form-urlencoded")
    }

    @Test func dataMayGoToTheQuery() throws {
        let line = try parse("curl -G 'http://h/?x=1' -d a=1 -d b=2")
        #expect(line.url == "http://h/?x=1&a=1&b=2" && line.body == nil && line.contentType == nil)
        // The part after a fragment is not sent.
        #expect(try parse("curl -G 'http://h/?x=1#f?g' -d a=1").url == "http://h/?x=1&a=1#f?g")
        #expect(try parse("curl -G 'http://h/#?' -d a=1").url == "http://h/?a=1#?")
        #expect(try parse("curl -G 'http://h/?' -d a=1").url == "http://h/?a=1")
    }

    @Test func cookiesAreOneField() throws {
        let line = try parse("curl h -b a=1 -H 'A: b' -b 'c=2; d=3'")
        #expect(line.headers == [.init(name: "Cookie", value: "a=1;c=2; d=3"), .init(name: "A", value: "b")])
    }

    @Test func lettersMayStandTogether() throws {
        let line = try parse("curl -sSkLXPUT -m2.5 -ukim:a:b h")
        #expect(line.isInsecure && line.followsRedirects && line.method == "PUT" && line.maxTime == .milliseconds(2500))
        #expect(line.credentials == Credentials(user: "kim", password: "a:b"))
        #expect(try parse("curl -m 8.2 h").maxTime == .milliseconds(8200))
    }

    @Test func theRestOfWhatIsSupported() throws {
        let line = try parse(
            "curl h -I -A me --compressed --digest -u a:b --connect-timeout 3 -x p:8080 --noproxy x,y --cacert c -E e "
                + "--key k --http2 --tlsv1.3 --max-redirs 4 --oauth2-bearer t")
        #expect(line.wantsHead && line.userAgent == "me" && line.isCompressed && line.usesDigest)
        #expect(line.connectTimeout == .seconds(3) && line.proxy == "http://p:8080" && line.noProxy == ["x", "y"])
        #expect(line.authorities == "c" && line.certificate == "e" && line.key == "k" && line.bearer == "t")
        #expect(line.usesHTTP2 && line.requiresTLS13 && line.maxRedirects == 4)
    }

    @Test(arguments: [
        "wget h", "", "curl", "curl -s", "curl h i", "curl h --frob", "curl h -Z", "curl h -T f",
        "curl h -b jar.txt", "curl h -H nothing", "curl h -H @f", "curl h -d @-", "curl h -u kim", "curl h -m x",
        "curl 'h/[1-9]'", "curl 'h/{a,b}'", "curl h -X", "curl h | jq", "curl h --next i", "curl h --max-redirs x",
        "curl h -m 0", "curl h -m -1", "curl h -m nan", "curl h -m 1e9",
        "curl h -F a", "curl h -F a=b -d c", "curl -G h -F a=b", "curl h -F 'a=@f,g'", "curl h -F 'a=(;type=x/y'",
        "curl h -F 'a=@f;headers=\"X: y\"'", "curl h -F 'a=@-'", "curl h -F 'a=@\"f'", "curl h --retry -1",
        "curl h -U a:b", "curl h -x p -U a", "curl h -E pkcs11:x", "curl 'http://[::1]/[1-9]'", "curl 'http://[1-9]/'",
    ])
    func whatIsNotUnderstoodIsAUsageError(_ text: String) {
        #expect(throws: UsageError.self) { try parse(text) }
    }

    @Test func aCertificateMayHaveItsPassword() throws {
        let line = try parse("curl h -E 'cert.pem:pass:word'")
        #expect(line.certificate == "cert.pem" && line.keyPassword == "pass:word")
        let escaped = try parse(#"curl h -E 'c\:\x\y\\z:p'"#)
        #expect(escaped.certificate == #"c:\x\y\z"# && escaped.keyPassword == "p")
        #expect(try parse("curl h -E c --pass p").keyPassword == "p")
        let tls = try BenchOrder(curl: "curl h -E c.pem:pw --key k.pem").configuration.tls
        #expect(tls.clientCertificate?.certificateFile == "c.pem" && tls.clientCertificate?.keyFile == "k.pem")
        #expect(tls.clientCertificate?.keyPassword == "pw")
    }

    @Test func anAddressOfIPv6IsOneURL() throws {
        #expect(try parse("curl 'http://[::1]:8080/a'").url == "http://[::1]:8080/a")
        #expect(try parse("curl '[fe80::1%25lo]:80/a'").url == "http://[fe80::1%25lo]:80/a")
        #expect(try parse("curl 'http://kim:pw@[::1]/'").url == "http://kim:pw@[::1]/")
    }

    @Test func retriesProxiesAndHTTP2AreTheEngines() throws {
        let order = try BenchOrder(
            curl: "curl h --retry 3 --http2-prior-knowledge -x http://old:pw@p:8080 -U 'kim:p@w'")
        #expect(order.configuration.retryPolicy.maxAttempts == 4 && order.configuration.http2 == .priorKnowledge)
        #expect(order.configuration.proxy == .http("p", port: 8080, credential: .init(user: "kim", password: "p@w")))
        #expect(try BenchOrder(curl: "curl h").configuration.retryPolicy.maxAttempts == 1)
    }

    @Test func formsHaveParts() throws {
        #expect(
            try parse("curl h -F a=b -F 'f=@x.txt;filename=\"q;r.png\"' -F 'g=<x' --form-string 'h=@x;type=y'").form
                == [
                    CurlFormPart(string: "a=b"),
                    CurlFormPart("f=@x.txt;filename=\"q;r.png\"") { _ in [] }, CurlFormPart(string: "g=file x\r\n"),
                    CurlFormPart(string: "h=@x;type=y"),
                ])
        let part = try CurlFormPart("f=@x.txt;filename=\"q;r.png\"") { _ in [] }
        #expect(part.name == "f" && part.content == .file("x.txt") && part.filename == "q;r.png")
        #expect(part.type == "image/png")
        #expect(throws: InputError.self) { try BenchOrder(curl: "curl h -F f=@/nowhere") }
    }

    @Test func bracketsAreTakenAsTheyAreWhenToldSo() throws {
        #expect(try parse("curl -g 'http://h/?a[]=1'").url == "http://h/?a[]=1")
    }

    @Test func otherOptionsOfTheRequestAreRefusedBesideIt() async {
        for line in [["http://h/"], ["-X", "PUT"], ["-k"], ["--bearer", "t"]] {
            #expect(await Main.run(["bench", "--from-curl", "curl h"] + line) == .usage)
        }
    }
}
