internal import CFerryJSON

extension JSONSchema {
    /// A form that strings may have, by its name in JSON Schema.
    public enum Format: String, Sendable, Hashable, CaseIterable {
        /// `2024-05-31T23:59:60Z` (RFC 3339); the offset is not optional.
        case dateTime = "date-time"
        /// `2024-05-31`, a day that there is.
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
        /// A regular expression (ECMA-262), also one that Ferry cannot use as a pattern.
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
