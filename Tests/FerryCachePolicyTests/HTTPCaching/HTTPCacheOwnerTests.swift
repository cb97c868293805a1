import FerryCache
import FerrySynchronization
import FerryTesting
import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Runs with `CachePolicy.http`: the owner of a stored response, and what invalidates it.
@Suite struct HTTPCacheOwnerTests {
    private let bench = CacheBench()

    /// Responds with the credentials it received.
    private func echoing(_ more: Headers = Headers()) -> StubTransport {
        StubTransport { request in
            var headers: Headers = ["Cache-Control": "max-age=60"]
            for field in more { headers.append(field.name, field.value) }
            let owner = request.headers["Authorization"] ?? request.headers["Cookie"] ?? "nobody"
            return .response(headers: headers, body: "\(request.number) of \(owner)")
        }
    }

    @Test(arguments: ["Authorization", "Cookie", "Proxy-Authorization"])
    func oneUsersResponsesNeverAnswerAnother(field: String) async throws {
        let stub = echoing()
        let agent = bench.agent(stub)
        let (a, b) = (http([field: "a"]), http([field: "b"]))
        _ = try await texts(agent, a, b, http())
        #expect(stub.requests.count == 3)
        for request in [a, b, http()] { #expect(try await agent.send(request).isFromCache) }
        #expect(stub.requests.count == 3)
        await agent.shutdown()
    }

    @Test func theSecretsAreNotOnTheDisk() async throws {
        let agent = bench.agent(echoing(["Set-Cookie": "s=canary-1", "Vary": "X-Key"]))
        let first = try await agent.send(http(["Cookie": "canary-2", "X-Key": "canary-3"]))
        #expect(first.headers["Set-Cookie"] == "s=canary-1")
        let hit = try await agent.send(http(["Cookie": "canary-2", "X-Key": "canary-3"]))
        #expect(hit.isFromCache && hit.headers["Set-Cookie"] == nil)
        await agent.shutdown()
        // The body echoes the cookie, and is the only place that may contain it.
        #expect(!bench.content.contains("canary-1") && !bench.content.contains("canary-3"))
    }

    @Test func whatAnAdapterAddsTellsUsersApart() async throws {
        let signing = SharedSigning(["a", "b", "a"])
        let agent = bench.agent(echoing()) { $0.adapters = [signing] }
        let all = try await texts(agent, http(), http(), http())
        #expect(all == ["1 of a", "2 of b", "cached 1 of a"])
        await agent.shutdown()
    }

    @Test func sensitiveDataOutlivesTheToken() async throws {
        let signing = SharedSigning(["a", "b", "c"])
        let agent = bench.agent(echoing()) { $0.adapters = [signing] }
        let (kim, lee) = (http(sensitiveData: "kim"), http(sensitiveData: "lee"))
        #expect(try await texts(agent, kim, kim, lee) == ["1 of a", "cached 1 of a", "2 of c"])
        await agent.shutdown()
    }

    private final class SharedSigning: RequestAdapter {
        private let tokens: Mutex<[String]>
        init(_ tokens: [String]) { self.tokens = Mutex(tokens) }
        func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
            request.headers["Authorization"] = tokens.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
        }
    }

    /// R112: the target of a redirect is served only to the user who was redirected.
    @Test func whatARedirectLeadsToIsForWhoWasLedThere() async throws {
        let stub = StubTransport { request in
            if request.url.hasPrefix("http://other") {
                return .response(headers: ["Cache-Control": "max-age=60"], body: "answer \(request.number)")
            }
            return .redirect(to: "http://other.test/y")
        }
        let agent = bench.agent(stub)
        let (a, b) = (http(["Authorization": "a"]), http(["Authorization": "b"]))
        #expect(try await texts(agent, a, b) == ["answer 2", "answer 4"])
        #expect(try await texts(agent, http(path: "http://other.test/y")) == ["answer 5"])
        await agent.shutdown()
    }

