public import FoundationEssentials

/// A script for a connection: what the server does, step by step.
///
/// ```swift
/// server.script(path: "/slow", [
///     .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
///     .mark("half"),              // try await server.waitForMark("half")
///     .wait("go"),                // server.signal("go")
///     .send("cde"),
///     .serve,
/// ])
/// ```
///
/// A sending step ends when all its bytes were passed to the system. After the last step, the connection stays open and
/// silent until the client closes it. The script ends if the client closes while a step waits for it or for a time.
///
/// On a server with TLS, the handshake comes before the first step, unless that is `.plain`, `.stallHandshake` or
/// `.closeHandshake`. If there is a `.startTLS`, the handshake is done there.
///
/// Scripts can also be read from JSON, see ``Step`` and ``Rule``.
public struct LoopbackScript: Sendable, Equatable, ExpressibleByArrayLiteral {
    /// The steps, in order.
    public var steps: [Step]

    /// Creates a script from these steps.
    public init(_ steps: [Step]) {
        self.steps = steps
    }

    /// Creates a script from these steps.
    public init(arrayLiteral elements: Step...) {
        steps = elements
    }

    /// One step of a script.
    ///
    /// In JSON a step is a string, `"expectHead"`, or an object whose first key is the step: `{"send": "text"}`,
    /// `{"sendBase64": "…"}`, either with `"times": 200000`; `{"expectBytes": 100}`, `{"pattern": 1000}`,
    /// `{"keyUpdates": 10}`, `{"drip": "text", "interval": 50, "chunk": 1}`, `{"pause": 50}`, `{"wait": "go"}`,
    /// `{"mark": "half"}`. Times are in milliseconds.
    public enum Step: Sendable, Equatable {
        /// Reads the head of a request, which is counted and recorded.
        case expectHead
        /// Reads the body that the last head announced, by length or in chunks.
        case expectBody
        /// Reads this many bytes.
        case expectBytes(Int)
        /// Reads until the client closes its side.
        case expectClose
        /// Sends text unchanged.
        case send(String)
        /// Sends bytes.
        case sendBytes([UInt8])
        /// Sends text this many times, without holding all copies in memory.
        case repeating(String, times: Int)
        /// Sends bytes this many times, without holding all copies in memory.
        case repeatingBytes([UInt8], times: Int)
        /// Sends this many bytes of ``LoopbackServer/pattern(_:)``.
        case pattern(bytes: Int)
        /// Sends text in pieces of `chunk` bytes, one at each interval.
        case drip(String, interval: Duration, chunk: Int = 1)
        /// Pauses; the time is rounded up to whole milliseconds.
        case pause(Duration)
        /// Waits until ``LoopbackServer/signal(_:)`` is called with this name.
        case wait(String)
        /// Releases ``LoopbackServer/waitForMark(_:count:)`` of this name.
        case mark(String)
        /// Closes with FIN; with TLS after a close_notify.
        case close
        /// Closes with FIN; with TLS without a close_notify.
        case drop
        /// Closes with RST.
        case reset
        /// Sends FIN, and continues reading.
        case halfClose
        /// Stops reading the socket.
        case stopReading
        /// Stays open and silent until the client closes, as after the last step.
        case keepOpen
        /// Continues as the ordinary server, with this connection's next request.
        case serve
        /// Starts again with the first step. If no step since the start waited for the client or for time, this acts as
        /// `.keepOpen`.
        case restart
        /// Does the TLS handshake here.
        case startTLS
        /// Uses no TLS on this connection, although the server has it. First step only.
        case plain
        /// Reads the client's hello and never responds. First step only.
        case stallHandshake
        /// Reads the client's hello and closes. First step only.
        case closeHandshake
        /// Sends this many KeyUpdate messages (RFC 8446, 4.6.3), which have no data, at most a million. Closes the
        /// connection if it does not use TLS 1.3.
        case keyUpdates(Int)
    }

    /// A script, and the requests or connections it is used for.
    ///
    /// In JSON `{"path": "/slow", "uses": 1, "steps": […]}`, `{"connection": 2, "steps": […]}`, `{"connections": [2,
    /// 5], "steps": […]}`, or for every connection `{"steps": […]}`. A file of them is `{"scripts": […]}`.
    public struct Rule: Sendable, Equatable {
        /// The requests or connections a script is used for.
        public enum Place: Sendable, Equatable {
            /// Requests whose path begins with this text.
            case path(String)
            /// Connections with these numbers, 1 for the first accepted.
            case connections(ClosedRange<Int>)
            /// Every connection.
            case everyConnection
        }

        /// The requests or connections the script is used for.
        public var place: Place
        /// How often it is used; `nil` for no limit.
        public var uses: Int?
        /// The script.
        public var script: LoopbackScript

