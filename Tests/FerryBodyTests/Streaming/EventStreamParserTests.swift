import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The parsing of `text/event-stream` (WHATWG HTML, 9.2.5 and 9.2.6); the cases are those of the web platform tests,
/// `eventsource/format-*`, in Ferry's words.
@Suite struct EventStreamParserTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let text: String
        let events: [ServerSentEvent]
        var testDescription: String { name }

        init(_ name: String, _ text: String, _ events: [ServerSentEvent]) {
            (self.name, self.text, self.events) = (name, text, events)
        }

        init(_ name: String, _ text: String, data: [String]) {
            self.init(name, text, data.map { ServerSentEvent(data: $0) })
        }
    }

    static let longText = String(repeating: "x", count: 2048)

    static let cases = [
        Case(
            "a byte order mark at the start is skipped", "\u{FEFF}data:1\n\n\u{FEFF}data:2\n\ndata:3\n\n",
            data: ["1", "3"]),
        Case(
            "a second byte order mark is part of a name", "\u{FEFF}\u{FEFF}data:1\n\ndata:2\n\ndata:3\n\n",
            data: ["2", "3"]),
        Case(
            "comments", "data:1\r:\0\n:\r\ndata:2\n:\(longText)\rdata:3\n:data:fail\r:\(longText)\rdata:4\n\n",
            data: ["1\n2\n3\n4"]),
        Case("an event without its empty line is dropped", "retry:1000\ndata:one\n\nid:x\ndata:two", data: ["one"]),
        Case("data without a value", "data:\n\ndata\ndata\n\ndata:test\n\n", data: ["", "\n", "test"]),
        Case(
            "the type holds for one event", "event:test\ndata:x\n\ndata:x\n\n",
            [ServerSentEvent(event: "test", data: "x"), ServerSentEvent(data: "x")]),
        Case("an empty type is message", "event: \ndata:data\n\n", data: ["data"]),
        Case(
            "the id holds until another comes", "id:1\ndata:a\n\ndata:b\n\nid\ndata:c\n\n",
            [
                ServerSentEvent(data: "a", id: "1"), ServerSentEvent(data: "b", id: "1"), ServerSentEvent(data: "c"),
            ]),
        Case(
            "an id with a null is ignored", "id:1\ndata:a\n\nid:2\u{0}3\ndata:b\n\n",
            [ServerSentEvent(data: "a", id: "1"), ServerSentEvent(data: "b", id: "1")]),
        Case(
            "an id without data counts for what follows", "id:7\n\ndata:a\n\n", [ServerSentEvent(data: "a", id: "7")]),
        Case(
            "names are compared byte by byte",
            "data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n data:32\ndata:4\n\n",
            data: ["\0\n 2\n1\n3\n\n4"]),
        Case(
            "unknown fields", "data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n",
            data: ["test\n\ntest"]),
        Case("one leading space", "data:\ttest\rdata: \ndata:test\n\n", data: ["\ttest\n\ntest"]),
        Case("every end of a line", "data:test\r\ndata\ndata:test\r\n\r\n", data: ["test\n\ntest"]),
        Case("CR alone", "data:a\r\rdata:b\r\r", data: ["a", "b"]),
        Case("a null is data", "data:\0\n\n\n\n", data: ["\0"]),
        Case("more than ASCII", "data:ok…\n\ndata:日本\n\n", data: ["ok…", "日本"]),
        Case("a colon in the value", "data:a:b\n\n", data: ["a:b"]),
        Case("only comments", ":\n\n:\n\n", data: []),
        Case("nothing", "", data: []),
    ]

    @Test(arguments: cases) func eachCaseParsesInPiecesOfAnyLength(example: Case) throws {
        let bytes = Array(example.text.utf8)
        for length in [1, 2, 3, 7, max(bytes.count, 1)] {
            var parser = EventStreamParser(limit: 1 << 20)
            var events: [ServerSentEvent] = []
            for start in stride(from: 0, to: bytes.count, by: length) {
                try bytes[start..<min(start + length, bytes.count)].withUnsafeBytes {
                    try parser.take($0, into: &events)
                }
            }
            #expect(events == example.events, "in pieces of \(length)")
        }
    }

    private func parsed(_ text: String, limit: Int = 1 << 20) throws -> (EventStreamParser, [ServerSentEvent]) {
        var parser = EventStreamParser(limit: limit)
        var events: [ServerSentEvent] = []
        try Array(text.utf8).withUnsafeBytes { try parser.take($0, into: &events) }
        return (parser, events)
    }

    @Test func theRetryFieldIsDigitsOnly() throws {
        #expect(try parsed("retry:250\n").0.retry == .milliseconds(250))
        for bogus in ["retry:", "retry:1000x", "retry: -1", "retry:1.5", "retry:99999999999999999999", "retry"] {
            #expect(try parsed(bogus + "\n").0.retry == nil, "\(bogus)")
        }
        // An invalid one keeps the last valid one.
        #expect(try parsed("retry:3000\nretry:1000x\n").0.retry == .seconds(3))
    }

    @Test func theIdCountsWithTheEmptyLineOnly() throws {
        #expect(try parsed("id:1\n\nid:2\ndata:x").0.lastEventID == "1")
        #expect(try parsed("id:1\n\nid:2\ndata:x\n\n").0.lastEventID == "2")
    }

    @Test func whatIsNotTextIsRepaired() throws {
        var parser = EventStreamParser(limit: 100)
        var events: [ServerSentEvent] = []
        try (Array("data:a".utf8) + [0xFF] + Array("b\n\n".utf8)).withUnsafeBytes { try parser.take($0, into: &events) }
        #expect(events.map(\.data) == ["a\u{FFFD}b"])
    }

    @Test func aLineOrAnEventBeyondTheLimitIsRefused() throws {
        let text = "data:" + String(repeating: "x", count: 94)
        #expect(try parsed(text + "\n\n", limit: 100).1.count == 1)
        #expect(throws: EventStreamParser.TooLong.self) { try parsed(text + "xx\n\n", limit: 100) }
        #expect(throws: EventStreamParser.TooLong.self) { try parsed(text + "xx", limit: 100) }
        #expect(throws: EventStreamParser.TooLong.self) {
            try parsed(String(repeating: "data:0123456789\n", count: 10), limit: 100)
        }
        #expect(throws: EventStreamParser.TooLong.self) {
            try parsed(":" + String(repeating: "x", count: 200), limit: 100)
        }
        // Each event may use the whole limit.
        #expect(try parsed(String(repeating: text + "\n\n", count: 50), limit: 100).1.count == 50)
    }
}
