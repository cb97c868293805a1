extension Arguments {
    /// `a=1&b%5B%5D=x`: the form of a query and of a form's body. Empty when nothing is to be said.
    func formEncoded() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(values.count * 24)
        for (name, value) in values.sorted(by: { $0.key < $1.key }) {
            var key: [UInt8] = []
            key.appendArgument(name)
            Self.append(value, under: key, to: &bytes)
        }
        return bytes
    }

    private static func append(_ value: Value, under key: [UInt8], to bytes: inout [UInt8]) {
        switch value {
        case .object(let members):
            for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                var inner = key
                inner.appendEscaped(0x5B)
                inner.appendArgument(name)
                inner.appendEscaped(0x5D)
                append(value, under: inner, to: &bytes)
            }
        case .array(let elements):
            var inner = key
            inner.appendEscaped(0x5B)
            inner.appendEscaped(0x5D)
            for element in elements { append(element, under: inner, to: &bytes) }
        case .null: pair(key, nil, to: &bytes)
        case .bool(let value): pair(key, value ? "true" : "false", to: &bytes)
        case .integer(let value): pair(key, String(value), to: &bytes)
        case .number(let value): pair(key, text(of: value), to: &bytes)
        case .string(let value): pair(key, value, to: &bytes)
        }
    }

    private static func pair(_ key: [UInt8], _ value: String?, to bytes: inout [UInt8]) {
        if !bytes.isEmpty { bytes.append(0x26) }
        bytes.append(contentsOf: key)
        guard let value else { return }
        bytes.append(0x3D)
        bytes.appendArgument(value)
    }

    /// The arguments as a JSON object, names sorted; `nil` when a number in them is not finite (RFC 8259, 6).
    func jsonEncoded() -> [UInt8]? {
        var bytes: [UInt8] = []
        return Self.append(.object(values), to: &bytes) ? bytes : nil
    }

    private static func append(_ value: Value, to bytes: inout [UInt8]) -> Bool {
        switch value {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): bytes.append(contentsOf: String(value).utf8)
        case .number(let value):
            guard value.isFinite else { return false }
            bytes.append(contentsOf: text(of: value).utf8)
        case .string(let value): bytes.appendJSONString(value)
        case .array(let elements):
            bytes.append(0x5B)
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(0x2C) }
                guard append(element, to: &bytes) else { return false }
            }
            bytes.append(0x5D)
        case .object(let members):
            bytes.append(0x7B)
            for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { bytes.append(0x2C) }
                bytes.appendJSONString(member.key)
                bytes.append(0x3A)
                guard append(member.value, to: &bytes) else { return false }
            }
            bytes.append(0x7D)
        }
        return true
    }

    /// `2`, not `2.0`: as every other client writes it.
    static func text(of value: Double) -> String {
        let text = value.description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

extension [UInt8] {
    fileprivate mutating func appendArgument(_ text: String) {
        for byte in text.utf8 {
            if ByteSet.argument.contains(byte) { append(byte) } else { appendEscaped(byte) }
        }
    }

    fileprivate mutating func appendJSONString(_ text: String) {
        append(0x22)
        for byte in text.utf8 {
            switch byte {
            case 0x22, 0x5C:
                append(0x5C)
                append(byte)
            case 0x0A: append(contentsOf: [0x5C, 0x6E])
            case 0x0D: append(contentsOf: [0x5C, 0x72])
            case 0x09: append(contentsOf: [0x5C, 0x74])
            case 0..<0x20:
                append(contentsOf: [0x5C, 0x75, 0x30, 0x30])
                append(byte < 16 ? 0x30 : 0x31)
                append(contentsOf: String(byte & 15, radix: 16).utf8)
            default: append(byte)
            }
        }
        append(0x22)
    }
}
