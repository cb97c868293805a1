import FerryTesting
import Foundation
import Glibc
import Testing

extension LoopbackTests {
    @Suite("LoopbackServer: scripts", .timeLimit(.minutes(1)))
    struct LoopbackScriptTests {
        private let get = "GET /x HTTP/1.1\r\nHost: t\r\n\r\n"

        private func run(_ script: LoopbackScript, _ request: String? = nil) async throws -> [UInt8] {
            let server = try LoopbackServer()
            server.script(connection: 1, script)
            let client = try RawClient(port: server.port)
            if let request { try await client.send(request) }
            return try await client.receiveAll()
        }

        @Test func bytesComeBeforeAnyRequest() async throws {
            #expect(try await run([.send("early"), .close]) == Array("early".utf8))
        }

        @Test func headBodyAndBytesAreExpectedInTurn() async throws {
            let server = try LoopbackServer()
            server.script([
                .expectHead, .send("H"), .expectBody, .send("B"), .expectHead, .expectBody, .send("C"), .expectBytes(4),
                .send("4"), .close,
            ])
            let client = try RawClient(port: server.port)
            try await client.send("POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\n")
            #expect(try await client.receive(exactly: 1) == Array("H".utf8))
            try await client.send("abc")
            #expect(try await client.receive(exactly: 1) == Array("B".utf8))
            try await client.send("POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n")
            #expect(try await client.receive(exactly: 1) == Array("C".utf8))
            try await client.send("1234")
            #expect(try await client.receiveAll() == Array("4".utf8))
            #expect(server.requests.map(\.text) == ["abc", "xy1234"])
        }

        @Test func resetIsRST() async throws {
            let server = try LoopbackServer()
            server.script([.expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), .reset])
            let client = try RawClient(port: server.port)
            try await client.send(get)
            #expect(try await client.readResponse(toHead: true).status == 200)
            #expect(try await client.receive(exactly: 3) == Array("abc".utf8))
            let error = await #expect(throws: SocketError.self) { _ = try await client.receiveAll() }
            #expect(error?.number == ECONNRESET)
        }

        @Test func closeIsFINAlsoWithBytesUnread() async throws {
            let server = try LoopbackServer()
            server.script([.expectHead, .stopReading, .send("a"), .wait("sent"), .send("b"), .close])
            let client = try RawClient(port: server.port)
            try await client.send(get)
            #expect(try await client.receive(exactly: 1) == Array("a".utf8))
            try await client.send("more that nobody reads")
            server.signal("sent")
            #expect(try await client.receiveAll() == Array("b".utf8))
        }

        @Test func halfCloseGoesOnReading() async throws {
            let server = try LoopbackServer()
            server.script([
                .send("bye"), .halfClose, .expectBytes(5), .mark("read"), .expectClose, .mark("closed"), .close,
            ])
            let client = try RawClient(port: server.port)
            #expect(try await client.receiveAll() == Array("bye".utf8))
            try await client.send("still")
            try await server.waitForMark("read")
            client.endSending()
            try await server.waitForMark("closed")
            try await server.waitForOpenConnections(atMost: 0)
        }

        @Test func withoutAnyStepsTheConnectionIsHeld() async throws {
            let server = try LoopbackServer()
            server.script(path: "/x", [])
            server.script(connection: 2, [])
            for _ in 1...2 {
                let client = try RawClient(port: server.port)
                try await client.send(get)
                client.endSending()
                #expect(try await client.receiveAll().isEmpty)
            }
            try await server.waitForOpenConnections(atMost: 0)
        }

        @Test func waitPassesOnlyAfterItsSignal() async throws {
            let server = try LoopbackServer()
            server.script([.mark("waiting"), .wait("go"), .send("went"), .close])
            let client = try RawClient(port: server.port)
            try await server.waitForMark("waiting")
            server.signal("other")
            server.signal("go")
            #expect(try await client.receiveAll() == Array("went".utf8))
            let later = try RawClient(port: server.port)
            #expect(try await later.receiveAll() == Array("went".utf8), "a signal stays")
            try await server.waitForMark("waiting", count: 2)
        }

        @Test func pauseAndDripTakeTheirTime() async throws {
            let clock = ContinuousClock()
            let start = clock.now
            let bytes = try await run([
                .pause(.milliseconds(20)), .drip("abcdef", interval: .milliseconds(10), chunk: 2), .close,
            ])
            #expect(bytes == Array("abcdef".utf8))
            #expect(start.duration(to: clock.now) >= .milliseconds(50))
        }

