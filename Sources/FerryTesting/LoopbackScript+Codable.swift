public import FoundationEssentials

extension LoopbackScript {
    /// The rules of a JSON file: `{"scripts": [rule, …]}`, see ``Rule``.
    ///
    /// Throws ``LoopbackError/file(_:)`` or ``LoopbackError/script(_:)``.
    public static func rules(contentsOf path: String) throws(LoopbackError) -> [Rule] {
        guard let data = FileManager.default.contents(atPath: path) else { throw .file(path) }
        return try rules(json: data)
    }

    /// The rules of JSON text.
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
    /// Reads an array of steps.
    public init(from decoder: any Decoder) throws {
        self.init(try [Step](from: decoder))
    }

    /// Writes an array of steps.
    public func encode(to encoder: any Encoder) throws {
        try steps.encode(to: encoder)
    }
}

extension LoopbackScript.Rule: Codable {
    private enum Keys: String, CodingKey {
        case path, connection, connections, uses, steps
    }

    /// Reads a rule.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Keys.self)
        let place: Place
        if let path = try values.decodeIfPresent(String.self, forKey: .path) {
            place = .path(path)
        } else if let number = try values.decodeIfPresent(Int.self, forKey: .connection) {
            place = .connections(number...number)
        } else if let ends = try values.decodeIfPresent([Int].self, forKey: .connections) {
            guard ends.count == 2, ends[0] <= ends[1] else {
                throw DecodingError.dataCorruptedError(
                    forKey: .connections, in: values, debugDescription: "connections is [first, last]")
            }
            place = .connections(ends[0]...ends[1])
        } else {
            place = .everyConnection
        }
        self.init(
            place, uses: try values.decodeIfPresent(Int.self, forKey: .uses),
            try values.decode(LoopbackScript.self, forKey: .steps))
    }

    /// Writes a rule.
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
