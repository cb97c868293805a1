internal import CFerryJSON

// The words that schemas are written in.
extension JSONSchema {
    /// Any string.
    public static let string = JSONSchema(SchemaShape(.string))
    /// Any number. Booleans are not numbers.
    public static let number = JSONSchema(SchemaShape(.number))
    /// Any number without a fraction.
    public static let integer = JSONSchema(SchemaShape(.integer))
    /// `true` or `false`.
    public static let bool = JSONSchema(SchemaShape(.bool))
    /// Only null.
    public static let null = JSONSchema(SchemaShape(.null))
    /// Any object.
    public static let object = JSONSchema(SchemaShape(.object))
    /// Any array.
    public static let array = JSONSchema(SchemaShape(.array))
    /// Any value, null included.
    public static let any = JSONSchema(SchemaShape(.any))

    /// A string with bounds for its length, in Unicode scalars, and a regular expression that must be found in it.
    /// Anchor the expression with `^` and `$` to match the whole string. Patterns are those of ECMA-262 without
    /// look-around and back-references. A search takes time in the length of the string. A pattern that cannot be used
    /// ends the program.
    public static func string(
        minLength: Int = 0, maxLength: Int? = nil, matching pattern: String? = nil
    ) -> JSONSchema {
        JSONSchema(
            SchemaShape(.string) {
                $0.minLength = minLength
                $0.maxLength = maxLength
                $0.pattern = pattern.map(SchemaPattern.init(trusted:))
            })
    }

    /// A string with a format, such as `.string(format: .uuid)`.
    public static func string(format: Format) -> JSONSchema {
        JSONSchema(SchemaShape(.string) { $0.format = format })
    }

    /// A number within a range: `0...1`, `0..<1`, `0...`, `..<1`. An infinite bound has no effect.
    public static func number(in range: some RangeExpression<Double> & Sendable) -> JSONSchema {
        let bounds = SchemaBounds(range)
        return JSONSchema(
            SchemaShape(.number) {
                // JSON's numbers are finite, and so are the bounds that a schema can hold.
                $0.minimum = bounds.minimum.flatMap { $0.isFinite ? .init(value: JSON($0)) : nil }
                $0.maximum = bounds.maximum.flatMap {
                    $0.isFinite ? .init(value: JSON($0), isExclusive: bounds.excludesMaximum) : nil
                }
            })
    }

    /// An integer within a range: `0...9`, `0..<10`, `0...`, `...9`.
    public static func integer(in range: some RangeExpression<Int> & Sendable) -> JSONSchema {
        let bounds = SchemaBounds(range)
        return JSONSchema(
            SchemaShape(.integer) {
                $0.minimum = bounds.minimum.map { .init(value: JSON($0)) }
                $0.maximum = bounds.maximum.map { .init(value: JSON($0), isExclusive: bounds.excludesMaximum) }
            })
    }

    /// An array whose elements fit one schema, with bounds for their number. With `unique` no two elements may be
    /// equal.
    public static func array(
        of element: JSONSchema, minCount: Int = 0, maxCount: Int? = nil, unique: Bool = false
    ) -> JSONSchema {
        JSONSchema(
            SchemaShape(.array) {
                $0.items = .each(element)
                $0.minItems = minCount
                $0.maxItems = maxCount
                $0.isUnique = unique
            })
    }

    /// An array whose elements fit the schemas in their order, and that has no more elements: `.tuple(.string,
    /// .integer)`. The last elements may be absent if their schemas are `optional`.
    public static func tuple(_ elements: JSONSchema...) -> JSONSchema {
        JSONSchema(
            SchemaShape(.array) {
                $0.prefix = elements
                $0.minItems = (elements.lastIndex { !$0.shape.isOptional } ?? -1) + 1
                $0.maxItems = elements.count
            })
    }

    /// An object with any keys whose values fit one schema, with bounds for their number and a schema for the keys.
    public static func dictionary(
        of value: JSONSchema, keys: JSONSchema? = nil, minCount: Int = 0, maxCount: Int? = nil
    ) -> JSONSchema {
        JSONSchema(
            SchemaShape(.object) {
                $0.others = .each(value)
                $0.names = keys
                $0.minMembers = minCount
                $0.maxMembers = maxCount
            })
    }

    /// One of these values: `.enumeration("red", "green", .null)`.
    public static func enumeration(_ values: JSON...) -> JSONSchema {
        JSONSchema(SchemaShape(.any) { $0.enumeration = values })
    }