        @Test func repeatingSendsEveryRound() async throws {
            let line = "HTTP/1.1 100 Continue\r\n\r\n"
            let bytes = try await run([.expectHead, .repeating(line, times: 200_000), .send("end"), .close], get)
            #expect(bytes.count == line.utf8.count * 200_000 + 3)
            #expect(bytes.prefix(100_000) == Array(String(repeating: line, count: 4_000).utf8)[...])
            #expect(bytes.suffix(28) == Array((line + "end").utf8)[...])
            #expect(
                try await run([.repeatingBytes([1, 2], times: 3), .repeating("x", times: 0), .close]) == [
                    1, 2, 1, 2, 1, 2,
                ])
        }

        @Test func patternIsThatOfTheRoute() async throws {
            #expect(try await run([.pattern(bytes: 300_000), .close]) == LoopbackServer.pattern(0..<300_000))
        }

        @Test func stopReadingLetsTheClientsBytesPileUp() async throws {
            let server = try LoopbackServer()
            server.script([.expectHead, .stopReading, .mark("stopped")])
            let client = try RawClient(port: server.port)
            try await client.send(get)
            try await server.waitForMark("stopped")
            let before = server.receivedByteCount
            _ = fcntl(client.descriptor, F_SETFL, O_NONBLOCK)
            let block = [UInt8](repeating: 0, count: 65_536)
            var sent = 0
            while true {
                let count = Glibc.send(client.descriptor, block, block.count, Int32(MSG_NOSIGNAL))
                if count < 0 { break }
                sent += count
                try #require(sent < 100_000_000, "the server must not read")
            }
            #expect(errno == EAGAIN)
            #expect(server.receivedByteCount == before)
        }

        @Test func keepOpenHoldsUntilTheClientCloses() async throws {
            let server = try LoopbackServer()
            server.script([.expectHead, .send("HTTP/1.1 200"), .keepOpen, .send("never")])
            do {
                let client = try RawClient(port: server.port)
                try await client.send(get)
                #expect(try await client.receive(exactly: 12) == Array("HTTP/1.1 200".utf8))
                try await client.send("ignored")
                #expect(server.openConnectionCount == 1)
            }
            try await server.waitForOpenConnections(atMost: 0)
        }

        @Test func serveGoesOnAsTheOrdinaryServer() async throws {
            let server = try LoopbackServer()
            server.script([.expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"), .serve])
            let client = try RawClient(port: server.port)
            try await client.send(get + "GET /hello HTTP/1.1\r\n\r\n")
            #expect(try await client.readResponse().text == "x")
            #expect(try await client.readResponse().text == "Hello, ferry")
        }

        @Test func restartAnswersEveryRequestAlike() async throws {
            let server = try LoopbackServer()
            server.script(path: "/x", [.expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"), .restart])
            let client = try RawClient(port: server.port)
            for _ in 0..<5 { #expect(try await client.exchange(get).text == "x") }
            server.script(connection: 2, [.send("y"), .restart])
            let second = try RawClient(port: server.port)
            #expect(try await second.receive(exactly: 1) == Array("y".utf8))
            #expect(try await RawClient(port: server.port).get("/hello").status == 200, "the loop is free")
        }

        @Test func unsolicitedAnswerComesAfterTheFirst() async throws {
            let server = try LoopbackServer()
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
            server.script(
                path: "/x", uses: 1, [.send(answer + "first!"), .wait("poison"), .send(answer + "POISON"), .serve])
            let client = try RawClient(port: server.port)
            #expect(try await client.exchange(get).text == "first!")
            server.signal("poison")
            #expect(try await client.readResponse().text == "POISON")
            #expect(try await client.exchange(get).status == 404)
        }

        @Test func pathScriptsAreUsedUpInOrder() async throws {
            let server = try LoopbackServer()
            func answer(_ text: String) -> LoopbackScript {
                [.expectHead, .expectBody, .send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\(text)"), .serve]
            }
            server.handle("/flaky") { _ in LoopbackResponse(text: "h") }
            server.script(path: "/flaky", uses: 2, answer("1"))
            server.script(path: "/flaky", uses: 1, answer("2"))
            let client = try RawClient(port: server.port)
            var texts: [String] = []
            for _ in 0..<4 {
                let request = "POST /flaky HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"
                texts.append(try await client.exchange(request).text)
            }
            #expect(texts == ["1", "1", "2", "h"])
            #expect(server.requests.map(\.text) == ["ab", "ab", "ab", "ab"])
        }

        @Test func connectionScriptsAreForTheirNumbers() async throws {
            let server = try LoopbackServer()
            server.install(.init(.connections(2...3), [.close]))
            var ends: [Bool] = []
            for _ in 0..<4 {
                let client = try RawClient(port: server.port)
                let answer = try? await client.get("/hello")
                ends.append(answer == nil)
            }
            #expect(ends == [false, true, true, false])
        }

        @Test func clientThatLeavesEndsAWaitingScript() async throws {
            let server = try LoopbackServer()
            server.script([.mark("here"), .wait("never")])
            do {
                let client = try RawClient(port: server.port)
                try await server.waitForMark("here")
                _ = client
            }
            try await server.waitForOpenConnections(atMost: 0)
        }

        @Test func clientThatLeavesEndsASendingScript() async throws {
            let server = try LoopbackServer()
            server.script([.repeating(String(repeating: "z", count: 1_000), times: .max)])
            do {
                let client = try RawClient(port: server.port)
                _ = try await client.receive(exactly: 1_000_000)
            }
            try await server.waitForOpenConnections(atMost: 0)
        }
    }
}
