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
