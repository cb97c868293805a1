public import FoundationEssentials

/// Encodes values as JSON, with the strategies and results of Foundation's `JSONEncoder`.
///
/// It is a value type: configure a copy. With `sortedKeys` the text equals Foundation's byte for byte. Otherwise the
/// members of an object stand in the order in which they were encoded, and the members of a dictionary in any order.
/// Errors are `EncodingError`s with the same coding paths as Foundation's. A value may be nested as deeply as the stack
/// of the thread allows; deeper nesting is an error.
///
/// A type may use its encoder and containers until its `encode(to:)` returns. Using one later, or using one of an outer
/// value in between, is an error.
public struct FerryJSONEncoder: Sendable {
    /// How the text is laid out.
    public struct OutputFormatting: OptionSet, Sendable {
        /// The bits of the set.
        public let rawValue: UInt
        /// The set of these bits.
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// Each member and element on a line of its own, indented by two spaces.
        public static let prettyPrinted = OutputFormatting(rawValue: 1)
        /// Members are sorted by the UTF-8 bytes of their keys.
        public static let sortedKeys = OutputFormatting(rawValue: 2)
        /// Slashes are not escaped: `/` instead of `\/`.
        public static let withoutEscapingSlashes = OutputFormatting(rawValue: 8)
    }

    /// How dates are written.
    public enum DateEncodingStrategy: Sendable {
        /// As `Date` does it by itself: seconds since 2001-01-01 00:00 UTC.
        case deferredToDate
        /// Seconds since 1970-01-01 00:00 UTC.
        case secondsSince1970
        /// Milliseconds since 1970-01-01 00:00 UTC.
        case millisecondsSince1970
        /// `2020-01-31T12:00:00Z` (RFC 3339).
        case iso8601
        /// The string that the closure returns for a date.
        case written(@Sendable (Date) -> String)
        /// What the closure encodes; an empty object if it encodes nothing.
        case custom(@Sendable (_ date: Date, _ encoder: any Encoder) throws -> Void)

        /// A string in a format, such as `Date.ISO8601FormatStyle`. For a `DateFormatter`, which would link all of
        /// Foundation, pass `written` a closure.
        public static func formatted<Style: FormatStyle & Sendable>(_ style: Style) -> Self
        where Style.FormatInput == Date, Style.FormatOutput == String {
            .written { style.format($0) }
        }
    }

    /// How bytes are written.
    public enum DataEncodingStrategy: Sendable {
        /// As `Data` does it by itself: an array of numbers.
        case deferredToData
        /// A string in base 64 (RFC 4648, section 4).
        case base64
        /// What the closure encodes; an empty object if it encodes nothing.
        case custom(@Sendable (_ data: Data, _ encoder: any Encoder) throws -> Void)
    }

    /// How infinities and NaN are written.
    public enum NonConformingFloatEncodingStrategy: Sendable {
        /// They are an error.
        case `throw`
        /// As these strings.
        case convertToString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    /// How keys are written.
    public enum KeyEncodingStrategy: Sendable {
        /// As they are.
        case useDefaultKeys
        /// `createdAt` in the type is `created_at` in the document. Keys of dictionaries stay as they are.
        case convertToSnakeCase
        /// The key for a path; the last element is the key to convert.
        case custom(@Sendable (_ codingPath: [any CodingKey]) -> any CodingKey)
    }

    /// How the text is laid out. The default is compact, with slashes escaped.
    public var outputFormatting: OutputFormatting = []
    /// How dates are written. The default is `deferredToDate`, seconds since 2001.
    public var dateEncodingStrategy = DateEncodingStrategy.deferredToDate
    /// How bytes are written. The default is `base64`.
    public var dataEncodingStrategy = DataEncodingStrategy.base64
    /// How infinities and NaN, which JSON has no numbers for, are written. The default is `throw`.
    public var nonConformingFloatEncodingStrategy = NonConformingFloatEncodingStrategy.throw
    /// How keys are written. The default is `useDefaultKeys`, as they are.
    public var keyEncodingStrategy = KeyEncodingStrategy.useDefaultKeys
    /// Values that the types being encoded can read from their encoder.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    /// Creates an encoder with the default strategies, which are those of Foundation's encoder.
    public init() {}

    /// Encodes a value as a text in UTF-8. Throws `EncodingError`, and the errors of the value's own `encode(to:)`.
    public func encode<T: Encodable>(_ value: T) throws -> Data {
        let session = EncodingSession(self)
        defer { session.end() }
        try session.encode(value)
        guard session.hasValue else {
            throw EncodingError.invalidValue(
                value, .init(codingPath: [], debugDescription: "\(T.self) did not encode any value"))
        }
        return session.output.data()
    }
}