        /// Creates a rule.
        public init(_ place: Place, uses: Int? = nil, _ script: LoopbackScript) {
            self.place = place
            self.uses = uses
            self.script = script
        }
    }
}

extension LoopbackScript.Step: Codable {
    private enum Keys: String, CodingKey {
        case send, sendBase64, times, expectBytes, pattern, keyUpdates, drip, interval, chunk, pause, wait, mark
    }

    /// The steps without parameters.
    private static let plainSteps: [String: Self] = [
        "expectHead": .expectHead, "expectBody": .expectBody, "expectClose": .expectClose, "close": .close,
        "drop": .drop, "reset": .reset, "halfClose": .halfClose, "stopReading": .stopReading, "keepOpen": .keepOpen,
        "serve": .serve, "restart": .restart, "startTLS": .startTLS, "plain": .plain,
        "stallHandshake": .stallHandshake, "closeHandshake": .closeHandshake,
    ]

    /// Decodes a step.
    public init(from decoder: any Decoder) throws {
        if let name = try? decoder.singleValueContainer().decode(String.self) {
            guard let step = Self.plainSteps[name] else { throw Self.unknown(decoder, "no step is named \(name)") }
            self = step
            return
        }
        let values = try decoder.container(keyedBy: Keys.self)
        func number(_ key: Keys, in range: ClosedRange<Int>) throws -> Int? {
            guard let number = try values.decodeIfPresent(Int.self, forKey: key) else { return nil }
            if range.contains(number) { return number }
            throw DecodingError.dataCorruptedError(
                forKey: key, in: values,
                debugDescription: "\(key.rawValue) is between \(range.lowerBound) and \(range.upperBound)")
        }
        let times = try number(.times, in: 0...Int(Int32.max))
        if let text = try values.decodeIfPresent(String.self, forKey: .send) {
            self = times.map { .repeating(text, times: $0) } ?? .send(text)
        } else if let text = try values.decodeIfPresent(String.self, forKey: .sendBase64) {
            guard let data = Data(base64Encoded: text) else { throw Self.unknown(decoder, "sendBase64 is not base64") }
            self = times.map { .repeatingBytes(Array(data), times: $0) } ?? .sendBytes(Array(data))
        } else if let count = try number(.expectBytes, in: 0...Int.max) {
            self = .expectBytes(count)
        } else if let count = try number(.pattern, in: 0...Int.max) {
            self = .pattern(bytes: count)
        } else if let count = try number(.keyUpdates, in: 0...1_000_000) {
            self = .keyUpdates(count)
        } else if let text = try values.decodeIfPresent(String.self, forKey: .drip) {
            self = .drip(
                text,
                interval: .milliseconds(
                    try number(.interval, in: 0...Self.mostMilliseconds)
                        ?? values.decode(Int.self, forKey: .interval)),
                chunk: try number(.chunk, in: 1...Int.max) ?? 1)
        } else if let milliseconds = try number(.pause, in: 0...Self.mostMilliseconds) {
            self = .pause(.milliseconds(milliseconds))
        } else if let name = try values.decodeIfPresent(String.self, forKey: .wait) {
            self = .wait(name)
        } else if let name = try values.decodeIfPresent(String.self, forKey: .mark) {
            self = .mark(name)
        } else {
            throw Self.unknown(decoder, "a step is a name or an object with the step's name in it")
        }
        try refuseOthers(decoder)
    }

    /// A day.
    private static let mostMilliseconds = 86_400_000

    /// A misspelled member, or a second step in the same object, would be no part of the test.
    private func refuseOthers(_ decoder: any Decoder) throws {
        let known: Set<String> =
            switch self {
            case .send, .repeating: ["send", "times"]
            case .sendBytes, .repeatingBytes: ["sendBase64", "times"]
            case .drip: ["drip", "interval", "chunk"]
            default: []
            }
        let members = try decoder.container(keyedBy: MemberName.self).allKeys.map(\.stringValue)
        let others = known.isEmpty ? Array(members.sorted().dropFirst()) : members.filter { !known.contains($0) }
        if let other = others.min() { throw Self.unknown(decoder, "a step has no member \(other) here") }
    }

