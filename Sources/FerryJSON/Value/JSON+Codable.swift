extension JSON: Codable {
    /// Decodes a value. With `FerryJSONDecoder` it is a view of the document; with another decoder it is built by
    /// trying each kind.
    public init(from decoder: any Decoder) throws {
        if let decoder = decoder as? TapeDecoder {
            self = decoder.session.view(at: decoder.index)
        } else if let container = try? decoder.container(keyedBy: PathKey.self) {
            self.init(
                members: try container.allKeys.map { ($0.stringValue, try container.decode(JSON.self, forKey: $0)) })
        } else if var container = try? decoder.unkeyedContainer() {
            var elements: [JSON] = []
            while !container.isAtEnd { elements.append(try container.decode(JSON.self)) }
            self.init(elements)
        } else {
            self = try Self.scalar(try decoder.singleValueContainer())
        }
    }

    private static func scalar(_ container: any SingleValueDecodingContainer) throws -> JSON {
        if container.decodeNil() { return .null }
        if let value = try? container.decode(Bool.self) { return JSON(value) }
        if let value = try? container.decode(Int64.self) { return JSON(value) }
        if let value = try? container.decode(UInt64.self) { return JSON(value) }
        if let value = try? container.decode(Double.self) { return JSON(value) }
        return JSON(try container.decode(String.self))
    }

    /// Encodes the value by its kind. Numbers that are integers are encoded as integers.
    public func encode(to encoder: any Encoder) throws {
        if let object {
            var container = encoder.container(keyedBy: PathKey.self)
            for (key, value) in object { try container.encode(value, forKey: PathKey(stringValue: key)) }
        } else if let array {
            var container = encoder.unkeyedContainer()
            for element in array { try container.encode(element) }
        } else {
            try encodeScalar(to: encoder)
        }
    }

    private func encodeScalar(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        let tape = document.tape
        switch kind {
        case .bool: try container.encode(bool == true)
        case .string: try container.encode(tape.string(at: index))
        case .number: try encodeNumber(to: &container)
        default: try container.encodeNil()
        }
    }

    private func encodeNumber(to container: inout any SingleValueEncodingContainer) throws {
        if let int { return try container.encode(int) }
        if let uint { return try container.encode(uint) }
        if let double { try container.encode(double) }
    }
}
