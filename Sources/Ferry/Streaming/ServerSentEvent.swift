/// One event of a stream of server-sent events (the WHATWG HTML standard, section 9.2).
public struct ServerSentEvent: Sendable, Hashable {
    /// The type of the event, the field `event`; `message` where the server names none.
    public let event: String
    /// The data: the `data` fields, joined by line feeds.
    public let data: String
    /// The last `id` that the server has sent, with this event or before it; empty when there was none.
    public let id: String

    /// An event of its parts.
    public init(event: String = "message", data: String, id: String = "") {
        self.event = event
        self.data = data
        self.id = id
    }
}

/// Parses the bytes of `text/event-stream` into events (WHATWG HTML, 9.2.5 and 9.2.6), in pieces of any length.
///
/// It holds one line and one event in memory: more than `limit` bytes of them are a fault. What is not UTF-8 is
/// repaired. An event at the end of the stream that no empty line follows is dropped, as the standard says.
struct EventStreamParser {
    /// The line, or the data of the event, is longer than the limit.
    struct TooLong: Error {}

    private let limit: Int
    /// The begin of a line whose end has not come.
    private var line: [UInt8] = []
    /// The `data` fields so far, with a line feed behind each.
    private var data: [UInt8] = []
    private var event: [UInt8] = []
    /// The value of the last `id` field, which the next event carries.
    private var id = ""
    /// The last line ended with CR: a LF that follows belongs to it.
    private var skipsLineFeed = false
    /// Nothing has come yet: a byte order mark is skipped.
    private var isAtStart = true

    /// The id of the last event that was complete: the `Last-Event-ID` of a reconnect.
    private(set) var lastEventID = ""
    /// What the last `retry` field has asked for.
    private(set) var retry: Duration?

    /// Continues behind a stream that was broken off, whose last event had this id.
    init(limit: Int, lastEventID: String = "") {
        self.limit = limit
        self.lastEventID = lastEventID
        id = lastEventID
    }

    /// Takes a piece of the stream, and adds the events that are complete with it.
    mutating func take(_ bytes: UnsafeRawBufferPointer, into events: inout [ServerSentEvent]) throws {
        var rest = bytes[...]
        while let first = rest.first {
            if skipsLineFeed {
                skipsLineFeed = false
                if first == UInt8(ascii: "\n") {
                    rest.removeFirst()
                    continue
                }
            }
            guard let end = Self.endOfLine(rest) else {
                if line.count + rest.count > limit { throw TooLong() }
                line.append(contentsOf: rest)
                return
            }
            skipsLineFeed = rest[end] == UInt8(ascii: "\r")
            if line.isEmpty {
                if end - rest.startIndex > limit { throw TooLong() }
                try take(line: UnsafeRawBufferPointer(rebasing: rest[..<end]), &events)
            } else {
                if line.count + (end - rest.startIndex) > limit { throw TooLong() }
                line.append(contentsOf: rest[..<end])
                let whole = line
                line.removeAll(keepingCapacity: true)
                try whole.withUnsafeBytes { try take(line: $0, &events) }
            }
            rest = rest[(end + 1)...]
        }
    }

    private static func endOfLine(_ bytes: Slice<UnsafeRawBufferPointer>) -> Int? {
        bytes.firstIndex { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
    }

    /// A line without its end.
    private mutating func take(line: UnsafeRawBufferPointer, _ events: inout [ServerSentEvent]) throws {
        var line = line
        if isAtStart {
            isAtStart = false
            if line.starts(with: [0xEF, 0xBB, 0xBF]) { line = UnsafeRawBufferPointer(rebasing: line[3...]) }
        }
        if line.isEmpty { return dispatch(into: &events) }
        let colon = line.firstIndex(of: UInt8(ascii: ":"))
        // A comment.
        if colon == 0 { return }
        let name = UnsafeRawBufferPointer(rebasing: line[..<(colon ?? line.count)])
        var value = UnsafeRawBufferPointer(rebasing: line[(colon.map { $0 + 1 } ?? line.count)...])
        if value.first == UInt8(ascii: " ") { value = UnsafeRawBufferPointer(rebasing: value[1...]) }
        try set(name, to: value)
    }

    private mutating func set(_ name: UnsafeRawBufferPointer, to value: UnsafeRawBufferPointer) throws {
        if name.elementsEqual("data".utf8) {
            if data.count + value.count >= limit { throw TooLong() }
            data.append(contentsOf: value)
            data.append(UInt8(ascii: "\n"))
        } else if name.elementsEqual("event".utf8) {
            event = Array(value)
        } else if name.elementsEqual("id".utf8) {
            if !value.contains(0) { id = String(decoding: value, as: UTF8.self) }
        } else if name.elementsEqual("retry".utf8) {
            let isNumber = !value.isEmpty && value.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
            guard isNumber, let time = Int64(String(decoding: value, as: UTF8.self)) else { return }
            retry = .milliseconds(time)
        }
    }

    /// [an empty line] The event is complete. One without data is dropped; its id counts.
    private mutating func dispatch(into events: inout [ServerSentEvent]) {
        defer {
            data.removeAll(keepingCapacity: true)
            event.removeAll(keepingCapacity: true)
        }
        lastEventID = id
        if data.isEmpty { return }
        let text = data.withUnsafeBytes { String(decoding: $0.dropLast(), as: UTF8.self) }
        let type = event.isEmpty ? "message" : String(decoding: event, as: UTF8.self)
        events.append(ServerSentEvent(event: type, data: text, id: id))
    }
}