    @Test func eachHopOfARedirectIsStoredByItself() async throws {
        let stub = StubTransport { request in
            if request.url.hasSuffix("/x") {
                return .response(status: 301, headers: ["Location": "/y", "Cache-Control": "max-age=600"])
            }
            return .response(headers: ["Cache-Control": "max-age=60"], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, http(), http()) == ["answer 2", "cached answer 2"])
        let hit = try await agent.send(http())
        #expect(hit.response.url.hasSuffix("/y") && hit.redirects.count == 1)
        bench.advance(by: .seconds(60))
        #expect(try await texts(agent, http()) == ["answer 3"])
        #expect(stub.requests.map { String($0.url.suffix(2)) } == ["/x", "/y", "/y"])
        await agent.shutdown()
    }

    /// RFC 9111, 4.4
    @Test func anUnsafeRequestInvalidates() async throws {
        let stub = StubTransport { request in
            if request.method == .post {
                return .response(status: request.headers.contains("X-Bad") ? 500 : 201, headers: ["Location": "/y"])
            }
            return .response(headers: ["Cache-Control": "max-age=60"], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        let (x, y, z) = (http(), http(path: "/y"), http(path: "/z"))
        _ = try await texts(agent, x, y, z)
        _ = try await agent.send(http(["X-Bad": "1"], method: .post))
        #expect(try await texts(agent, x, y, z) == ["cached answer 1", "cached answer 2", "cached answer 3"])
        let post = try await agent.send(http(method: .post))
        #expect(post.cacheStatus?.forward == .method)
        #expect(try await texts(agent, x, y, z) == ["answer 6", "answer 7", "cached answer 3"])
        // A user's change is noticed by users without credentials.
        _ = try await agent.send(http(["Authorization": "a"], method: .post))
        #expect(try await texts(agent, x) == ["answer 9"])
        await agent.shutdown()
    }

    @Test(
        "An unsafe request invalidates what was stored under another spelling of its origin",
        arguments: [
            "http://API.h", "HTTP://api.h", "http://api.h:80", "http://API.h:/", "http://api.h:0080",
            "http://b\u{FC}.h",
            "http://[0::1]",
        ])
    func anotherSpellingOfTheOriginIsInvalidated(base: String) async throws {
        let canonical =
            base.contains("[") ? "http://[::1]" : base.contains("b\u{FC}") ? "http://xn--b-eha.h" : "http://api.h"
        let stub = StubTransport { request in
            if request.method == .get {
                return .response(headers: ["Cache-Control": "max-age=60"], body: "answer \(request.number)")
            }
            let isFull = request.headers.contains("X-Full")
            return .response(status: 201, headers: ["Location": isFull ? canonical + "/y" : "/y"])
        }
        let agent = bench.agent(stub) { $0.baseURL = base }
        let (x, y) = (http(), http(path: "/y"))
        for headers in [[:], ["X-Full": "1"]] as [Headers] {
            _ = try await texts(agent, x, y)
            #expect(try await texts(agent, x, y).allSatisfy { $0.hasPrefix("cached") })
            // Both the target and what the response names.
            _ = try await agent.send(http(headers, path: canonical + "/x", method: .post))
            #expect(try await texts(agent, x, y).allSatisfy { !$0.hasPrefix("cached") })
        }
        // All spellings share what is stored.
        #expect(try await texts(agent, http(path: canonical + "/x")).allSatisfy { $0.hasPrefix("cached") })
        await agent.shutdown()
    }

    /// RFC 9110, 4.2.5: without a secret field and with one, which have keys of their own.
    @Test(arguments: [[:], ["Authorization": "a"]] as [Headers])
    func aFragmentIsNoPartOfTheKey(headers: Headers) async throws {
        let agent = bench.agent(
            StubTransport { request in
                .response(headers: ["Cache-Control": "max-age=60"], body: "answer \(request.number)")
            })
        let (whole, part, start) = (
            http(headers, path: "/x"), http(headers, path: "/x#a"), http(headers, path: "/x#")
        )
        #expect(
            try await texts(agent, part, whole, start) == ["answer 1", "cached answer 1", "cached answer 1"])
        _ = try await agent.send(http(headers, path: "/x", method: .post))
        #expect(try await texts(agent, part) == ["answer 3"])
        await agent.shutdown()
    }

    @Test func theKeyOfACanonicalURLIsTheURLAsItIs() {
        for url in [
            "http://h/x?Q=1", "https://api.example.com:8443/A", "http://127.0.0.1:8080/", "https://h:80/",
            "http://h:443/",
            "http+unix://%2Frun%2Fa.sock/X", "http://[::1]:81/", "http://xn--bcher-kva.test/", "http://1a.test/",
            "http://255.0.10.9/", "http://3com/x",
        ] {
            #expect(CanonicalOrigin.apply(to: url) == url)
        }
        for (url, canonical) in [
            ("HTTPS://H:443/X", "https://h/X"), ("http://H:8080/X?A#B", "http://h:8080/X?A#B"),
            ("http://h:80", "http://h"),
            ("http://b\u{FC}cher.test/\u{FC}", "http://xn--bcher-kva.test/\u{FC}"),
            ("http://[::0:1]:80/", "http://[::1]/"),
            ("HTTP+UNIX://%2fa/X", "http+unix://%2fa/X"),
            ("http://127.1:81/x", "http://127.0.0.1:81/x"), ("http://0x7f.0.0.1/", "http://127.0.0.1/"),
            ("http://2130706433/", "http://127.0.0.1/"), ("http://127.0.0.01/", "http://127.0.0.1/"),
        ] {
            #expect(CanonicalOrigin.apply(to: url) == canonical)
        }
    }

    @Test func aResponseThatIsOlderThanTheChangeIsNotStored() async throws {
        let stub = StubTransport { $0.method == .get ? .hold : .response() }
        let agent = bench.agent(stub)
        async let reply = agent.send(http())
        await stub.waitForHeld(1)
        _ = try await agent.send(http(method: .post))
        stub.releaseAll(with: .response(headers: ["Cache-Control": "max-age=60"], body: "old"))
        #expect(try await reply.cacheStatus?.detail == "invalidated")
        await agent.shutdown()
    }

    @Test func aValidationThatIsOlderThanTheChangeFreshensNothing() async throws {
        let stub = StubTransport { request in
            if request.method == .post { return .response() }
            if request.headers.contains("If-None-Match") { return .hold }
            return .response(headers: ["Cache-Control": "max-age=60", "ETag": "\"a\""], body: "\(request.number)")
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, http()) == ["1"])
        bench.advance(by: .seconds(60))
        async let reply = agent.send(http())
        await stub.waitForHeld(1)
        _ = try await agent.send(http(method: .post))
        stub.releaseAll(with: .response(status: 304, headers: ["Cache-Control": "max-age=60", "ETag": "\"a\""]))
        #expect(try await reply.value == "1")
        #expect(try await texts(agent, http()) == ["4"])
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func whatIsRemovedDoesNotComeBackWithAnotherVariant(memory: Bool) async throws {
        let stub = StubTransport { request in
            if request.headers["Accept"] == "b" { return .hold }
            return .response(headers: ["Cache-Control": "max-age=60", "Vary": "Accept"], body: "\(request.number)")
        }
        let agent = bench.agent(stub, memory: memory)
        #expect(try await texts(agent, http(["Accept": "a"])) == ["1"])
        async let reply = agent.send(http(["Accept": "b"]))
        await stub.waitForHeld(1)
        await agent.cache.removeAll()
        stub.releaseAll(with: .response(headers: ["Cache-Control": "max-age=60", "Vary": "Accept"], body: "b"))
        #expect(try await reply.value == "b")
        #expect(try await texts(agent, http(["Accept": "a"])) == ["3"])
        await agent.shutdown()
    }

    /// RFC 9111, 3.5
    @Test func aSharedCacheIsForAllWhereTheServerSaysSo() async throws {
        let stub = echoing(["Cache-Control": "public"])
        let agent = bench.agent(stub)
        func shared(_ token: String) -> Kept {
            Kept(headers: ["Authorization": token], cachePolicy: .http(shared: true, write: .synchronous))
        }
        #expect(try await texts(agent, shared("a"), shared("b")) == ["1 of a", "cached 1 of a"])
        await agent.shutdown()
        let other = CacheBench().agent(echoing())
        #expect(try await texts(other, shared("a"), shared("a")) == ["1 of a", "2 of a"])
        await other.shutdown()
    }

    @Test func whatARequestDoesNotWantIsNotStored() async throws {
        let agent = bench.agent(counting(["Cache-Control": "max-age=60"]))
        var unwanted = http()
        unwanted.isWanted = false
        #expect(try await texts(agent, unwanted, unwanted) == ["answer 1", "answer 2"])
        #expect(await agent.cache.statistics.refusals == [.request: 2])
        await agent.shutdown()
    }

    @Test func thePoliciesNeverAnswerForEachOther() async throws {
        let agent = bench.agent(counting(["Cache-Control": "max-age=60"]))
        #expect(
            try await texts(agent, http(), Kept(), http(), Kept()).suffix(2) == ["cached answer 1", "cached answer 2"])
        await agent.shutdown()
    }

