import Testing

@testable import FerryRedis

@Suite struct RedisOwedRemovalTests {
    /// Entries that were not replaced may not even exist.
    @Test func aRemovalIsKeptAlthoughManyEntriesWereNotReplaced() {
        let owed = OwedRemovals()
        for number in 0..<10_000 {
            owed.leave("\(number)", owed.add("\(number)", isOutdated: true), isUntold: false)
        }
        #expect(!owed.isRemoved("1"))
        owed.leave("x", owed.add("x"))
        #expect(owed.isRemoved("x") && owed.hasLeft(nothingWaits: false))
        #expect(owed.takeLeft(nothingWaits: false)?.names.map(\.name) == ["x"])
        #expect(!owed.hasLeft(nothingWaits: false) && owed.hasLeft(nothingWaits: true))
        let rest = owed.takeLeft(nothingWaits: true)
        #expect(rest?.names.count == 9999 && rest?.isUntold == false)
        #expect(owed.takeLeft(nothingWaits: true) == nil)
    }
}

/// One command after another over one connection.
@Suite(.timeLimit(.minutes(1))) struct RedisClientTests {
    private let server = FakeRedis()

    private func client(_ change: (inout RedisConfiguration) -> Void = { _ in }) -> RedisClient {
        RedisClient(patient(server.path) { change(&$0) })
    }

    private func words(_ text: String) -> [[UInt8]] { text.split(separator: " ").map { Array($0.utf8) } }

    private static let replies: [(String, RedisClient.Reply)] = [
        ("+OK\r\n", .status("OK")), (":7\r\n", .integer(7)), ("$-1\r\n", .null),
        ("$2\r\nhi\r\n", .bytes([0x68, 0x69])),
        ("*2\r\n$1\r\na\r\n$-1\r\n", .array([.bytes([0x61]), .null])),
    ]

    @Test func everyKindOfReplyIsReturnedOverOneConnection() throws {
        let client = client()
        for (text, reply) in Self.replies {
            server.script { _ in .text(text) }
            #expect(try client.perform(words("GET a")) == reply)
        }
        #expect(server.connections == 1)
        server.stop()
    }

    @Test func anErrorIsThrownAndTheConnectionIsKept() throws {
        let client = client()
        server.script { $0[0] == "GET" ? .text("-ERR no\r\n") : .text("+OK\r\n") }
        #expect(throws: RedisClient.Fault(description: "Redis replied: ERR no", isReply: true)) {
            try client.perform(words("GET a"))
        }
        #expect(try client.perform(words("SET a b")) == .status("OK"))
        #expect(server.connections == 1)
        server.stop()
    }

    /// The next command has a connection of its own: what comes late is not its reply.
    @Test(arguments: [
        FakeRedis.Answer.close, .silence, .text("HTTP/1.1 400 Bad Request\r\n\r\n"), .text(":1\r\n:2\r\n"),
        .endless(Array("$1000000000000\r\n".utf8), 0), .endless(Array("+".utf8), 0x61),
    ]) func anInvalidReplyIsAFaultAndTheNextCommandSucceeds(answer: FakeRedis.Answer) throws {
        let client = client { configuration in
            if case .silence = answer { configuration.timeout = .milliseconds(500) }
        }
        server.script { $0[1] == "bad" ? answer : .text("+OK\r\n") }
        let fault = #expect(throws: RedisClient.Fault.self) { try client.perform(words("GET bad")) }
        #expect(fault?.isReply == false)
        #expect(try client.perform(words("GET good")) == .status("OK"))
        server.stop()
    }

    @Test func connectionFaultsDoNotShowThePassword() throws {
        let missing = RedisClient(RedisConfiguration(unixSocket: "/nowhere.sock"))
        #expect(throws: RedisClient.Fault(description: "no connection to Redis at /nowhere.sock")) {
            try missing.perform(words("GET a"))
        }
        let client = client { $0.password = "canary" }
        server.script { $0[0] == "AUTH" ? .text("-WRONGPASS no\r\n") : .honest }
        let fault = #expect(throws: RedisClient.Fault.self) { try client.perform(words("GET a")) }
        #expect(fault?.description == "Redis at \(server.path) refused the login")
        server.stop()
    }
}
