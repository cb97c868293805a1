import Ferry
import Testing

@testable import FerryTestSupport

/// Runs that end before their response: nginx sees the client close.
@Suite(.timeLimit(.minutes(2))) struct NginxLifeTests {
    @Test("a cancelled run closes its connection while nginx waits for the upstream")
    func cancelWhileWaiting() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent { agent in
            let run = Task { try await agent.send(HTTPRequest.to(nginx.url("/wait?s=3&\(mark)"))) }
            _ = try await eventually("the upstream's request") { try Upstream.shared.requests(to: mark).first }
            run.cancel()
            let error = await #expect(throws: RequestError.self) { try await run.value }
            #expect(error?.code == .cancelled)
            let line = try #require(try await nginx.log(mark, count: 1).first)
            #expect(line.status == 499)
        }
    }

    @Test("a cancelled run closes its connection in the middle of a body")
    func cancelInBody() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent { agent in
            let run = Task { try await agent.send(HTTPRequest.to(nginx.url("/slow/1m.bin?\(mark)"))) }
            _ = try await eventually("an answer on its way beside this one") {
                try await agent.send(HTTPRequest.to(nginx.url("/status"))).text.contains("Writing: 2") ? true : nil
            }
            run.cancel()
            _ = await run.result
            let line = try #require(try await nginx.log(mark, count: 1).first)
            #expect(line.sent < 1024 * 1024)
        }
    }

    @Test("silence is a timeout and closes the connection")
    func idleTimeout() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent { agent in
            var request = HTTPRequest.to(nginx.url("/wait?s=3&\(mark)"))
            request.timeouts = Timeouts(idle: .milliseconds(200))
            let error = await failure { () throws(RequestError) in try await agent.send(request) }
            #expect(error?.code == .timeout(.responseHead) && error?.mayHaveBeenProcessed == true)
            let line = try #require(try await nginx.log(mark, count: 1).first)
            #expect(line.status == 499)
        }
    }

    @Test("a total timeout ends a body that is sent slowly")
    func totalTimeout() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            var request = HTTPRequest.to(nginx.url("/slow/1m.bin"))
            request.timeouts = Timeouts(total: .seconds(1))
            let error = await failure { () throws(RequestError) in try await agent.send(request) }
            #expect(error?.code == .timeout(.total) && error?.phase == .body)
        }
    }

    @Test("a shutdown waits for running requests, and ends those that exceed its grace")
    func shutdown() async throws {
        let nginx = try Nginx.shared
        let agent = NetworkAgent()
        let mark = token()
        let short = Task { try await agent.send(HTTPRequest.to(nginx.url("/wait?s=0.5&\(mark)"))) }
        let long = Task { try await agent.send(HTTPRequest.to(nginx.url("/slow/1m.bin?\(mark)"))) }
        _ = try await eventually("the upstream's request") { try Upstream.shared.requests(to: mark).first }
        await agent.shutdown(grace: .seconds(5))
        #expect(try await short.value.status == 200)
        let error = await #expect(throws: RequestError.self) { try await long.value }
        #expect(error?.code == .shutdown)
    }

    @Test("64 megabytes at once arrive unchanged")
    func manyLarge() async throws {
        let nginx = try Nginx.shared
        let right = sha256(Nginx.pattern(1024 * 1024))
        try await withAgent { agent in
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<64 {
                    group.addTask { sha256(try await agent.send(HTTPRequest.to(nginx.url("/1m.bin"))).bytes) }
                }
                for try await digest in group { #expect(digest == right) }
            }
        }
    }
}