    @Test func aRecordThatIsCutOrChangedIsNone() throws {
        let head = Array("HTTP/1.1 200 \r\nCache-Control: max-age=5\r\n\r\n".utf8)
        func variant(_ body: String) throws -> StoredVariant {
            StoredVariant(
                try transferResult(head, body), StoredVariant.Times(request: 1, response: 2, initialAge: 3),
                isHead: false, isDecoded: true, varying: ["a", "b"], variance: CacheDigest(of: "x"), isShared: false)
        }
        let whole = StoredVariants([try variant("one"), try variant("two")], stored: 7)
        let entry = whole.entry(isShared: false)
        let again = try #require(StoredVariants(entry))
        #expect(again.all.map { String(decoding: $0.result.body, as: UTF8.self) } == ["one", "two"])
        #expect(again.all[1].times == StoredVariant.Times(request: 1, response: 2, initialAge: 3))
        #expect(again.all[1].varying == ["a", "b"] && again.all[1].isDecoded)
        let attributes = entry.withAttributes { Array($0) }
        let heads = entry.withHead { Array($0) }
        for count in 0..<attributes.count {
            let cut = heads.withUnsafeBytes { head in
                entry.withBody { body in
                    CacheEntry(entry.marks, attributes: Array(attributes.prefix(count)), head: head, body: body)
                }
            }
            #expect(StoredVariants(cut) == nil)
        }
        for place in attributes.indices {
            var changed = attributes
            changed[place] ^= 0x81
            let entry = heads.withUnsafeBytes { head in
                entry.withBody { CacheEntry(entry.marks, attributes: changed, head: head, body: $0) }
            }
            // It is missing, or has the same bodies: never others.
            if let read = StoredVariants(entry) { #expect(read.all.count == 2) }
        }
        for place in [9, 17, 25] {
            // The highest byte of a time of the first.
            var changed = attributes
            for byte in place - 7...place { changed[byte] = byte == place ? 0x7F : 0xFF }
            let entry = heads.withUnsafeBytes { head in
                entry.withBody { CacheEntry(entry.marks, attributes: changed, head: head, body: $0) }
            }
            #expect(StoredVariants(entry) == nil)
        }
    }
}

private func transferResult(_ head: [UInt8], _ body: String) throws -> TransferResult {
    try TransferResult(id: 1, head: head, body: Array(body.utf8))
}
