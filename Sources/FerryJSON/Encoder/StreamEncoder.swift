/// The encoder of one value, and its single value container.
struct StreamEncoder: Encoder {
    let session: EncodingSession
    /// Which of the values that are encoding themselves it belongs to.
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

extension StreamEncoder: SingleValueEncodingContainer {
    private func put(_ value: Any, _ write: (EncodingSession) throws -> Void) throws {
        try session.beginScalar(self, value)
        do {
            try write(session)
        } catch {
            session.forgetScalar()
            throw error
        }
    }

    func encodeNil() throws {
        try session.beginScalar(self, 0)
        session.output.append("null")
    }
    func encode<T: Encodable>(_ value: T) throws { try put(value) { try $0.write(value) } }
    func encode(_ value: Bool) throws {
        try session.beginScalar(self, value)
        session.write(value)
    }
    func encode(_ value: String) throws {
        try session.beginScalar(self, value)
        session.write(string: value)
    }
    func encode(_ value: Int) throws {
        try session.beginScalar(self, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int8) throws {
        try session.beginScalar(self, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int16) throws {
        try session.beginScalar(self, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int32) throws {
        try session.beginScalar(self, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int64) throws {
        try session.beginScalar(self, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int128) throws {
        try session.beginScalar(self, value)
        session.output.append(plain: value.description)
    }
    func encode(_ value: UInt) throws {
        try session.beginScalar(self, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt8) throws {
        try session.beginScalar(self, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt16) throws {
        try session.beginScalar(self, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt32) throws {
        try session.beginScalar(self, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt64) throws {
        try session.beginScalar(self, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt128) throws {
        try session.beginScalar(self, value)
        session.output.append(plain: value.description)
    }
    func encode(_ value: Double) throws { try put(value) { try $0.write(value) } }
    func encode(_ value: Float) throws { try put(value) { try $0.write(value) } }
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
    func encode<T: Encodable>(_ value: T) throws {
        let position = count
        let mark = session.mark
        try session.beginElement(encoder, value)
        do {
            try session.under(PathKey(position: position)) { try session.write(value) }
        } catch {
            session.goBack(to: mark)
            throw error
        }
    }
    func encode(_ value: Bool) throws {
        try session.beginElement(encoder, value)
        session.write(value)
    }
    func encode(_ value: String) throws {
        try session.beginElement(encoder, value)
        session.write(string: value)
    }
    func encode(_ value: Int) throws {
        try session.beginElement(encoder, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int8) throws {
        try session.beginElement(encoder, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int16) throws {
        try session.beginElement(encoder, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int32) throws {
        try session.beginElement(encoder, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int64) throws {
        try session.beginElement(encoder, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int128) throws {
        try session.beginElement(encoder, value)
        session.output.append(plain: value.description)
    }
    func encode(_ value: UInt) throws {
        try session.beginElement(encoder, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt8) throws {
        try session.beginElement(encoder, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt16) throws {
        try session.beginElement(encoder, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt32) throws {
        try session.beginElement(encoder, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt64) throws {
        try session.beginElement(encoder, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt128) throws {
        try session.beginElement(encoder, value)
        session.output.append(plain: value.description)
    }
    func encode(_ value: Double) throws {
        let mark = session.mark
        let position = count
        try session.beginElement(encoder, value)
        guard !value.isFinite else { return try session.write(value) }
        do {
            try session.under(PathKey(position: position)) { try session.write(value) }
        } catch {
            session.goBack(to: mark)
            throw error
        }
    }
    func encode(_ value: Float) throws {
        let mark = session.mark
        let position = count
        try session.beginElement(encoder, value)
        guard !value.isFinite else { return try session.write(value) }
        do {
            try session.under(PathKey(position: position)) { try session.write(value) }
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
    func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        let mark = session.mark
        try session.beginMember(encoder, key, value)
        do {
            try session.under(key) { try session.write(value) }
        } catch {
            session.goBack(to: mark)
            throw error
        }
    }
    func encode(_ value: Bool, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.write(value)
    }
    func encode(_ value: String, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.write(string: value)
    }
    func encode(_ value: Int, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int8, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int16, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int32, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int64, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.output.append(integer: value)
    }
    func encode(_ value: Int128, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.output.append(plain: value.description)
    }
    func encode(_ value: UInt, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt8, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt16, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt32, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt64, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.output.append(integer: value)
    }
    func encode(_ value: UInt128, forKey key: Key) throws {
        try session.beginMember(encoder, key, value)
        session.output.append(plain: value.description)
    }
    func encode(_ value: Double, forKey key: Key) throws {
        let mark = session.mark
        try session.beginMember(encoder, key, value)
        guard !value.isFinite else { return try session.write(value) }
        do {
            try session.under(key) { try session.write(value) }
        } catch {
            session.goBack(to: mark)
            throw error
        }
    }
    func encode(_ value: Float, forKey key: Key) throws {
        let mark = session.mark
        try session.beginMember(encoder, key, value)
        guard !value.isFinite else { return try session.write(value) }
        do {
            try session.under(key) { try session.write(value) }
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