    private static func unknown(_ decoder: any Decoder, _ text: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: text))
    }

    /// Encodes a step.
    public func encode(to encoder: any Encoder) throws {
        if let name = Self.plainSteps.first(where: { $0.value == self })?.key {
            var value = encoder.singleValueContainer()
            try value.encode(name)
            return
        }
        var values = encoder.container(keyedBy: Keys.self)
        switch self {
        case .send(let text):
            try values.encode(text, forKey: .send)
        case .repeating(let text, let times):
            try values.encode(text, forKey: .send)
            try values.encode(times, forKey: .times)
        case .sendBytes(let bytes):
            try values.encode(Data(bytes).base64EncodedString(), forKey: .sendBase64)
        case .repeatingBytes(let bytes, let times):
            try values.encode(Data(bytes).base64EncodedString(), forKey: .sendBase64)
            try values.encode(times, forKey: .times)
        case .expectBytes(let count):
            try values.encode(count, forKey: .expectBytes)
        case .pattern(let count):
            try values.encode(count, forKey: .pattern)
        case .keyUpdates(let count):
            try values.encode(count, forKey: .keyUpdates)
        case .drip(let text, let interval, let chunk):
            try values.encode(text, forKey: .drip)
            try values.encode(interval.wholeMilliseconds, forKey: .interval)
            try values.encode(chunk, forKey: .chunk)
        case .pause(let time):
            try values.encode(time.wholeMilliseconds, forKey: .pause)
        case .wait(let name):
            try values.encode(name, forKey: .wait)
        case .mark(let name):
            try values.encode(name, forKey: .mark)
        default:
            preconditionFailure("a step without values stands in plainSteps")
        }
    }
}

extension Duration {
    /// Rounded up, so that a short pause is not skipped.
    var wholeMilliseconds: UInt32 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 4_000_000 else { return 4_000_000_000 }
        return UInt32(seconds) * 1_000 + UInt32((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}

extension LoopbackScript {
    /// Reads the rules of a JSON file: `{"scripts": [rule, …]}`, see ``Rule``.
    ///
    /// Throws ``LoopbackError/file(_:)`` or ``LoopbackError/script(_:)``.
    public static func rules(contentsOf path: String) throws(LoopbackError) -> [Rule] {
        guard let data = FileManager.default.contents(atPath: path) else { throw .file(path) }
        return try rules(json: data)
    }

    /// Reads the rules of a JSON text.
    public static func rules(json: Data) throws(LoopbackError) -> [Rule] {
        do {
            return try JSONDecoder().decode(RuleFile.self, from: json).scripts
        } catch {
            throw .script(String(describing: error))
        }
    }

    private struct RuleFile: Codable {
        var scripts: [Rule]
    }
}

extension LoopbackScript: Codable {
    /// Decodes an array of steps.
    public init(from decoder: any Decoder) throws {
        self.init(try [Step](from: decoder))
    }

    /// Encodes an array of steps.
    public func encode(to encoder: any Encoder) throws {
        try steps.encode(to: encoder)
    }
}

/// Any member of an object.
private struct MemberName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension LoopbackScript.Rule: Codable {
    private enum Keys: String, CodingKey {
        case path, connection, connections, uses, steps
    }

    /// Decodes a rule.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Keys.self)
        let names = try decoder.container(keyedBy: MemberName.self).allKeys.map(\.stringValue)
        if let other = names.filter({ Keys(stringValue: $0) == nil }).min() {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "a rule has no member \(other)"))
        }
        func atLeastOne(_ number: Int, _ key: Keys) throws -> Int {
            if number >= 1 { return number }
            throw DecodingError.dataCorruptedError(
                forKey: key, in: values, debugDescription: "\(key.rawValue) counts from 1")
        }
        let place: Place
        if let path = try values.decodeIfPresent(String.self, forKey: .path) {
            place = .path(path)
        } else if let number = try values.decodeIfPresent(Int.self, forKey: .connection) {
            place = .connections(try atLeastOne(number, .connection)...number)
        } else if let ends = try values.decodeIfPresent([Int].self, forKey: .connections) {
            guard ends.count == 2, ends[0] <= ends[1] else {
                throw DecodingError.dataCorruptedError(
                    forKey: .connections, in: values, debugDescription: "connections is [first, last]")
            }
            place = .connections(try atLeastOne(ends[0], .connections)...ends[1])
        } else {
            place = .everyConnection
        }
        self.init(
            place, uses: try values.decodeIfPresent(Int.self, forKey: .uses).map { try atLeastOne($0, .uses) },
            try values.decode(LoopbackScript.self, forKey: .steps))
    }

    /// Encodes a rule.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Keys.self)
        switch place {
        case .path(let path): try values.encode(path, forKey: .path)
        case .connections(let numbers) where numbers.count == 1:
            try values.encode(numbers.lowerBound, forKey: .connection)
        case .connections(let numbers):
            try values.encode([numbers.lowerBound, numbers.upperBound], forKey: .connections)
        case .everyConnection: break
        }
        try values.encodeIfPresent(uses, forKey: .uses)
        try values.encode(script, forKey: .steps)
    }
}
