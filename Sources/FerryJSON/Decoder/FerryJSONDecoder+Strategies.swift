public import FoundationEssentials

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
        /// A string that this turns into a date.
        case parsed(@Sendable (String) throws -> Date)
        /// Anything that this turns into a date.
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
        /// Made by a closure.
        case custom(@Sendable (_ decoder: any Decoder) throws -> Data)
    }

    /// How numbers that JSON cannot write are written.
    public enum NonConformingFloatDecodingStrategy: Sendable {
        /// They are an error.
        case `throw`
        /// Written as these strings.
        case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    /// How keys are written.
    public enum KeyDecodingStrategy: Sendable {
        /// As they stand.
        case useDefaultKeys
        /// `created_at` in the document is `createdAt` in the type.
        case convertFromSnakeCase
        /// The key for a path in the document; the last element is the key to convert.
        case custom(@Sendable (_ codingPath: [any CodingKey]) -> any CodingKey)
    }
}
