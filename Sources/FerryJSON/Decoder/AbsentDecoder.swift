/// The decoder for a key that is not there: as if null stood there.
struct AbsentDecoder: Decoder, SingleValueDecodingContainer {
    let codingPath: [any CodingKey]
    let userInfo: [CodingUserInfoKey: Any]

    private func nothing<T>(_ type: T.Type) -> DecodingError {
        .valueNotFound(type, .init(codingPath: codingPath, debugDescription: "expected \(T.self), found nothing"))
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        throw nothing([String: Any].self)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw nothing([Any].self) }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }
    func decodeNil() -> Bool { true }
    func decode(_ type: Bool.Type) throws -> Bool { throw nothing(type) }
    func decode(_ type: String.Type) throws -> String { throw nothing(type) }
    func decode(_ type: Double.Type) throws -> Double { throw nothing(type) }
    func decode(_ type: Float.Type) throws -> Float { throw nothing(type) }
    func decode<T: Decodable>(_ type: T.Type) throws -> T { try T(from: self) }
    func decode(_ type: Int.Type) throws -> Int { throw nothing(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { throw nothing(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { throw nothing(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { throw nothing(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { throw nothing(type) }
    func decode(_ type: Int128.Type) throws -> Int128 { throw nothing(type) }
    func decode(_ type: UInt.Type) throws -> UInt { throw nothing(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { throw nothing(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { throw nothing(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { throw nothing(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { throw nothing(type) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { throw nothing(type) }
}
