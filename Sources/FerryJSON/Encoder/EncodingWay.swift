internal import CFerryJSON
internal import FoundationEssentials

/// How a type is encoded: by a strategy, without containers, or by its own `encode(to:)`. Determined once per process
/// for each type, like `DecodingWay`.
struct EncodingWay {
    private let bits: UInt

    private init(_ bits: UInt) { self.bits = bits }

    static let itself = EncodingWay(1)
    static let string = EncodingWay(2)
    static let int = EncodingWay(3)
    static let double = EncodingWay(4)
    static let bool = EncodingWay(5)
    static let strings = EncodingWay(6)
    static let ints = EncodingWay(7)
    static let doubles = EncodingWay(8)
    static let date = EncodingWay(9)
    static let data = EncodingWay(10)
    static let url = EncodingWay(11)
    static let uuid = EncodingWay(12)
    static let decimal = EncodingWay(13)
    static let float = EncodingWay(14)

    static func ~= (a: EncodingWay, b: EncodingWay) -> Bool { a.bits == b.bits }

    /// One byte after the address of the type, which is the key of its decoding way.
    @inline(__always)
    private static func place(of type: Any.Type) -> UnsafeRawPointer {
        unsafeBitCast(type, to: UnsafeRawPointer.self) + 1
    }

    @inline(__always)
    static func of<T: Encodable>(_ type: T.Type) -> EncodingWay {
        let known = ferry_json_known_type(place(of: type))
        return known != 0 ? EncodingWay(known) : find(type)
    }

    @inline(never)
    private static func find<T: Encodable>(_ type: T.Type) -> EncodingWay {
        if let way = all[ObjectIdentifier(type)] { return know(type, way) }
        guard let made = (type as? any WrittenWithoutContainer.Type)?.writer else { return know(type, .itself) }
        let writer = Unmanaged.passRetained(made)
        let own = EncodingWay(UInt(bitPattern: writer.toOpaque()))
        let way = know(type, own)
        // Another thread was first.
        if way.bits != own.bits { writer.release() }
        return way
    }

    /// Stores the way of a type and returns the one that was stored first.
    private static func know(_ type: Any.Type, _ way: EncodingWay) -> EncodingWay {
        EncodingWay(ferry_json_know_type(place(of: type), way.bits))
    }

    private static let all: [ObjectIdentifier: EncodingWay] = [
        ObjectIdentifier(String.self): string, ObjectIdentifier(Int.self): int, ObjectIdentifier(Double.self): double,
        ObjectIdentifier(Bool.self): bool, ObjectIdentifier([String].self): strings,
        ObjectIdentifier([Int].self): ints, ObjectIdentifier([Double].self): doubles,
        ObjectIdentifier(Date.self): date, ObjectIdentifier(Data.self): data, ObjectIdentifier(URL.self): url,
        ObjectIdentifier(UUID.self): uuid, ObjectIdentifier(Decimal.self): decimal,
        ObjectIdentifier(Float.self): float,
    ]

    /// The writer. Only for a way that is none of the constants, and for the type that it was made for.
    @inline(__always)
    func writer<T>(of type: T.Type) -> ValueWriter<T> {
        let writer = Unmanaged<AnyObject>.fromOpaque(UnsafeRawPointer(bitPattern: bits).unsafelyUnwrapped)
        return unsafeDowncast(writer.takeUnretainedValue(), to: ValueWriter<T>.self)
    }
}

/// Writes the values of one type; a class for the same reason as `ValueReader`.
class ValueWriter<Value> {
    func write(_ value: Value, to session: EncodingSession) throws {
        preconditionFailure("a writer writes")
    }
}

/// Types of the standard library that are written without a container.
private protocol WrittenWithoutContainer {
    /// A new writer.
    static var writer: AnyObject? { get }
}

extension Array: WrittenWithoutContainer where Element: Encodable {
    fileprivate static var writer: AnyObject? { ArrayWriter<Element>() }
}

extension Dictionary: WrittenWithoutContainer where Value: Encodable {
    /// Only for dictionaries with `String` keys, which no strategy converts.
    fileprivate static var writer: AnyObject? {
        Key.self == String.self ? StringDictionaryWriter<Value>() : nil
    }
}

private final class ArrayWriter<Element: Encodable>: ValueWriter<[Element]> {
    override func write(_ value: [Element], to session: EncodingSession) throws {
        var position = 0
        try session.array(value) { element in
            try session.under(PathKey(position: position)) { try session.write(element) }
            position += 1
        }
    }
}

