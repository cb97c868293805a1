internal import CFerryJSON
internal import FoundationEssentials

/// The decoder at one value, and its single value container.
struct TapeDecoder: Decoder {
    let session: DecodingSession
    let index: Int

    var codingPath: [any CodingKey] { session.codingPath(to: index) }
    var userInfo: [CodingUserInfoKey: Any] { session.options.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try session.container(keyedBy: type, at: index)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try UnkeyedContainer(session: session, index: index)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }
}

extension TapeDecoder: SingleValueDecodingContainer {
    func decodeNil() -> Bool { session.isNull(at: index) }
    func decode(_ type: Bool.Type) throws -> Bool { try session.bool(at: index) }
    func decode(_ type: String.Type) throws -> String { try session.string(at: index) }
    func decode(_ type: Double.Type) throws -> Double { try session.double(at: index) }
    func decode(_ type: Float.Type) throws -> Float { try session.float(at: index) }
    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if T.self == Date.self { return unsafeBitCast(try session.date(at: index, isAlone: true), to: type) }
        return try session.decode(type, at: index)
    }
    func decode(_ type: Int.Type) throws -> Int { try session.integer(at: index) }
    func decode(_ type: Int8.Type) throws -> Int8 { try session.integer(at: index) }
    func decode(_ type: Int16.Type) throws -> Int16 { try session.integer(at: index) }
    func decode(_ type: Int32.Type) throws -> Int32 { try session.integer(at: index) }
    func decode(_ type: Int64.Type) throws -> Int64 { try session.integer(at: index) }
    func decode(_ type: Int128.Type) throws -> Int128 { try session.integer(at: index) }
    func decode(_ type: UInt.Type) throws -> UInt { try session.integer(at: index) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try session.integer(at: index) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try session.integer(at: index) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try session.integer(at: index) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try session.integer(at: index) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try session.integer(at: index) }
}

/// The elements of an array. Three words, so that it fits into an existential without an allocation.
struct UnkeyedContainer: UnkeyedDecodingContainer {
    private let session: DecodingSession
    private let index: Int
    /// The next element on the tape, which has fewer than 2^32 words, and its position.
    private var next: UInt32
    private var position: UInt32 = 0

    init(session: DecodingSession, index: Int) throws {
        guard ferry_json_tag(session.tape, index) == JSONTag.array else {
            throw session.mismatch([Any].self, at: index)
        }
        self.session = session
        self.index = index
        next = UInt32(index + 1)
    }

    var codingPath: [any CodingKey] { session.codingPath(to: index) }
    var count: Int? { ferry_json_count(session.tape, index) }
    var isAtEnd: Bool { Int(next) >= ferry_json_close(session.tape, index) }
    var currentIndex: Int { Int(position) }

    /// Passes the next element to `body`, and moves on if that succeeds.
    @inline(__always)
    private mutating func take<T, Expected>(
        _ expected: Expected.Type, _ body: (DecodingSession, Int) throws -> T
    ) throws -> T {
        guard !isAtEnd else { throw atEnd(expected) }
        let value = try body(session, Int(next))
        advance()
        return value
    }

    private mutating func advance() {
        next = UInt32(ferry_json_after(session.tape, Int(next)))
        position += 1
    }

    @inline(never)
    private func atEnd<T>(_ type: T.Type) -> DecodingError {
        session.notFound(type, "found the end of the array", codingPath + [PathKey(position: currentIndex)])
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd else { throw atEnd(Never.self) }
        guard session.isNull(at: Int(next)) else { return false }
        advance()
        return true
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try take(type) { try $0.bool(at: $1) } }
    mutating func decode(_ type: String.Type) throws -> String { try take(type) { try $0.string(at: $1) } }
    mutating func decode(_ type: Double.Type) throws -> Double { try take(type) { try $0.double(at: $1) } }
    mutating func decode(_ type: Float.Type) throws -> Float { try take(type) { try $0.float(at: $1) } }
    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try take(type) { try $0.decode(type, at: $1) } }
    mutating func decode(_ type: Int.Type) throws -> Int { try take(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try take(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try take(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try take(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try take(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try take(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try take(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try take(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try take(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try take(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try take(type) { try $0.integer(at: $1) } }
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try take(type) { try $0.integer(at: $1) } }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try take(KeyedDecodingContainer<NestedKey>.self) {
            try $0.container(keyedBy: type, at: $1)
        }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try take((any UnkeyedDecodingContainer).self) { try UnkeyedContainer(session: $0, index: $1) }
    }

    mutating func superDecoder() throws -> any Decoder {
        try take((any Decoder).self) { TapeDecoder(session: $0, index: $1) }
    }
}
