import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// How many cookies a jar keeps, and which ones are removed.
@Suite(.timeLimit(.minutes(1))) struct CookieBoundTests {
    private func names(_ agent: NetworkAgent) -> Set<String> { Set(agent.cookies.all.map(\.name)) }

    @Test func ofOneHostTheFirstOnesGo() async throws {
        try await withServer {
            $0.keepsCookies = true
        } _: { server, agent in
            server.handle("/set") { request in
                LoopbackResponse(headers: ["Set-Cookie": "\(request.query ?? ""); Path=/"])
            }
            for index in 0..<400 { try await agent.send(Get("/set?n\(index)=\(index)")) }
            let names = names(agent)
            #expect((120...150).contains(names.count), "\(names.count)")
            #expect(names.contains("n399") && names.contains("n290") && !names.contains("n0"))
            // The cookies are sent as always.
            try await agent.send(Get("/hello"))
            #expect(server.requests.last?.headers["Cookie"]?.contains("n399=399") == true)
        }
    }

    @Test func ofThoseForTLSToo() async throws {
        try await withServer {
            $0.keepsCookies = true
        } _: { server, agent in
            // libcurl treats 127.0.0.1 like TLS.
            server.handle("/set") { request in
                let fields = (0..<45).map { index in
                    let name = "\(request.query ?? "")-\(index)"
                    return LoopbackHeaders.Field(name: "Set-Cookie", value: "\(name)=1; Path=/; Secure; HttpOnly")
                }
                return LoopbackResponse(headers: LoopbackHeaders(fields))
            }
            for index in 0..<10 { try await agent.send(Get("/set?n\(index)")) }
            let cookies = agent.cookies.all
            #expect((120...150).contains(cookies.count), "\(cookies.count)")
            #expect(cookies.allSatisfy { $0.isSecure && $0.isHTTPOnly })
            #expect(names(agent).contains("n9-44") && !names(agent).contains("n0-0"))
        }
    }

    @Test func ofAllTheLongestUnusedGo() async throws {
        try await withServer {
            $0.keepsCookies = true
        } _: { server, agent in
            for name in ["kept", "gone"] {
                agent.cookies.set(Cookie(name: name, value: "1", domain: "\(name).localhost", isHTTPOnly: true))
            }
            for index in 0..<5000 {
                agent.cookies.set(Cookie(name: "n", value: "\(index)", domain: "h\(index).example", isSecure: true))
                if index % 1000 == 999 { try await agent.send(Get("http://kept.localhost:\(server.port)/hello")) }
            }
            let names = names(agent)
            #expect((3000...3030).contains(agent.cookies.all.count), "\(agent.cookies.all.count)")
            #expect(names.contains("kept") && !names.contains("gone"))
            #expect(agent.cookies.all.contains { $0.domain == "h4999.example" && $0.isSecure })
            #expect(!agent.cookies.all.contains { $0.domain == "h0.example" })
            #expect(server.requests.last?.headers["Cookie"] == "kept=1")
        }
    }

    @Test func whatIsSetManyTimesIsOne() async throws {
        try await withServer {
            $0.keepsCookies = true
        } _: { _, agent in
            agent.cookies.set(Cookie(name: "session", value: "1", domain: "h.example"))
            for index in 0..<1000 {
                agent.cookies.set(Cookie(name: "n", value: "\(index)", domain: "h.example"))
            }
            #expect(Set(agent.cookies.all.map { "\($0.name)=\($0.value)" }) == ["session=1", "n=999"])
        }
    }
}
