internal import CFerryJSON
internal import FoundationEssentials

/// How a type is decoded: by a strategy, without containers, or by its own `init(from:)`.
///
/// Comparing a type with all types that have their own way takes longer than decoding a number. Asking the runtime
/// whether the type is an array or a dictionary takes even longer. So the way of each type is determined once per
/// process.
struct DecodingWay: Equatable {
    /// One of the constants, or the address of a reader, which is never freed.
    private let bits: UInt

    private init(_ bits: UInt) { self.bits = bits }

    static let itself = DecodingWay(1)
    static let string = DecodingWay(2)
    static let strings = DecodingWay(3)
    static let ints = DecodingWay(4)
    static let longs = DecodingWay(5)
    static let doubles = DecodingWay(6)
    static let bools = DecodingWay(7)
    static let points = DecodingWay(8)
    static let stringsByKey = DecodingWay(9)
    static let intsByKey = DecodingWay(10)
    static let doublesByKey = DecodingWay(11)
    static let date = DecodingWay(12)
    static let data = DecodingWay(13)
    static let url = DecodingWay(14)
    static let uuid = DecodingWay(15)
    static let decimal = DecodingWay(16)
    static let json = DecodingWay(17)

    static func ~= (a: DecodingWay, b: DecodingWay) -> Bool { a.bits == b.bits }

    @inline(__always)
    static func of<T: Decodable>(_ type: T.Type) -> DecodingWay {
        let known = ferry_json_known_type(unsafeBitCast(type, to: UnsafeRawPointer.self))
        return known != 0 ? DecodingWay(known) : find(type)
    }

    @inline(never)
    private static func find<T: Decodable>(_ type: T.Type) -> DecodingWay {
        if let way = all[ObjectIdentifier(type)] { return know(type, way) }
        guard let type = type as? any ReadWithoutContainer.Type else { return know(type, .itself) }
        let reader = Unmanaged.passRetained(type.reader)
        let own = DecodingWay(UInt(bitPattern: reader.toOpaque()))
        let way = know(type, own)
        // Another thread was first.
        if way != own { reader.release() }
        return way
    }

    /// Stores the way of a type and returns the one that was stored first.
    private static func know(_ type: Any.Type, _ way: DecodingWay) -> DecodingWay {
        DecodingWay(ferry_json_know_type(unsafeBitCast(type, to: UnsafeRawPointer.self), way.bits))
    }

    private static let all: [ObjectIdentifier: DecodingWay] = [
        ObjectIdentifier(String.self): string, ObjectIdentifier([String].self): strings,
        ObjectIdentifier([Int].self): ints, ObjectIdentifier([Int64].self): longs,
        ObjectIdentifier([Double].self): doubles, ObjectIdentifier([Bool].self): bools,
        ObjectIdentifier([[Double]].self): points, ObjectIdentifier([String: String].self): stringsByKey,
        ObjectIdentifier([String: Int].self): intsByKey, ObjectIdentifier([String: Double].self): doublesByKey,
        ObjectIdentifier(Date.self): date, ObjectIdentifier(Data.self): data, ObjectIdentifier(URL.self): url,
        ObjectIdentifier(UUID.self): uuid, ObjectIdentifier(Decimal.self): decimal, ObjectIdentifier(JSON.self): json,
    ]

    /// The reader. Only for a way that is none of the constants, and for the type that it was made for.
    @inline(__always)
    func reader<T>(of type: T.Type) -> ValueReader<T> {
        let reader = Unmanaged<AnyObject>.fromOpaque(UnsafeRawPointer(bitPattern: bits).unsafelyUnwrapped)
        return unsafeDowncast(reader.takeUnretainedValue(), to: ValueReader<T>.self)
    }
}

/// Reads the values of one type.
///
/// A class, because its objects store their type: a generic function must ask the runtime for types built from its
/// parameters.
class ValueReader<Value> {
    func value(at index: Int, in session: DecodingSession) throws -> Value {
        preconditionFailure("a reader reads")
    }
}

/// Types of the standard library that are read without a container.
private protocol ReadWithoutContainer {
    static var reader: AnyObject { get }
}

extension Array: ReadWithoutContainer where Element: Decodable {
    fileprivate static var reader: AnyObject { ArrayReader<Element>() }
}

private final class ArrayReader<Element: Decodable>: ValueReader<[Element]> {
    override func value(at index: Int, in session: DecodingSession) throws -> [Element] {
        try session.array(at: index) { try session.decode(Element.self, at: $0) }
    }
}

extension Dictionary: ReadWithoutContainer where Key: CodingKeyRepresentable, Value: Decodable {
    fileprivate static var reader: AnyObject {
        Key.self == String.self ? StringDictionaryReader<Value>() : DictionaryReader<Key, Value>()
    }
}

/// Only dictionaries with `String` keys have keys that no strategy converts.
private final class StringDictionaryReader<Element: Decodable>: ValueReader<[String: Element]> {
    override func value(at index: Int, in session: DecodingSession) throws -> [String: Element] {
        try session.dictionary(at: index) { try session.decode(Element.self, at: $0) }
    }
}

private final class DictionaryReader<Key: Hashable & CodingKeyRepresentable, Element: Decodable>:
    ValueReader<[Key: Element]>
{
    override func value(at index: Int, in session: DecodingSession) throws -> [Key: Element] {
        var dictionary: [Key: Element] = [:]
        var path: [any CodingKey] = session.keyConverter.dependsOnPath ? session.codingPath(to: index) : []
        try session.members(at: index, converting: !session.usesDefaultKeys) {
            dictionary.reserveCapacity($0)
        } each: { place, value in
            let text = session.tape.string(at: place)
            let name = session.usesDefaultKeys ? text : session.keyConverter.convert(text, path: &path)
            do {
                let key: Key = try key(PathKey(member: name), at: index, in: session)
                if !session.usesDefaultKeys { session.note(PathKey(member: name), at: value) }
                dictionary[key] = try session.decode(Element.self, at: value)
            } catch {
                if !session.isShadowed(place, in: index) { throw error }
            }
        }
        return dictionary
    }

    @inline(__always)
    private func key(_ codingKey: PathKey, at index: Int, in session: DecodingSession) throws -> Key {
        if let key = Key(codingKey: codingKey) { return key }
        let path = session.codingPath(to: index) + [codingKey]
        // Foundation's errors, which differ for integers.
        if Key.self == Int.self {
            throw DecodingError.typeMismatch(
                Int.self, .init(codingPath: path, debugDescription: "a key that is not an integer"))
        }
        throw session.corrupted("a key that is not a \(Key.self)", path)
    }
}
