import Ferry
import Testing

@testable import FerryTestSupport

/// Responses of nginx arrive unchanged.
@Suite(.timeLimit(.minutes(2))) struct NginxContentTests {
    @Test("a megabyte arrives unchanged")
    func largeBody() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/1m.bin")))
            #expect(sha256(reply.bytes) == sha256(Nginx.pattern(1024 * 1024)))
            #expect(reply.headers["Content-Length"] == "1048576")
            #expect(reply.framing == .exact)
        }
    }

    @Test("a compressible body is requested compressed, and decompressed")
    func compressed() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/long.txt")))
            #expect(reply.text == String(repeating: "compress me well, ", count: 4000))
            #expect(reply.metrics.bytesReceived < 5000)
        }
    }

    @Test("a request without Accept-Encoding gets no encoding")
    func uncompressed() async throws {
        let nginx = try Nginx.shared
        try await withAgent(.init(acceptedEncodings: [])) { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/long.txt")))
            #expect(reply.headers["Content-Encoding"] == nil)
            #expect(reply.bodyLength == 72_000 && reply.metrics.bytesReceived > 72_000)
        }
    }

    @Test("HEAD has the length of the body but no body")
    func head() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/64k.bin"), .head))
            #expect(reply.headers["Content-Length"] == "65536")
            #expect(reply.bodyLength == 0)
            #expect(try await agent.send(HTTPRequest.to(nginx.url("/hello.txt"))).text == "Hello, ferry")
        }
    }

    @Test("204 has no body")
    func noContent() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/no-content")))
            #expect(reply.status == 204 && reply.bodyLength == 0)
        }
    }

    @Test("304 comes in reply to a request with the current validator")
    func notModified() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let first = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt")))
            var again = HTTPRequest.to(nginx.url("/hello.txt"))
            again.headers["If-None-Match"] = first.headers["ETag"]
            again.statusValidation = .any
            let second = try await agent.send(again)
            #expect(second.status == 304 && second.bodyLength == 0)
            #expect(second.isReusedConnection)
        }
    }

    @Test("206 has the requested range")
    func range() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            var part = HTTPRequest.to(nginx.url("/1m.bin"))
            part.headers["Range"] = "bytes=1000-2999"
            let reply = try await agent.send(part)
            #expect(reply.status == 206)
            #expect(reply.headers["Content-Range"] == "bytes 1000-2999/1048576")
            #expect(reply.bytes == Array(Nginx.pattern(3000)[1000...]))
        }
    }

    @Test("a body that is sent slowly arrives whole")
    func slow() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            var request = HTTPRequest.to(nginx.url("/slow/64k.bin"))
            request.timeouts = Timeouts(idle: .seconds(10))
            let reply = try await agent.send(request)
            #expect(reply.bytes == Nginx.pattern(64 * 1024))
            #expect(reply.metrics.total > .milliseconds(900))
        }
    }

    @Test("a rejected status is an error with nginx's page in it")
    func notFound() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/private/secret.txt")))
            }
            #expect(error?.code == .invalidStatusCode(401))
            let part = try #require(error?.response)
            #expect(part.headers["WWW-Authenticate"] == #"Basic realm="ferry""#)
            #expect(String(decoding: part.body, as: UTF8.self).contains("401 Authorization Required"))
        }
    }

    @Test("credentials sent without a challenge are accepted by nginx")
    func basic() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            var request = HTTPRequest.to(nginx.url("/private/secret.txt"))
            request.authorization = .basic("ferry", "secret")
            let reply = try await agent.send(request)
            #expect(reply.text == "for ferry only")
        }
    }
}
