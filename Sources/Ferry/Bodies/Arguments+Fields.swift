extension Arguments {
    /// As the fields of a form: names sorted and nested as in a query (`a[b]`, `a[]`), but nothing escaped; `null` is
    /// an empty value.
    var fields: [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for (name, value) in values.sorted(by: { $0.key < $1.key }) { Self.append(value, under: name, to: &fields) }
        return fields
    }

    private static func append(_ value: Value, under name: String, to fields: inout [(name: String, value: String)]) {
        switch value {
        case .object(let members):
            for (member, value) in members.sorted(by: { $0.key < $1.key }) {
                append(value, under: "\(name)[\(member)]", to: &fields)
            }
        case .array(let elements):
            for element in elements { append(element, under: "\(name)[]", to: &fields) }
        case .null: fields.append((name, ""))
        case .bool(let value): fields.append((name, value ? "true" : "false"))
        case .integer(let value): fields.append((name, String(value)))
        case .number(let value): fields.append((name, text(of: value)))
        case .string(let value): fields.append((name, value))
        }
    }
}
