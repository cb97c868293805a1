import FerrySynchronization
import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct RedirectMachineTests {
    typealias Asked = RedirectMachine.Asked

    private func answer(
        _ status: Int, _ location: String?, to asked: Asked = Asked(url: "http://h/a", method: .get),
        by policy: RedirectPolicy = .default
    ) -> RedirectMachine.Action {
        var machine = RedirectMachine(policy)
        return machine.answered(status: status, locations: location.map { [$0] } ?? [], to: asked)
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func aRedirectIsFollowed(_ status: Int) throws {
        let next = try #require(answer(status, "/b").next)
        #expect(next.url == "http://h/b")
        #expect(next.method == .get)
        #expect(!next.dropsSecrets)
    }

    @Test(arguments: [200, 201, 204, 300, 304, 305, 306, 309, 399, 401, 503])
    func otherAnswersAreDelivered(_ status: Int) {
        #expect(answer(status, "/b").isDeliver)
    }

    @Test func withoutALocationTheAnswerIsDelivered() {
        #expect(answer(302, nil).isDeliver)
        #expect(answer(302, "").isDeliver)
    }

    @Test func noneDeliversTheAnswer() {
        #expect(answer(302, "/b", by: .none).isDeliver)
        #expect(answer(302, "file:///etc/passwd", by: .none).isDeliver)
    }

    struct MethodRow: Sendable, CustomTestStringConvertible {
        let status: Int
        let method: HTTPMethod
        let next: HTTPMethod
        let dropsBody: Bool
        var testDescription: String { "\(method) \(status)" }
        init(_ status: Int, _ method: HTTPMethod, _ next: HTTPMethod, dropsBody: Bool) {
            (self.status, self.method, self.next, self.dropsBody) = (status, method, next, dropsBody)
        }
    }

    @Test(arguments: [
        MethodRow(301, .post, .get, dropsBody: true), MethodRow(302, .post, .get, dropsBody: true),
        MethodRow(303, .post, .get, dropsBody: true), MethodRow(307, .post, .post, dropsBody: false),
        MethodRow(308, .post, .post, dropsBody: false),
        MethodRow(301, .get, .get, dropsBody: false), MethodRow(302, .get, .get, dropsBody: false),
        MethodRow(303, .get, .get, dropsBody: true), MethodRow(307, .get, .get, dropsBody: false),
        MethodRow(301, .head, .head, dropsBody: false), MethodRow(303, .head, .head, dropsBody: true),
        MethodRow(301, .put, .put, dropsBody: false), MethodRow(302, .delete, .delete, dropsBody: false),
        MethodRow(303, .put, .get, dropsBody: true), MethodRow(303, .delete, .get, dropsBody: true),
        MethodRow(307, .patch, .patch, dropsBody: false), MethodRow(302, "PURGE", "PURGE", dropsBody: false),
        MethodRow(303, "PURGE", "GET", dropsBody: true), MethodRow(302, "post", "post", dropsBody: false),
    ])
    func methodChangesAsBrowsersDo(_ row: MethodRow) throws {
        let asked = Asked(url: "http://h/a", method: row.method, hasBody: true)
        let next = try #require(answer(row.status, "/b", to: asked).next)
        #expect(next.method == row.next)
        #expect(next.dropsBody == row.dropsBody)
    }

    @Test(arguments: [301, 302])
    func methodIsKeptWhereThePolicySaysSo(_ status: Int) throws {
        var policy = RedirectPolicy.default
        policy.keepsMethodOn301And302 = true
        let asked = Asked(url: "http://h/a", method: .post, hasBody: true)
        let next = try #require(answer(status, "/b", to: asked, by: policy).next)
        #expect(next.method == .post)
        #expect(!next.dropsBody)
        #expect(answer(303, "/b", to: asked, by: policy).next?.method == .get)
    }

    @Test func whatSpeaksOfADroppedBodyIsDropped() throws {
        let asked = Asked(url: "http://h/a", method: .post, hasBody: true)
        let next = try #require(answer(303, "/b", to: asked).next)
        for name in [
            "Content-Type", "content-length", "Content-Encoding", "Content-Language", "Content-Location",
            "Content-Disposition", "CONTENT-MD5", "Transfer-Encoding", "Trailer", "Expect", "Digest",
        ] {
            #expect(next.drops(name), "\(name)")
        }
        for name in ["Accept", "X-Content-Type", "Content", "Authorization", "Cookie", "If-None-Match", ""] {
            #expect(!next.drops(name), "\(name)")
        }
        let kept = try #require(answer(307, "/b", to: asked).next)
        #expect(!kept.drops("Content-Type"))
    }

    /// The next request is another one: a server must not take it for the first one (RFC 9110, 15.4).
    @Test(arguments: ["Idempotency-Key", "idempotency-key", "Last-Modified", "Repr-Digest"])
    func aRedirectToGetKeepsNeitherTheKeyNorWhatDescribesTheBody(_ name: String) throws {
        let asked = Asked(url: "http://h/a", method: .post, hasBody: true)
        for status in [301, 302, 303] {
            #expect(try #require(answer(status, "/b", to: asked).next).drops(name), "\(status)")
        }
        for status in [307, 308] {
            #expect(try !#require(answer(status, "/b", to: asked).next).drops(name), "\(status)")
        }
    }

    @Test(arguments: [307, 308])
    func bodyThatIsGoneCannotBeSentAgain(_ status: Int) {
        let asked = Asked(url: "http://h/a", method: .post, hasBody: true, isBodyReplayable: false)
        #expect(answer(status, "/b", to: asked).code == .bodyNotReplayable)
        #expect(answer(303, "/b", to: asked).next?.method == .get)
        #expect(answer(302, "/b", to: asked).next?.method == .get)
        let put = Asked(url: "http://h/a", method: .put, hasBody: true, isBodyReplayable: false)
        #expect(answer(301, "/b", to: put).code == .bodyNotReplayable)
        let bare = Asked(url: "http://h/a", method: .post, hasBody: false, isBodyReplayable: false)
        #expect(answer(status, "/b", to: bare).next?.method == .post)
    }

    @Test(arguments: [
        "http://g/", "http://h:81/", "https://h/", "//g/a", "http://h.g/", "http://H@g/", "http://h./",
    ])
    func secretsAreDroppedWithTheOrigin(_ location: String) throws {
        let next = try #require(answer(302, location, by: .follow(sensitiveHeaders: ["X-Api-Key"])).next)
        #expect(next.dropsSecrets)
        for name in [
            "Authorization", "authorization", "Cookie", "Proxy-Authorization", "x-api-key", "Host", "Origin", "Referer",
        ] {
            #expect(next.drops(name), "\(name)")
        }
        for name in ["Accept", "X-Other", "Content-Type", "Range", "User-Agent"] {
            #expect(!next.drops(name), "\(name)")
        }
    }

    @Test(arguments: ["/b", "?x", "http://H:80/b", "//h/", "#f", "http://u:p@h/"])
    func secretsStayWithTheOrigin(_ location: String) throws {
        let next = try #require(answer(302, location, by: .follow(sensitiveHeaders: ["X-Api-Key"])).next)
        #expect(!next.dropsSecrets)
        for name in ["Authorization", "Cookie", "X-Api-Key", "Host"] { #expect(!next.drops(name), "\(name)") }
    }

    @Test func droppedSecretsDoNotComeBack() throws {
        var machine = RedirectMachine(.default)
        let away = machine.answered(
            status: 302, locations: ["http://g/"], to: Asked(url: "http://h/a", method: .get))
        let back = machine.answered(
            status: 302, locations: ["http://h/b"], to: Asked(url: "http://g/", method: .get))
        let there = machine.answered(status: 302, locations: ["/c"], to: Asked(url: "http://h/b", method: .get))
        #expect(away.next?.drops("Cookie") == true)
        #expect(back.next?.drops("Cookie") == true)
        #expect(there.next?.drops("Cookie") == true)
    }

    @Test func whatBeginsAgainHasItsSecretsAndAllItsRedirects() {
        let seen = Seen()
        let policy = RedirectPolicy.follow(upTo: 1) { hop in
            seen.hops.withLock { $0.append(hop) }
            return .follow
        }
        var machine = RedirectMachine(policy)
        let asked = Asked(url: "http://h/a", method: .get)
        for location in ["http://g/", "/b"] {
            #expect(machine.isAtStart)
            let next = machine.answered(status: 302, locations: [location], to: asked).next
            #expect(next?.dropsSecrets == (location == "http://g/") && !machine.isAtStart)
            #expect(machine.answered(status: 302, locations: [location], to: asked).code == .tooManyRedirects)
            machine.beginAgain()
        }
        #expect(machine.isAtStart && machine.history.map(\.target) == ["http://g/", "http://h/b"])
        #expect(seen.hops.withLock { $0.map(\.number) } == [1, 1])
    }

    @Test func credentialsOfALocationAreDropped() {
        #expect(answer(302, "http://u:p@g/b").next?.url == "http://g/b")
    }

    @Test func locationThatIsNotUTF8IsEscapedByteByByte() {
        var machine = RedirectMachine(.default)
        let location = Array("/b".utf8) + [0xFC, 0x20, 0xC3, 0xBC]
        let asked = Asked(url: "http://h/a", method: .get)
        let next = machine.answered(status: 302, locations: [location], to: asked).next
        #expect(next?.url == "http://h/b%FC%20%C3%BC")
    }

    @Test func fragmentIsInherited() {
        #expect(answer(302, "/b", to: Asked(url: "http://h/a#f", method: .get)).next?.url == "http://h/b#f")
    }

    @Test func downgradeIsRefusedUnlessAllowed() throws {
        let asked = Asked(url: "https://h/a", method: .get)
        #expect(answer(302, "http://h/b", to: asked).code == .redirectForbidden(.downgrade))
        let next = try #require(answer(302, "http://h/b", to: asked, by: .follow(allowsDowngrade: true)).next)
        #expect(next.drops("Authorization"))
        #expect(answer(302, "//g/", to: asked).next?.url == "https://g/")
        #expect(answer(302, "https://h/b").next?.url == "https://h/b")
    }

    @Test(arguments: ["file:///etc/passwd", "ftp://h/", "javascript:alert(1)", "gopher://127.0.0.1:70/x", "data:,x"])
    func otherSchemesAreForbidden(_ location: String) {
        #expect(answer(302, location).code == .redirectForbidden(.scheme))
        #expect(
            answer(302, location, by: .follow(allowsDowngrade: true) { _ in .follow }).code?.name == "redirectForbidden"
        )
    }

    @Test(arguments: [
        "http://", "http:///x", #"//good\@evil/"#, "/a\u{0}b", "http://[::1", "http://h:99999/", "http:x",
    ])
    func whatIsNoURLIsForbidden(_ location: String) {
        #expect(answer(302, location).code == .redirectForbidden(.invalidLocation))
    }

    @Test func allLocationsOfAnAnswerAreSeen() throws {
        let head = Array("HTTP/1.1 302 Found\r\nLocation: /b\r\nX-Location: /x\r\nLOCATION:  /\u{FC} \r\n\r\n".utf8)
        let result = try TransferResult(id: 1, head: head, body: [])
        #expect(RedirectMachine.locations(of: result) == [Array("/b".utf8), Array("/\u{FC}".utf8)])
    }

    @Test func twoPlacesAtOnceAreForbidden() {
        var machine = RedirectMachine(.default)
        let asked = Asked(url: "http://h/a", method: .get)
        #expect(
            machine.answered(status: 302, locations: ["/b", "/c"], to: asked).code
                == .redirectForbidden(.invalidLocation))
        #expect(machine.answered(status: 302, locations: ["/b", "/b"], to: asked).next?.url == "http://h/b")
    }

    @Test(arguments: [0, 1, 5, 10])
    func loopsEndAtTheLimit(_ limit: Int) {
        var machine = RedirectMachine(.follow(upTo: limit))
        let asked = Asked(url: "http://h/a?token=canary", method: .get)
        for number in 0..<limit {
            #expect(machine.history.count == number)
            #expect(machine.answered(status: 302, locations: ["/a?token=canary"], to: asked).next != nil)
        }
        #expect(machine.answered(status: 302, locations: ["/a?token=canary"], to: asked).code == .tooManyRedirects)
        #expect(machine.history.count == limit)
        #expect(machine.answered(status: 200, locations: [String](), to: asked).isDeliver)
    }

    @Test func tenAreFollowedByDefault() {
        #expect(RedirectPolicy.default.limit == 10)
        #expect(RedirectPolicy.follow().limit == 10)
        #expect(RedirectPolicy.follow(upTo: -1).limit == 0)
        #expect(RedirectPolicy.none.limit == nil)
    }

    @Test func historyHasNoSecrets() {
        var machine = RedirectMachine(.default)
        let asked = Asked(url: "http://h/a?token=canary1#canary2", method: .get)
        _ = machine.answered(status: 301, locations: ["http://u:canary3@g/b?code=canary4"], to: asked)
        #expect(
            machine.history == [
                Redirect(status: 301, source: "http://h/a?token=x", target: "http://g/b?code=y")
            ])
        #expect(machine.history.description == "[301 http://h/a?token=*** → http://g/b?code=***]")
    }

    @Test func failuresSayWhereToWithoutSecrets() throws {
        let https = Asked(url: "https://h/a", method: .post, hasBody: true, isBodyReplayable: false)
        let rows: [(String, RedirectPolicy)] = [
            ("ftp://u:canary@x/?t=canary#canary", .default),
            ("http://u:canary@g h/?t=canary", .default),
            ("http://u:canary@g/?t=canary", .default),
            ("https://u:canary@g/?t=canary", .follow { _ in .refuse }),
            ("https://u:canary@g/?t=canary", .default),
            ("https://u:canary@g/?t=canary", .follow(upTo: 0)),
        ]
        for (location, policy) in rows {
            let message = try #require(answer(307, location, to: https, by: policy).message)
            #expect(!message.contains("canary"), "\(message)")
            #expect(!message.isEmpty)
        }
        let long = "ftp://h/" + String(repeating: "x", count: 10_000)
        #expect(try #require(answer(302, long).message).utf8.count < 300)
        let forged = try #require(answer(302, "ftp://h/\r\nforged").message)
        #expect(!forged.contains("\n"))
    }

    @Test func ruleSeesTheHostThatWouldBeConnectedTo() throws {
        let seen = Seen()
        let policy = RedirectPolicy.follow { hop in
            seen.hops.withLock { $0.append(hop) }
            return hop.host == "127.0.0.1" ? .refuse : .follow
        }
        var machine = RedirectMachine(policy)
        let asked = Asked(url: "http://h/a?x=1", method: .post, hasBody: true)
        #expect(machine.answered(status: 302, locations: ["https://G.Example/b?c=d"], to: asked).next != nil)
        for local in ["http://127.1/", "http://0x7f000001/", "http://2130706433/", "//u@127.0.0.1:81"] {
            #expect(machine.answered(status: 307, locations: [local], to: asked).code == .redirectForbidden(.policy))
        }
        let hop = try #require(seen.hops.withLock { $0.first })
        #expect(hop.number == 1)
        #expect(hop.status == 302)
        #expect(hop.method == .get)
        #expect(hop.source == "http://h/a?x=1")
        #expect(hop.target == "https://g.example/b?c=d")
        #expect(hop.scheme == "https")
        #expect(hop.host == "g.example")
        #expect(hop.port == 443)
        #expect(!hop.isSameOrigin)
        #expect(hop.description == "1: 302 http://h/a?x=*** → https://g.example/b?c=***")
        #expect(seen.hops.withLock { $0[1].number } == 2)
    }

    @Test func ruleCanDeliverTheAnswer() {
        #expect(answer(302, "/b", by: .follow { _ in .deliver }).isDeliver)
    }

    @Test func ruleIsNotAskedAboutWhatIsForbiddenAnyway() {
        let seen = Seen()
        let policy = RedirectPolicy.follow(upTo: 1) { hop in
            seen.hops.withLock { $0.append(hop) }
            return .follow
        }
        #expect(answer(302, "file:///x", by: policy).code == .redirectForbidden(.scheme))
        let https = Asked(url: "https://h/a", method: .get)
        #expect(answer(302, "http://h/", to: https, by: policy).code == .redirectForbidden(.downgrade))
        #expect(answer(302, "/x", by: .follow(upTo: 0, decide: policy.decide)).code == .tooManyRedirects)
        #expect(seen.hops.withLock { $0.isEmpty })
    }
}

private final class Seen: Sendable {
    let hops = Mutex<[RedirectHop]>([])
}

extension RedirectMachine.Action {
    fileprivate var isDeliver: Bool { if case .deliver = self { true } else { false } }
    fileprivate var next: RedirectMachine.Next? { if case .follow(let next) = self { next } else { nil } }
    fileprivate var code: RequestError.Code? { if case .fail(let code, _) = self { code } else { nil } }
    fileprivate var message: String? { if case .fail(_, let message) = self { message } else { nil } }
}

extension RedirectMachine {
    fileprivate mutating func answered(status: Int, locations: [String], to asked: Asked) -> Action {
        answered(status: status, locations: locations.map { Array($0.utf8) }, to: asked)
    }
}
