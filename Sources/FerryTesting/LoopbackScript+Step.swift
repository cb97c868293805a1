internal import FoundationEssentials

extension LoopbackScript.Step: Codable {
    private enum Keys: String, CodingKey {
        case send, sendBase64, times, expectBytes, pattern, drip, interval, chunk, pause, wait, mark
    }

    /// The steps that say all by their name.
    private static let plainSteps: [String: Self] = [
        "expectHead": .expectHead, "expectBody": .expectBody, "expectClose": .expectClose, "close": .close,
        "drop": .drop, "reset": .reset, "halfClose": .halfClose, "stopReading": .stopReading, "keepOpen": .keepOpen,
        "serve": .serve, "restart": .restart, "startTLS": .startTLS, "plain": .plain,
        "stallHandshake": .stallHandshake, "closeHandshake": .closeHandshake,
    ]

    /// Reads a step.
    public init(from decoder: any Decoder) throws {
        if let name = try? decoder.singleValueContainer().decode(String.self) {
            guard let step = Self.plainSteps[name] else { throw Self.unknown(decoder, "no step is named \(name)") }
            self = step
            return
        }
        let values = try decoder.container(keyedBy: Keys.self)
        let times = try values.decodeIfPresent(Int.self, forKey: .times)
        if let text = try values.decodeIfPresent(String.self, forKey: .send) {
            self = times.map { .repeating(text, times: $0) } ?? .send(text)
        } else if let text = try values.decodeIfPresent(String.self, forKey: .sendBase64) {
            guard let data = Data(base64Encoded: text) else { throw Self.unknown(decoder, "sendBase64 is not base64") }
            self = times.map { .repeatingBytes(Array(data), times: $0) } ?? .sendBytes(Array(data))
        } else if let count = try values.decodeIfPresent(Int.self, forKey: .expectBytes) {
            self = .expectBytes(count)
        } else if let count = try values.decodeIfPresent(Int.self, forKey: .pattern) {
            self = .pattern(bytes: count)
        } else if let text = try values.decodeIfPresent(String.self, forKey: .drip) {
            self = .drip(
                text, interval: .milliseconds(try values.decode(Int.self, forKey: .interval)),
                chunk: try values.decodeIfPresent(Int.self, forKey: .chunk) ?? 1)
        } else if let milliseconds = try values.decodeIfPresent(Int.self, forKey: .pause) {
            self = .pause(.milliseconds(milliseconds))
        } else if let name = try values.decodeIfPresent(String.self, forKey: .wait) {
            self = .wait(name)
        } else if let name = try values.decodeIfPresent(String.self, forKey: .mark) {
            self = .mark(name)
        } else {
            throw Self.unknown(decoder, "a step is a name or an object with the step's name in it")
        }
    }

    private static func unknown(_ decoder: any Decoder, _ text: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: text))
    }

    /// Writes a step.
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
    /// Rounded up, so that a short pause is one.
    var wholeMilliseconds: UInt32 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 4_000_000 else { return 4_000_000_000 }
        return UInt32(seconds) * 1_000 + UInt32((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
