import CFerry
import Dispatch
import FerryTesting
import Glibc
import Testing

extension CoreTests {
    /// Bytes on a kept connection that belong to no request never answer the next one.
    @Suite struct StrayBytes {
        /// They came between the last read and the request, while a callback kept the loop busy.
        @Test func bytesThatArriveBeforeARequestAreNotItsResponse() async throws {
            var options = CoreLoop.Options()
            options.maxPerHost = 1
            try await withCore(options, probes: false) { core, server in
                server.script(
                    connection: 1,
                    [
                        .expectHead, .wait("second"), .send(answer("first")), .wait("go"), .send(answer("POISON")),
                        .mark("sent"), .expectClose,
                    ])
                server.script(connection: 2, [.expectHead, .send(answer("second")), .serve])
                let arrived = DispatchSemaphore(value: 0)
                let waiting = Task {
                    try await server.waitForMark("sent")
                    arrived.signal()
                }
                let first = try core.submit(CoreRequest("GET", server.baseURL + "/x"))
                try await server.waitForRequests(1)
                let second = try core.submit(
                    CoreRequest("GET", server.baseURL + "/x").with {
                        $0.flags = [.idempotent, .notifyStart]
                        $0.onStarted = {
                            server.signal("go")
                            arrived.wait()
                            // For a moment after a read a connection is not read again.
                            usleep(2_000)
                        }
                    })
                await core.untilStatistics { $0.waiting == 1 }
                server.signal("second")
                let results = await core.results(of: [first, second])
                #expect(results.map { String(decoding: $0.body ?? [], as: UTF8.self) } == ["first", "second"])
                try await waiting.value
            }
        }

        @Test(arguments: [false, true])
        func bytesOnAnIdleConnectionNeverAnswerTheNextRequest(isSecure: Bool) async throws {
            let (options, serverOptions) = try options(secure: isSecure)
            try await withCore(options, server: serverOptions) { core, server in
                server.script(
                    path: "/first", [.send(answer("first")), .wait("poison"), .send(answer("POISON")), .mark("sent")])
                let first = try await core.get(server.baseURL + "/first")
                #expect(first.text == "first")
                server.signal("poison")
                try await server.waitForMark("sent")
                let next = try await core.get(server.baseURL + "/hello")
                #expect(next.text == "Hello, ferry" && next.attempts <= 2)
                #expect(server.connectionCount == 2)
            }
        }

        @Test(arguments: [false, true])
        func bytesRightBehindAnAnswerNeverAnswerTheNextRequest(isSecure: Bool) async throws {
            let (options, serverOptions) = try options(secure: isSecure)
            try await withCore(options, server: serverOptions) { core, server in
                // In one segment, and in two of which the second is there before the next request. (Bytes that arrive
                // after that request was sent count as its response, as nobody can tell.)
                server.script(path: "/one", [.send(answer("one") + answer("POISON")), .mark("sent")])
                server.script(path: "/two", [.send(answer("two")), .send(answer("POISON")), .mark("sent")])
                for round in 0..<60 {
                    for (i, path) in ["one", "two"].enumerated() {
                        let first = try await core.get(server.baseURL + "/" + path)
                        #expect(first.text == path)
                        try await server.waitForMark("sent", count: round * 2 + i + 1)
                        let next = try await core.get(server.baseURL + "/hello")
                        #expect(next.text == "Hello, ferry")
                    }
                }
            }
        }

        @Test func manyPoisonersAtOnce() async throws {
            try await withCore { core, server in
                server.script(path: "/poison", [.send(answer("first") + answer("POISON"))])
                for _ in 0..<20 {
                    let ids = try (0..<64).map { i in
                        try core.submit(CoreRequest("GET", server.baseURL + (i % 2 == 0 ? "/poison" : "/hello")))
                    }
                    for (i, result) in await core.results(of: ids).enumerated() {
                        #expect(result.fault == .ok && result.text == (i % 2 == 0 ? "first" : "Hello, ferry"))
                    }
                }
            }
        }
    }
}
