import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct CredentialChallengeTests {
    typealias Offer = CredentialChallenge.Offer

    struct Row: Sendable, CustomTestStringConvertible {
        let field: String
        let offers: [Offer]
        var testDescription: String { field }
        init(_ field: String, _ offers: Offer...) { (self.field, self.offers) = (field, offers) }
    }

    static func offer(_ scheme: String, _ parameters: [String: String] = [:], token: String? = nil) -> Offer {
        Offer(scheme: scheme, token: token, parameters: parameters)
    }

    @Test(arguments: [
        Row(#"Basic realm="the room""#, offer("Basic", ["realm": "the room"])),
        Row("Basic", offer("Basic")),
        Row("Basic realm=room", offer("Basic", ["realm": "room"])),
        Row(#"Basic realm = "room" , charset="UTF-8""#, offer("Basic", ["realm": "room", "charset": "UTF-8"])),
        Row(#"basic REALM="x""#, offer("basic", ["realm": "x"])),
        Row(#"Basic realm="a\"b\\c, d=e""#, offer("Basic", ["realm": #"a"b\c, d=e"#])),
        Row(#"Basic realm="""#, offer("Basic", ["realm": ""])),
        Row(#"Basic realm="räume""#, offer("Basic", ["realm": "räume"])),
        Row(#"Basic realm="a", realm="b""#, offer("Basic", ["realm": "a"])),
        Row("Negotiate", offer("Negotiate")),
        Row("Negotiate YII+/=", offer("Negotiate", token: "YII+/=")),
        Row("Negotiate, NTLM", offer("Negotiate"), offer("NTLM")),
        Row("Negotiate YII==, Basic realm=x", offer("Negotiate", token: "YII=="), offer("Basic", ["realm": "x"])),
        Row("NTLM TlRMTVNTUAAC , Negotiate", offer("NTLM", token: "TlRMTVNTUAAC"), offer("Negotiate")),
        Row(
            #"Digest realm="d", nonce="n", qop="auth,auth-int", algorithm=SHA-256, Basic realm="b""#,
            offer("Digest", ["realm": "d", "nonce": "n", "qop": "auth,auth-int", "algorithm": "SHA-256"]),
            offer("Basic", ["realm": "b"])),
        Row(
            #"Newauth realm="apps", type=1, title="Login to \"apps\"", Basic realm="simple""#,
            offer("Newauth", ["realm": "apps", "type": "1", "title": #"Login to "apps""#]),
            offer("Basic", ["realm": "simple"])),
        Row(
            #", ,Basic realm="x",,, ,Digest nonce=y,"#, offer("Basic", ["realm": "x"]), offer("Digest", ["nonce": "y"])),
        Row("\t Basic\trealm=x \t", offer("Basic", ["realm": "x"])),
        Row("Basic ,realm=x", offer("Basic", ["realm": "x"])),
        Row("Bearer error=\"invalid_token\"", offer("Bearer", ["error": "invalid_token"])),
        Row(""), Row(" , ,, "),
    ])
    func challengesAreRead(_ row: Row) {
        #expect(ChallengeParser.offers(in: row.field) == row.offers)
    }

    @Test(arguments: [
        Row(#"Basic realm="open"#), Row(#"Basic realm="open\"#), Row("Basic realm=\"a\u{0}b\""),
        Row("Basic realm=\"a\rb\""),
        Row("Basic realm=a b"), Row("Basic realm=a b=c"), Row("Basic realm=\"a\"b=c"), Row("=x"), Row("\"Basic\""),
        Row("@"),
        Row("Basic=x"), Row("Basic\u{0}"), Row("Foo bar baz"), Row("Foo a==b"),
        Row(#"Basic realm="x", =y"#, offer("Basic", ["realm": "x"])),
        Row("Basic realm=,x", offer("Basic", token: "realm="), offer("x")),
        Row(#"Negotiate, Basic realm="open"#, offer("Negotiate")),
        Row(#"Basic realm="x", ü"#, offer("Basic", ["realm": "x"])),
        Row(#"Basic realm="x", Digest nonce="#, offer("Basic", ["realm": "x"]), offer("Digest", token: "nonce=")),
        Row(#"Basic realm="x", Digest nonce=@"#, offer("Basic", ["realm": "x"])),
    ])
    func whatCannotBeReadEndsTheReading(_ row: Row) {
        #expect(ChallengeParser.offers(in: row.field) == row.offers)
    }

    @Test(arguments: [
        ",", "a,", "a ", "a=", "\"", "\\", "a=\"\\", "Basic realm=\"x\",", "a b,", "a=b,", " ", "=", "a b=c d,",
    ])
    func hugeNonsenseIsReadInBoundedTime(_ piece: String) {
        let field = String(repeating: piece, count: 200_000 / piece.utf8.count)
        #expect(ChallengeParser.offers(in: field).count <= 32)
        #expect(ChallengeParser.offers(in: "Basic " + field).count <= 32)
        #expect(ChallengeParser.offers(in: "Basic realm=\"" + field).count <= 32)
    }

    @Test func anyBytesAreReadWithoutATrap() {
        var generator = SplitMix(state: 7)
        let alphabet = Array("Basic,=\"\\ \t;\0\u{7F}ü/+~realm".utf8)
        for _ in 0..<20_000 {
            let bytes = (0..<Int(generator.next() % 24)).map { _ in
                alphabet[Int(generator.next() % UInt64(alphabet.count))]
            }
            for offer in ChallengeParser.offers(in: String(decoding: bytes, as: UTF8.self)) {
                #expect(HTTPMethod(offer.scheme).isToken)
            }
        }
    }

    @Test func severalFieldsAreOneChallenge() {
        let challenge = CredentialChallenge(
            challenger: .proxy, host: "h", port: 3128,
            fields: ["Negotiate", #"ntlm, Digest realm="room", x=y"#, "Custom"])
        #expect(challenge.schemes == [.negotiate, .ntlm, .digest])
        #expect(challenge.realm == "room")
        #expect(challenge.offers.map(\.scheme) == ["Negotiate", "ntlm", "Digest", "Custom"])
        #expect(challenge.offer(of: "DIGEST")?.parameters["x"] == "y")
        #expect(challenge.offer(of: "Basic") == nil)
        let many = CredentialChallenge(
            challenger: .server, host: "h", port: 80, fields: Array(repeating: "Basic, Digest", count: 100))
        #expect(many.offers.count == 32)
        #expect(CredentialChallenge(challenger: .server, host: "h", port: 80, fields: []).schemes == [])
    }

    @Test func schemesHaveNames() {
        #expect(CredentialSchemes.all.description == "Basic, Digest, NTLM, Negotiate")
        #expect(CredentialSchemes(name: "bAsIc") == .basic)
        #expect(CredentialSchemes(name: "Bearer") == [])
    }

    @Test func credentialShowsNothing() {
        let credential = Credential(user: "canary1", password: "canary2")
        var dumped = ""
        dump(credential, to: &dumped)
        for text in [
            "\(credential)", String(reflecting: credential), dumped, "\([credential])",
            String(describing: Optional(credential)),
        ] {
            #expect(!text.contains("canary"), "\(text)")
        }
        #expect(credential.isUsable)
    }

    @Test(arguments: ["\0", "\r\nX-Evil: 1", "\n", "\t", "\u{1}", "\u{1F}", "\u{7F}"])
    func credentialWithAControlCharacterIsNotUsable(text: String) {
        #expect(!Credential(user: "a" + text + "b", password: "").isUsable)
        #expect(!Credential(user: "a", password: "b" + text).isUsable)
    }

    @Test func credentialMayHoldAnythingElse() {
        #expect(Credential(user: #"OFFICE\kim "k" ~"#, password: "").isUsable)
        #expect(Credential(user: "", password: "pä\u{85}ß 🔑").isUsable)
    }

    @Test func addressPoliciesDiffer() {
        #expect(!AddressPolicy.any.isPublicOnly)
        #expect(AddressPolicy.publicOnly.isPublicOnly)
        #expect("\(AddressPolicy.publicOnly)" == "publicOnly")
        #expect(AddressPolicy.any != .publicOnly)
    }
}
