public import FoundationEssentials

/// Decodes values from JSON, with the strategies and results of Foundation's `JSONDecoder`.
///
/// It is a value type: configure a copy. It reads some documents differently than Foundation: if a key appears twice,
/// the last value counts; a comma before a closing bracket is an error; the text must be UTF-8; a number larger than
/// any finite double makes the document invalid; `-0` is the integer 0, also as a `Double`; and up to 1,023 containers
/// may be nested (512 in Foundation). A `Float` is rounded from the nearest `Double`, so it is sometimes not the
/// nearest to the text. Errors are `DecodingError`s with the same coding paths; a text that is not JSON is
/// `dataCorrupted` with a `JSONSyntaxError` as the underlying error.
public struct FerryJSONDecoder: Sendable {
    /// How dates are written. The default is `deferredToDate`, seconds since 2001.
    public var dateDecodingStrategy = DateDecodingStrategy.deferredToDate
    /// How bytes are written. The default is `base64`.
    public var dataDecodingStrategy = DataDecodingStrategy.base64
    /// How infinities and NaN, which JSON has no numbers for, are written. The default is `throw`.
    public var nonConformingFloatDecodingStrategy = NonConformingFloatDecodingStrategy.throw
    /// How keys are written. The default is `useDefaultKeys`, as they are.
    public var keyDecodingStrategy = KeyDecodingStrategy.useDefaultKeys
    /// Values that the types being decoded can read from their decoder.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    /// Creates a decoder with the default strategies, which are those of Foundation's decoder.
    public init() {}

    /// Decodes a value from a text in UTF-8. Throws `DecodingError`.
    public func decode<T: Decodable>(_ type: T.Type, from text: some ContiguousBytes) throws -> T {
        try text.withUnsafeBytes { try decode(type, from: $0, spare: 0) }
    }

    /// Decodes a value from bytes that are followed by `spare` readable bytes. With 64 or more of them nothing is
    /// copied.
    public func decode<T: Decodable>(
        _ type: T.Type, from bytes: UnsafeRawBufferPointer, spare: Int
    ) throws -> T {
        let json: JSON
        do {
            json = try JSON(parsing: bytes, spare: spare)
        } catch {
            let context = DecodingError.Context(
                codingPath: [], debugDescription: error.description, underlyingError: error)
            throw DecodingError.dataCorrupted(context)
        }
        return try decode(type, from: json, text: bytes)
    }

    /// Decodes a value from one that was parsed before, without its text: a `Decimal` with a fraction is made of the
    /// shortest digits that give its double, and from 2^53 on an integer written with a fraction or an exponent is an
    /// error.
    public func decode<T: Decodable>(_ type: T.Type, from json: JSON) throws -> T {
        let session = DecodingSession(json, options: self, text: nil)
        defer { session.end() }
        return try session.decode(type, at: json.index)
    }

    /// Decodes a value from a document and the text that it was parsed from: a `Decimal` is made of its digits.
    package func decode<T: Decodable>(_ type: T.Type, from json: JSON, text: UnsafeRawBufferPointer) throws -> T {
        let session = DecodingSession(json, options: self, text: text)
        defer { session.end() }
        return try session.decode(type, at: json.index)
    }

    /// The value for a missing document: `nil` for an optional, an error for anything else.
    package func decodeNothing<T: Decodable>(_ type: T.Type) throws -> T {
        try T(from: DecodingSession.decoderOfNull(at: [], options: self))
    }
}

extension FerryJSONDecoder {
    /// How dates are written.
    public enum DateDecodingStrategy: Sendable {
        /// As `Date` does it by itself: seconds since 2001-01-01 00:00 UTC.
        case deferredToDate
        /// Seconds since 1970-01-01 00:00 UTC.
        case secondsSince1970
        /// Milliseconds since 1970-01-01 00:00 UTC.
        case millisecondsSince1970
        /// `2020-01-31T12:00:00Z` (RFC 3339).
        case iso8601
        /// A string, which the closure converts to a date.
        case parsed(@Sendable (String) throws -> Date)
        /// Any value, which the closure converts to a date.
        case custom(@Sendable (_ decoder: any Decoder) throws -> Date)

        /// A string in the format of a parse strategy, such as `Date.ISO8601FormatStyle`. For a `DateFormatter`, which
        /// would link all of Foundation, pass `parsed` a closure.
        public static func formatted<Strategy: ParseStrategy & Sendable>(_ strategy: Strategy) -> Self
        where Strategy.ParseInput == String, Strategy.ParseOutput == Date {
            .parsed { try strategy.parse($0) }
        }
    }

    /// How bytes are written.
    public enum DataDecodingStrategy: Sendable {
        /// As `Data` does it by itself: an array of numbers.
        case deferredToData
        /// A string in base 64 (RFC 4648, section 4).
        case base64
        /// Any value, which the closure converts to bytes.
        case custom(@Sendable (_ decoder: any Decoder) throws -> Data)
    }

    /// How infinities and NaN are written.
    public enum NonConformingFloatDecodingStrategy: Sendable {
        /// They are an error.
        case `throw`
        /// Written as these strings.
        case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    /// How keys are written.
    public enum KeyDecodingStrategy: Sendable {
        /// As they are.
        case useDefaultKeys
        /// `created_at` in the document is `createdAt` in the type.
        case convertFromSnakeCase
        /// The key for a path in the document; the last element is the key to convert.
        case custom(@Sendable (_ codingPath: [any CodingKey]) -> any CodingKey)
    }
}