    /// Exactly one of the schemas fits.
    public static func oneOf(_ schemas: JSONSchema...) -> JSONSchema {
        JSONSchema(SchemaShape(.any) { $0.oneOf = schemas })
    }

    /// At least one of the schemas fits.
    public static func anyOf(_ schemas: JSONSchema...) -> JSONSchema {
        JSONSchema(SchemaShape(.any) { $0.anyOf = schemas })
    }

    /// All of the schemas fit.
    public static func allOf(_ schemas: JSONSchema...) -> JSONSchema {
        JSONSchema(SchemaShape(.any) { $0.allOf = schemas })
    }

    /// The schema does not fit: `.allOf(.string, .not(.enumeration("admin")))`.
    public static func not(_ schema: JSONSchema) -> JSONSchema {
        JSONSchema(SchemaShape(.any) { $0.negated = schema })
    }

    /// This schema for multiples of a number above 0. Numbers are compared as decimals: 19.99 is a multiple of 0.01.
    public func multiple(of factor: Double) -> JSONSchema {
        precondition(factor > 0 && factor.isFinite, "the factor must be a finite number above 0")
        return with { $0.multipleOf = JSON(factor) }
    }

    /// This schema for a member that may be absent.
    public var optional: JSONSchema { with { $0.isOptional = true } }

    /// This schema, or null.
    public var nullable: JSONSchema {
        guard shape.hasAlternatives else { return with { $0.kinds.insert(.null) } }
        return JSONSchema(
            SchemaShape(.any) {
                $0.anyOf = [self, .null]
                $0.isOptional = shape.isOptional
            })
    }

    /// This schema without other keys: a key that is not named is an error.
    public var closed: JSONSchema { with { $0.others = .none } }
}

extension JSONSchema {
    /// A format of strings, with its name in JSON Schema.
    public enum Format: String, Sendable, Hashable, CaseIterable {
        /// `2024-05-31T23:59:60Z` (RFC 3339). The offset is required.
        case dateTime = "date-time"
        /// `2024-05-31` (RFC 3339). The day must exist.
        case date
        /// `23:59:59.5+02:00`
        case time
        /// `P1DT12H` (RFC 3339, appendix A)
        case duration
        /// `a.b@example.com` (RFC 5321, section 4.1.2)
        case email
        /// `www.example.com` (RFC 1123)
        case hostname
        /// `192.0.2.1`
        case ipv4
        /// `2001:db8::1` (RFC 4291), without a zone
        case ipv6
        /// `https://example.com/a?b#c` (RFC 3986), with a scheme
        case uri
        /// `../a?b#c` (RFC 3986)
        case uriReference = "uri-reference"
        /// `123e4567-e89b-12d3-a456-426614174000` (RFC 4122)
        case uuid
        /// `/a/0/b` (RFC 6901)
        case jsonPointer = "json-pointer"
        /// A regular expression (ECMA-262), including those that Ferry cannot use as a pattern.
        case regex

        var code: ferry_json_format {
            switch self {
            case .dateTime: FERRY_JSON_DATE_TIME
            case .date: FERRY_JSON_DATE
            case .time: FERRY_JSON_TIME
            case .duration: FERRY_JSON_DURATION
            case .email: FERRY_JSON_EMAIL
            case .hostname: FERRY_JSON_HOSTNAME
            case .ipv4: FERRY_JSON_IPV4
            case .ipv6: FERRY_JSON_IPV6
            case .uri: FERRY_JSON_URI
            case .uriReference: FERRY_JSON_URI_REFERENCE
            case .uuid: FERRY_JSON_UUID
            case .jsonPointer: FERRY_JSON_POINTER
            case .regex: FERRY_JSON_REGEX
            }
        }
    }
}

/// The ends of a range, whichever of Swift's ranges it is.
struct SchemaBounds<Bound: Comparable> {
    let minimum: Bound?
    let maximum: Bound?
    var excludesMaximum = false

    init(_ range: some RangeExpression<Bound>) {
        switch range {
        case let range as ClosedRange<Bound>: (minimum, maximum) = (range.lowerBound, range.upperBound)
        case let range as Range<Bound>:
            (minimum, maximum, excludesMaximum) = (range.lowerBound, range.upperBound, true)
        case let range as PartialRangeFrom<Bound>: (minimum, maximum) = (range.lowerBound, nil)
        case let range as PartialRangeThrough<Bound>: (minimum, maximum) = (nil, range.upperBound)
        case let range as PartialRangeUpTo<Bound>: (minimum, maximum, excludesMaximum) = (nil, range.upperBound, true)
        default: preconditionFailure("only ranges of the standard library are supported")
        }
    }
}
