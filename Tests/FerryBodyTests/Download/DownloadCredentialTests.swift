import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The credentials of downloads whose server redirects: each server gets its own, and is asked for it once.
@Suite(.timeLimit(.minutes(1))) struct DownloadCredentialTests {
    private typealias Samples = DownloadRedirectTests

    private static let challenge = LoopbackResponse(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"r\""])

    /// The server challenges once, and the response that follows breaks off, whatever the credential is.
    private static func challengeAndBreakOff(_ server: LoopbackServer) {
        let refusal = "HTTP/1.1 401 X\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n"
        // libcurl asks once more for the schemes before it sends a credential.
        server.script(path: "/g", uses: 2, [.send(refusal), .serve])
        server.script(
            path: "/g", uses: 1,
            [.send(Samples.head()), .sendBytes(LoopbackServer.pattern(0..<1_000)), .close])
    }

    private struct Known: CredentialProvider {
        let asked: Tally
        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            asked.add()
            return Credential(user: "u", password: "p")
        }
    }

    /// Its passwords are the numbers of the questions.
    private struct Rotating: CredentialProvider {
        let asked: Tally
        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            asked.add()
            return Credential(user: "u", password: "\(asked.value)")
        }

        static func field(_ number: Int) -> String { "Basic " + Data("u:\(number)".utf8).base64EncodedString() }
    }

    @Test("each server is asked for once: the target of the redirect keeps the credential it has asked for")
    func credentials() async throws {
        let folder = try Folder()
        let store = try LoopbackServer()
        let asked = Tally()
        try await withFlow {
            $0.retryPolicy = .quick
            $0.credentialProvider = Known(asked: asked)
        } _: { server, agent in
            server.handle("GET", "/f") { request in
                if request.headers["Authorization"] == nil { return Self.challenge }
                return LoopbackResponse(status: 302, headers: ["Location": store.baseURL + "/g"])
            }
            store.handle("GET", "/g") { request in
                request.headers["Authorization"] == nil ? Self.challenge : Samples.part(request)
            }
            Self.challengeAndBreakOff(store)
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")))
            Samples.expectWhole(folder)
            let field = "Basic dTpw"
            #expect(server.requests.map { $0.headers["Authorization"] } == [nil, nil, field])
            #expect(store.requests.map { $0.headers["Authorization"] } == [nil, nil, field, nil, field])
            let rest = "bytes=1000-"
            #expect(store.ranges("/g") == [nil, nil, nil, rest, rest] && asked.value == 2)
        }
    }

    @Test("a retry that begins again asks no server again for the credential of its target", arguments: [false, true])
    func credentialOfATarget(isElsewhere: Bool) async throws {
        let folder = try Folder()
        let store = try LoopbackServer()
        let asked = Tally()
        try await withFlow {
            $0.retryPolicy = .quick
            $0.credentialProvider = Known(asked: asked)
            // What the first URL needs is not replaced.
            $0.adapters = [Adapt { request, _ in request.headers["Authorization"] = "Bearer t" }]
        } _: { server, agent in
            let target = isElsewhere ? store : server
            server.handle("GET", "/f") { request in
                if request.headers["Authorization"] != "Bearer t" { return Self.challenge }
                return LoopbackResponse(status: 302, headers: ["Location": target.baseURL + "/g"])
            }
            target.handle("GET", "/g") { request in
                request.headers["Authorization"] == "Basic dTpw" ? Samples.part(request) : Self.challenge
            }
            Self.challengeAndBreakOff(target)
            target.script(path: "/g", uses: 1, [.send("HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n"), .serve])
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")))
            Samples.expectWhole(folder)
            #expect(asked.value == 1)
        }
    }

    @Test("a credential that has expired at a target is asked for again", arguments: [false, true])
    func expiredCredential(isFirst: Bool) async throws {
        let folder = try Folder()
        let store = try LoopbackServer()
        let asked = Tally()
        try await withFlow {
            $0.retryPolicy = .quick
            $0.credentialProvider = Rotating(asked: asked)
        } _: { server, agent in
            server.handle("GET", "/f") { _ in
                LoopbackResponse(status: 302, headers: ["Location": store.baseURL + "/g"])
            }
            let field = Rotating.field(2)
            store.handle("GET", "/g") { $0.headers["Authorization"] == field ? Samples.part($0) : Self.challenge }
            Self.challengeAndBreakOff(store)
            if isFirst {
                store.script(path: "/g", uses: 1, [.send("HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n"), .serve])
            }
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")))
            Samples.expectWhole(folder)
            #expect(asked.value == 2)
        }
    }

    private static let refusal = "HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n"

    @Test("the credential of a server between the first and the target is not asked for again")
    func credentialBetween() async throws {
        let folder = try Folder()
        let (middle, store) = (try LoopbackServer(), try LoopbackServer())
        let asked = Tally()
        try await withFlow {
            $0.retryPolicy = .quick
            $0.credentialProvider = Known(asked: asked)
        } _: { server, agent in
            server.handle("GET", "/f") { _ in
                LoopbackResponse(status: 302, headers: ["Location": middle.baseURL + "/m"])
            }
            middle.handle("GET", "/m") { request in
                if request.headers["Authorization"] == nil { return Self.challenge }
                return LoopbackResponse(status: 302, headers: ["Location": store.baseURL + "/g"])
            }
            store.handle("GET", "/g") { Samples.part($0) }
            store.script(
                path: "/g", uses: 1, [.send(Samples.head()), .sendBytes(LoopbackServer.pattern(0..<1_000)), .close])
            store.script(path: "/g", uses: 1, [.send(Self.refusal), .serve])
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")))
            Samples.expectWhole(folder)
            #expect(asked.value == 1 && server.requestCount == 2)
            #expect(store.requests.allSatisfy { $0.headers["Authorization"] == nil })
        }
    }

    @Test("the way back to a server between gets no credential before it asks for one")
    func wayBackBetween() async throws {
        let (middle, other) = (try LoopbackServer(), try LoopbackServer())
        let asked = Tally()
        try await withFlow {
            $0.credentialProvider = Known(asked: asked)
        } _: { server, agent in
            server.handle("GET", "/f") { _ in
                LoopbackResponse(status: 302, headers: ["Location": middle.baseURL + "/m"])
            }
            middle.handle("GET", "/m") { request in
                if request.headers["Authorization"] == nil { return Self.challenge }
                return LoopbackResponse(status: 302, headers: ["Location": other.baseURL + "/o"])
            }
            other.handle("GET", "/o") { _ in
                LoopbackResponse(status: 302, headers: ["Location": middle.baseURL + "/x"])
            }
            // A redirect within the server changes nothing.
            middle.handle("GET", "/x") { _ in LoopbackResponse(status: 302, headers: ["Location": "/y"]) }
            middle.handle("GET", "/y") { request in
                if request.headers["Authorization"] == nil { return Self.challenge }
                return LoopbackResponse(status: 302, headers: ["Location": "/z"])
            }
            middle.handle("GET", "/z") { request in
                request.headers["Authorization"] == nil ? Self.challenge : LoopbackResponse(text: "content")
            }
            let reply = try await agent.send(Get("/f"))
            #expect(reply.text == "content" && asked.value == 2)
        }
    }

    @Test("the way back to the first server gets no credential, also if an adapter has chosen that server")
    func wayBack() async throws {
        let folder = try Folder()
        let (first, other) = (try LoopbackServer(), try LoopbackServer())
        let asked = Tally()
        try await withFlow {
            $0.retryPolicy = .quick
            $0.credentialProvider = Known(asked: asked)
            $0.adapters = [
                Adapt { request, _ in if request.url.hasSuffix("/f") { request.url = first.baseURL + "/f" } }
            ]
        } _: { server, agent in
            let redirects = Tally()
            first.handle("GET", "/f") { request in
                if request.headers["Authorization"] == nil { return Self.challenge }
                redirects.add()
                let target = redirects.value == 1 ? first.baseURL + "/t" : other.baseURL + "/b"
                return LoopbackResponse(status: 302, headers: ["Location": target])
            }
            first.script(
                path: "/t", uses: 1, [.send(Samples.head()), .sendBytes(LoopbackServer.pattern(0..<1_000)), .close])
            first.script(path: "/t", uses: 2, [.send(Self.refusal), .serve])
            other.handle("GET", "/b") { _ in
                LoopbackResponse(status: 302, headers: ["Location": first.baseURL + "/x"])
            }
            first.handle("GET", "/x") { $0.headers["Authorization"] == nil ? Self.challenge : Samples.part($0) }
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")))
            Samples.expectWhole(folder)
            // The provider decides again.
            #expect(asked.value == 2 && server.requestCount == 0)
        }
    }

    @Test("a way back that asks for a credential does not make the first server's worthless")
    func challengedWayBack() async throws {
        let folder = try Folder()
        let other = try LoopbackServer()
        let asked = Tally()
        try await withFlow {
            $0.retryPolicy = .quick
            $0.credentialProvider = Known(asked: asked)
        } _: { server, agent in
            server.handle("GET", "/f") { request in
                if request.headers["Authorization"] == nil { return Self.challenge }
                return LoopbackResponse(status: 302, headers: ["Location": other.baseURL + "/b"])
            }
            other.handle("GET", "/b") { _ in
                LoopbackResponse(status: 302, headers: ["Location": server.baseURL + "/x"])
            }
            let parts = Tally()
            server.handle("GET", "/x") { request in
                if request.headers["Authorization"] == nil { return Self.challenge }
                parts.add()
                // Each URL is valid for one part.
                return parts.value.isMultiple(of: 2) ? LoopbackResponse(status: 403) : Samples.part(request)
            }
            let cut = "HTTP/1.1 401 X\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n"
            for start in [0, 1_000] {
                server.script(path: "/x", uses: 2, [.send(cut), .serve])
                server.script(
                    path: "/x", uses: 1,
                    [
                        .send(Samples.head(from: start)), .sendBytes(LoopbackServer.pattern(start..<start + 1_000)),
                        .close,
                    ])
                server.script(path: "/x", uses: 1, [.send(cut), .serve])
                server.script(path: "/x", uses: 1, [.send(Self.refusal), .serve])
            }
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")))
            Samples.expectWhole(folder)
            // For the first server once, and for each way back.
            #expect(asked.value == 4)
            #expect(server.requests.filter { $0.path == "/f" && $0.headers["Authorization"] == nil }.count == 4)
        }
    }

    // MARK: Segments

    private static let three: DownloadOptions = {
        var options = DownloadOptions(segments: 3)
        options.minimumSegmentSize = 500
        return options
    }()

    private static func isFirstPiece(_ request: LoopbackRequest) -> Bool {
        request.headers["Range"]?.hasPrefix("bytes=0-") ?? false
    }

    @Test("the provider is asked once for all segments, whichever asks first", arguments: [false, true])
    func segments(isFirstPieceOpen: Bool) async throws {
        let folder = try Folder()
        let asked = Tally()
        try await withFlow {
            $0.credentialProvider = Known(asked: asked)
        } _: { server, agent in
            server.handle("GET", "/f") { request in
                let isOpen = isFirstPieceOpen && Self.isFirstPiece(request)
                return isOpen || request.headers["Authorization"] != nil ? Samples.part(request) : Self.challenge
            }
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: Self.three)
            Samples.expectWhole(folder)
            #expect(asked.value == 1 && Set(server.ranges("/f")).count == 4)
        }
    }

    @Test("if the credential expires meanwhile, the provider is asked once more for all segments")
    func expiredBetweenSegments() async throws {
        let folder = try Folder()
        let asked = Tally()
        try await withFlow {
            $0.credentialProvider = Rotating(asked: asked)
        } _: { server, agent in
            server.handle("GET", "/f") { request in
                let field = Rotating.field(Self.isFirstPiece(request) ? 1 : 2)
                return request.headers["Authorization"] == field ? Samples.part(request) : Self.challenge
            }
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: Self.three)
            Samples.expectWhole(folder)
            #expect(asked.value == 2)
        }
    }

    @Test("a provider that has nothing for the segments is asked once, and they get the refusal")
    func nothingForSegments() async throws {
        struct Nothing: CredentialProvider {
            let asked: Tally
            func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
                asked.add()
                return nil
            }
        }
        let folder = try Folder()
        let asked = Tally()
        try await withFlow {
            $0.credentialProvider = Nothing(asked: asked)
        } _: { server, agent in
            server.handle("GET", "/f") { request in
                // Not before the lead and both helpers have asked.
                if !Self.isFirstPiece(request) { try? await server.waitForRequests(4) }
                return Self.isFirstPiece(request) ? Samples.part(request) : Self.challenge
            }
            let error = await fault {
                try await agent.download(Get("/f"), to: .file(folder.file("f")), options: Self.three)
            }
            #expect(error == .invalidStatusCode(401) && asked.value == 1)
        }
    }

    @Test("each segment begins with what the first one was granted: by the server, a target of it, and the proxy")
    func segmentsBehindAProxy() async throws {
        let folder = try Folder()
        let (proxy, asked) = (try LoopbackServer(), Tally())
        let refusal = LoopbackResponse(status: 407, headers: ["Proxy-Authenticate": "Basic realm=\"p\""])
        try await withFlow {
            $0.proxy = .http("127.0.0.1", port: Int(proxy.port)).except("127.0.0.1")
            $0.credentialProvider = Known(asked: asked)
            // What the first URL needs is not replaced.
            $0.adapters = [Adapt { request, _ in request.headers["Authorization"] = "Bearer t" }]
        } _: { _, agent in
            proxy.handle("GET", "/f") { request in
                if request.headers["Proxy-Authorization"] == nil { return refusal }
                if request.headers["Authorization"] != "Bearer t" { return Self.challenge }
                return LoopbackResponse(status: 302, headers: ["Location": "http://origin.invalid/g"])
            }
            proxy.handle("GET", "/g") { request in
                if request.headers["Proxy-Authorization"] == nil { return refusal }
                return request.headers["Authorization"] == "Basic dTpw" ? Samples.part(request) : Self.challenge
            }
            _ = try await agent.download(
                Get("http://origin.invalid/f"), to: .file(folder.file("f")), options: Self.three)
            Samples.expectWhole(folder)
            // For the proxy, and for the target.
            #expect(asked.value == 2)
        }
    }
}