private final class StringDictionaryWriter<Element: Encodable>: ValueWriter<[String: Element]> {
    override func write(_ value: [String: Element], to session: EncodingSession) throws {
        try session.dictionary(value) { key, element in
            try session.under(PathKey(member: key)) { try session.write(element) }
        }
    }
}

extension EncodingSession {
    /// Writes a value of any type.
    func write<T: Encodable>(_ value: T) throws {
        let way = EncodingWay.of(T.self)
        switch way {
        case .itself: try encodeItself(value)
        case .string: write(string: same(value))
        case .int: output.append(integer: same(value, as: Int.self))
        case .double: try write(same(value, as: Double.self))
        case .float: try write(same(value, as: Float.self))
        case .bool: write(same(value, as: Bool.self))
        case .strings: try array(same(value, as: [String].self)) { write(string: $0) }
        case .ints: try array(same(value, as: [Int].self)) { output.append(integer: $0) }
        case .doubles:
            var position = 0
            try array(same(value, as: [Double].self)) { element in
                if element.isFinite {
                    try write(element)
                } else {
                    try under(PathKey(position: position)) { try write(element) }
                }
                position += 1
            }
        case .date: try write(same(value, as: Date.self))
        case .data: try write(same(value, as: Data.self))
        case .url: write(string: same(value, as: URL.self).absoluteString)
        case .uuid: write(string: same(value, as: UUID.self).uuidString)
        case .decimal: output.append(plain: same(value, as: Decimal.self).description)
        default: try way.writer(of: T.self).write(value, to: self)
        }
    }

    /// The value as its own type. The way of the type guarantees that the cast is correct.
    @inline(__always)
    private func same<From, To>(_ value: From, as type: To.Type = To.self) -> To { unsafeBitCast(value, to: type) }

    @inline(__always)
    func write(string: String) { output.append(string: string, escapingSlashes: escapesSlashes) }

    @inline(__always)
    func write(integer value: some FixedWidthInteger) {
        if value.bitWidth <= 64 { output.append(integer: value) } else { output.append(plain: "\(value)") }
    }

    @inline(__always)
    func write(_ value: Bool) { if value { output.append("true") } else { output.append("false") } }

    /// Writes Swift's description, without the fraction of a whole number.
    func write<T: BinaryFloatingPoint & CustomStringConvertible>(_ value: T) throws {
        guard value.isFinite else { return try writeNonConforming(value) }
        // From 2^24 on, the description of a `Float` has an exponent.
        if let integer = Int32(exactly: value), integer != 0, integer.magnitude < 1 << 24 {
            return output.append(integer: integer)
        }
        var text = value.description
        text.withUTF8 { utf8 in
            let hasFraction =
                utf8.count > 2 && utf8[utf8.count - 1] == UInt8(ascii: "0")
                && utf8[utf8.count - 2] == UInt8(ascii: ".")
            output.append(UnsafeBufferPointer(rebasing: hasFraction ? utf8.dropLast(2) : utf8[...]))
        }
    }

    @inline(never)
    private func writeNonConforming<T: BinaryFloatingPoint>(_ value: T) throws {
        guard case .convertToString(let positive, let negative, let nan) = options.nonConformingFloatEncodingStrategy
        else {
            throw EncodingError.invalidValue(
                value, .init(codingPath: codingPath, debugDescription: "\(value) is not a JSON number"))
        }
        write(string: value.isNaN ? nan : value < 0 ? negative : positive)
    }

    private func write(_ date: Date) throws {
        switch options.dateEncodingStrategy {
        case .deferredToDate: try write(date.timeIntervalSinceReferenceDate)
        case .secondsSince1970: try write(date.timeIntervalSince1970)
        case .millisecondsSince1970: try write(1000 * date.timeIntervalSince1970)
        case .iso8601: write(string: date.formatted(.iso8601))
        case .written(let text): write(string: text(date))
        case .custom(let encode): try writeCustom { try encode(date, $0) }
        }
    }

    private func write(_ data: Data) throws {
        switch options.dataEncodingStrategy {
        case .deferredToData: try encodeItself(data)
        case .base64: write(string: data.base64EncodedString())
        case .custom(let encode): try writeCustom { try encode(data, $0) }
        }
    }

    /// If the closure encodes nothing, writes an empty object, also at the top level.
    private func writeCustom(_ encode: (StreamEncoder) throws -> Void) throws {
        let begin = output.count
        try inFrame(encode)
        if output.count == begin { output.append(isPretty ? "{\n\n}" : "{}") }
    }
}
