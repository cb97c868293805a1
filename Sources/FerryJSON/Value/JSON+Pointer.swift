extension JSON {
    /// The value that a JSON Pointer names (RFC 6901), `/items/3/name`; nil when there is none, or the text is no
    /// pointer. The empty pointer names the value itself.
    public func value(atPointer pointer: String) -> JSON? {
        guard !pointer.isEmpty else { return self }
        guard pointer.utf8.first == UInt8(ascii: "/") else { return nil }
        var value = self
        for token in pointer.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard let key = Self.unescaped(token) else { return nil }
            let next = value.kind == .array ? Self.position(key).flatMap { value[$0] } : value[key]
            guard let next else { return nil }
            value = next
        }
        return value
    }

    /// `~1` is a slash and `~0` a tilde; any other tilde is an error.
    private static func unescaped(_ token: Substring.UTF8View) -> String? {
        guard token.contains(UInt8(ascii: "~")) else { return String(Substring(token)) }
        var bytes: [UInt8] = []
        var rest = token.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "~") else {
                bytes.append(byte)
                continue
            }
            switch rest.next() {
            case UInt8(ascii: "0"): bytes.append(UInt8(ascii: "~"))
            case UInt8(ascii: "1"): bytes.append(UInt8(ascii: "/"))
            default: return nil
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Digits alone, without a leading zero.
    private static func position(_ token: String) -> Int? {
        guard token.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        guard token == "0" || token.utf8.first != UInt8(ascii: "0") else { return nil }
        return Int(token)
    }
}
