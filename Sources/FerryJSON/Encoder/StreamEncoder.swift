/// The encoder of one value, and its single value container.
struct StreamEncoder: Encoder {
    let session: EncodingSession
    /// The depth of its value among the values that are being encoded.
    let depth: UInt32
    let serial: UInt32

    var codingPath: [any CodingKey] { session.codingPath(of: self) }
    var userInfo: [CodingUserInfoKey: Any] { session.options.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        session.openObject(self)
        return KeyedEncodingContainer(KeyedStream<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        session.openArray(self)
        return UnkeyedStream(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

// Each of the three containers has one function for the integers and one for both floating point types. They meet the
// requirements that the protocols have for each type. Integers of 128 bits need functions of their own: the protocols
// have a default for them that throws.

extension StreamEncoder: SingleValueEncodingContainer {
    func encodeNil() throws {
        try session.beginScalar(self, 0)
        session.output.append("null")
    }
    func encode(_ value: Bool) throws {
        try session.beginScalar(self, value)
        session.write(value)
    }
    func encode(_ value: String) throws {
        try session.beginScalar(self, value)
        session.write(string: value)
    }
    @inline(__always)
    func encode<T: FixedWidthInteger & Encodable>(_ value: T) throws {
        try session.beginScalar(self, value)
        session.write(integer: value)
    }
    func encode(_ value: Int128) throws {
        try session.beginScalar(self, value)
        session.write(integer: value)
    }
    func encode(_ value: UInt128) throws {
        try session.beginScalar(self, value)
        session.write(integer: value)
    }
    @inline(__always)
    func encode<T: BinaryFloatingPoint & CustomStringConvertible & Encodable>(_ value: T) throws {
        try put(value) { try session.write(value) }
    }
    func encode<T: Encodable>(_ value: T) throws {
        try put(value) { try session.write(value) }
    }

    /// After a failure the type may encode another value.
    @inline(__always)
    private func put(_ value: @autoclosure () -> Any, _ write: () throws -> Void) throws {
        try session.beginScalar(self, value())
        do {
            try write()
        } catch {
            session.forgetScalar()
            throw error
        }
    }
}

/// The elements of an array.
struct UnkeyedStream: UnkeyedEncodingContainer {
    let encoder: StreamEncoder

    private var session: EncodingSession {
        @inline(__always) get { encoder.session }
    }
    var codingPath: [any CodingKey] { encoder.codingPath }
    var count: Int { session.elementCount(encoder) }

    func encodeNil() throws {
        try session.beginElement(encoder, 0)
        session.output.append("null")
    }
    func encode(_ value: Bool) throws {
        try session.beginElement(encoder, value)
        session.write(value)
    }
    func encode(_ value: String) throws {
        try session.beginElement(encoder, value)
        session.write(string: value)
    }
    @inline(__always)
    func encode<T: FixedWidthInteger & Encodable>(_ value: T) throws {
        try session.beginElement(encoder, value)
        session.write(integer: value)
    }
    func encode(_ value: Int128) throws {
        try session.beginElement(encoder, value)
        session.write(integer: value)
    }
    func encode(_ value: UInt128) throws {
        try session.beginElement(encoder, value)
        session.write(integer: value)
    }
    @inline(__always)
    func encode<T: BinaryFloatingPoint & CustomStringConvertible & Encodable>(_ value: T) throws {
        guard !value.isFinite else {
            try session.beginElement(encoder, value)
            return try session.write(value)
        }
        try put(value) { try session.write(value) }
    }
    func encode<T: Encodable>(_ value: T) throws {
        try put(value) { try session.write(value) }
    }

    /// Removes an element that could not be encoded.
    @inline(__always)
    private func put(_ value: @autoclosure () -> Any, _ write: () throws -> Void) throws {
        let position = count
        let mark = session.mark
        try session.beginElement(encoder, value())
        do {
            try session.under(PathKey(position: position), write)
        } catch {
            session.goBack(to: mark)
            throw error
        }
    }

    func nestedContainer<NestedKey: CodingKey>(keyedBy type: NestedKey.Type) -> KeyedEncodingContainer<NestedKey> {
        nested().container(keyedBy: type)
    }
    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { nested().unkeyedContainer() }
    func superEncoder() -> any Encoder { nested() }

    private func nested() -> StreamEncoder {
        let position = count
        guard (try? session.beginElement(encoder, 0)) != nil else { return session.orphan().pushFrame() }
        return session.child(at: PathKey(position: position)).pushFrame()
    }
}

/// The members of an object.
struct KeyedStream<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: StreamEncoder

    private var session: EncodingSession {
        @inline(__always) get { encoder.session }
    }
    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil(forKey key: Key) throws {
        try session.beginMember(encoder, key, 0)
        session.output.append("null")
    }
    func encode(_ value: Bool, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.write(value)
    }
    func encode(_ value: String, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.write(string: value)
    }
    @inline(__always)
    func encode<T: FixedWidthInteger & Encodable>(_ value: T, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.write(integer: value)
    }
    func encode(_ value: Int128, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.write(integer: value)
    }
    func encode(_ value: UInt128, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.write(integer: value)
    }
    @inline(__always)
    func encode<T: BinaryFloatingPoint & CustomStringConvertible & Encodable>(_ value: T, forKey key: Key) throws {
        guard !value.isFinite else {
            try session.beginMember(encoder, key, value)
            return try session.write(value)
        }
        try put(value, key) { try session.write(value) }
    }
    func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        try put(value, key) { try session.write(value) }
    }

    /// Removes a member that could not be encoded.
    @inline(__always)
    private func put(_ value: @autoclosure () -> Any, _ key: Key, _ write: () throws -> Void) throws {
        let mark = session.mark
        try session.beginMember(encoder, key, value())
        do {
            try session.under(key, write)
        } catch {
            session.goBack(to: mark)
            throw error
        }
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        nested(at: key).container(keyedBy: type)
    }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { nested(at: key).unkeyedContainer() }
    func superEncoder() -> any Encoder { nested(at: PathKey.super) }
    func superEncoder(forKey key: Key) -> any Encoder { nested(at: key) }

    private func nested(at key: some CodingKey) -> StreamEncoder {
        guard (try? session.beginMember(encoder, key, 0)) != nil else { return session.orphan().pushFrame() }
        return session.child(at: key).pushFrame()
    }
}
