internal import CFerryJSON

/// The members of an object.
struct KeyedContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    /// One reference, as the standard library copies the container at every call.
    private let members: ObjectMembers

    init(_ members: ObjectMembers) { self.members = members }

    private var session: DecodingSession {
        @inline(__always) get { members.session }
    }

    var codingPath: [any CodingKey] { session.codingPath(to: members.index) }

    var allKeys: [Key] { members.allNames.compactMap { Key(stringValue: $0) } }

    @inline(__always)
    private func place(of key: Key) throws -> Int {
        let place = members.find(key)
        if place == 0 { throw absent(key) }
        if members.keysHaveIntegers { session.note(key, at: place) }
        return place
    }

    /// The value for a key; `nil` if it is absent or null.
    @inline(__always)
    private func presentPlace(of key: Key) -> Int? {
        let place = members.find(key)
        guard place != 0, !session.isNull(at: place) else { return nil }
        if members.keysHaveIntegers { session.note(key, at: place) }
        return place
    }

    @inline(never)
    private func absent(_ key: Key) -> DecodingError {
        .keyNotFound(key, .init(codingPath: codingPath, debugDescription: "no key \(key.stringValue)"))
    }

    func contains(_ key: Key) -> Bool { members.find(key) != 0 }
    func decodeNil(forKey key: Key) throws -> Bool { session.isNull(at: try place(of: key)) }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try session.bool(at: try place(of: key)) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try session.string(at: try place(of: key)) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try session.double(at: try place(of: key)) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try session.float(at: try place(of: key)) }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try session.decode(type, at: try place(of: key))
    }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try session.integer(at: try place(of: key)) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try session.integer(at: try place(of: key)) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try session.integer(at: try place(of: key)) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try session.integer(at: try place(of: key)) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try session.integer(at: try place(of: key)) }
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try session.integer(at: try place(of: key)) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try session.integer(at: try place(of: key)) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try session.integer(at: try place(of: key)) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try session.integer(at: try place(of: key)) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try session.integer(at: try place(of: key)) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try session.integer(at: try place(of: key)) }
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try session.integer(at: try place(of: key)) }

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try presentPlace(of: key).map { try session.bool(at: $0) }
    }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try presentPlace(of: key).map { try session.string(at: $0) }
    }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try presentPlace(of: key).map { try session.double(at: $0) }
    }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? {
        try presentPlace(of: key).map { try session.float(at: $0) }
    }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent(_ type: Int128.Type, forKey key: Key) throws -> Int128? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent(_ type: UInt128.Type, forKey key: Key) throws -> UInt128? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let place = presentPlace(of: key) else { return nil }
        return try session.decode(type, at: place)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try session.container(keyedBy: type, at: try place(of: key))
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try UnkeyedContainer(session: session, index: try place(of: key))
    }

    func superDecoder() throws -> any Decoder { decoder(forKey: PathKey.super) }
    func superDecoder(forKey key: Key) throws -> any Decoder { decoder(forKey: key) }

    /// An absent key also has a decoder, whose value is null.
    private func decoder(forKey key: some CodingKey) -> any Decoder {
        let place = members.find(key)
        guard place != 0 else { return DecodingSession.decoderOfNull(at: codingPath + [key], options: session.options) }
        if members.keysHaveIntegers { session.note(key, at: place) }
        return TapeDecoder(session: session, index: place)
    }
}
