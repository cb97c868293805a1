internal import CFerryJSON

/// The kinds of values that may stand in a place.
struct SchemaKinds: OptionSet, Sendable {
    let rawValue: UInt32

    static let string = SchemaKinds(FERRY_JSON_STRING)
    static let number = SchemaKinds(FERRY_JSON_ANY_NUMBER)
    static let integer = SchemaKinds(FERRY_JSON_INTEGER)
    static let bool = SchemaKinds(FERRY_JSON_BOOL)
    static let null = SchemaKinds(FERRY_JSON_NULL)
    static let object = SchemaKinds(FERRY_JSON_OBJECT)
    static let array = SchemaKinds(FERRY_JSON_ARRAY)
    static let any: SchemaKinds = [.string, .number, .integer, .bool, .null, .object, .array]

    init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ kind: ferry_json_kind) { rawValue = UInt32(kind.rawValue) }

    /// `string or null`.
    var text: String {
        if isSuperset(of: [.string, .number, .bool, .null, .object, .array]) { return "anything" }
        let names: [(SchemaKinds, String)] = [
            (.string, "string"), (.number, "number"), (.integer, "integer"), (.bool, "bool"), (.object, "object"),
            (.array, "array"), (.null, "null"),
        ]
        let present = names.filter { contains($0.0) && !($0.0 == .integer && contains(.number)) }.map(\.1)
        return present.isEmpty ? "nothing" : present.joined(separator: " or ")
    }
}
