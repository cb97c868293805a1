internal import CFerryJSON

/// The members of an object.
struct KeyedContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let session: DecodingSession
    /// Where `object` is kept when the container is one of the shelf, which leads it from one object to the next.
    private let place: UnsafePointer<ObjectPlace>?
    private let own: ObjectPlace

    init(session: DecodingSession, _ object: ObjectPlace, at place: UnsafePointer<ObjectPlace>?) {
        self.session = session
        self.place = place
        own = object
    }

    private var object: ObjectPlace {
        @inline(__always) get { place?.pointee ?? own }
    }
    private var index: Int {
        @inline(__always) get { object.index }
    }

    private var table: MemberTable { session.table(of: index, keepingKeys: object.keepsKeys) }

    var codingPath: [any CodingKey] { session.codingPath(to: index) }

    var allKeys: [Key] {
        if object.usesTable { return table.names.compactMap { Key(stringValue: $0) } }
        let tape = session.tape
        let end = ferry_json_close(tape, index)
        var keys: [Key] = []
        var place = index + 1
        while place < end {
            let bytes = tape.utf8(at: place)
            // Of a key that stands twice only the last place is one.
            if ferry_json_find(tape, index, bytes.baseAddress!, bytes.count) == place + 1,
                let key = Key(stringValue: tape.string(at: place))
            {
                keys.append(key)
            }
            place = ferry_json_after(tape, place + 1)
        }
        return keys
    }

    /// The value for a key, or 0.
    @inline(__always)
    private func find(_ key: some CodingKey) -> Int {
        object.usesTable ? table.find(key.stringValue) : session.tape.find(key.stringValue, in: index)
    }

    @inline(__always)
    private func place(of key: Key) throws -> Int {
        let place = find(key)
        if place == 0 { throw absent(key) }
        session.note(key, at: place)
        return place
    }

    /// The value for a key, or nil where it is absent or null.
    @inline(__always)
    private func presentPlace(of key: Key) -> Int? {
        let place = find(key)
        guard place != 0, !session.isNull(at: place) else { return nil }
        session.note(key, at: place)
        return place
    }

    @inline(never)
    private func absent(_ key: Key) -> DecodingError {
        .keyNotFound(key, .init(codingPath: codingPath, debugDescription: "no key \(key.stringValue)"))
    }

    func contains(_ key: Key) -> Bool { find(key) != 0 }
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
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try presentPlace(of: key).map { try session.integer(at: $0) }
    }
    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let place = presentPlace(of: key) else { return nil }
        return try session.decode(type, at: place)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try session.container(keyedBy: type, at: try place(of: key), keepsKeys: false)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try UnkeyedContainer(session: session, index: try place(of: key))
    }

    func superDecoder() throws -> any Decoder { decoder(forKey: PathKey.super) }
    func superDecoder(forKey key: Key) throws -> any Decoder { decoder(forKey: key) }

    /// An absent key has a decoder too: one that finds null.
    private func decoder(forKey key: some CodingKey) -> any Decoder {
        let place = find(key)
        guard place != 0 else {
            return AbsentDecoder(codingPath: codingPath + [key], userInfo: session.options.userInfo)
        }
        session.note(key, at: place)
        return TapeDecoder(session: session, index: place, keepsKeys: false)
    }
}
