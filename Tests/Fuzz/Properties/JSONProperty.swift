import FerryJSON
import FoundationEssentials

/// JSON through parser, view, writer, schema, vocabulary and decoder: each way gives the same value.
func checkJSON(_ bytes: UnsafeRawBufferPointer) throws {
    let json: JSON
    do {
        json = try JSON(parsing: bytes, spare: 0)
    } catch {
        try promise((0...bytes.count).contains(error.offset), "an offset outside of the text")
        try expectRefusal(bytes)
        return
    }
    try walk(json)
    try checkText(json)
    try checkSchemas(json)
    decode(json, bytes)
    try checkEncoder(json, bytes)
}

/// Every view, and the pointer to it.
private func walk(_ json: JSON, depth: Int = 0) throws {
    guard depth < 100 else { return }
    _ = (json.bool, json.int, json.uint, json.double, json.string, json.isNull)
    if let array = json.array {
        try promise(array.map { _ in 1 }.count == array.count, "an array has another count")
        for element in array { try walk(element, depth: depth + 1) }
    }
    for key in json.object?.keys.prefix(50) ?? [] {
        let value = try promised(json[key], "a key that is there is not found")
        let pointer = "/" + key.replacing("~", with: "~0").replacing("/", with: "~1")
        try promise(json.value(atPointer: pointer) == value, "the pointer leads elsewhere")
        try promise(
            json.object?.filter { $0.key == key }.last?.value == value, "another member than the last was found")
        try walk(value, depth: depth + 1)
    }
}

/// Written text reads back as the same value.
private func checkText(_ json: JSON) throws {
    for text in [json.bytes(), json.bytes(pretty: true)] {
        let again = try promised(try? JSON(parsing: text), "own text is not read")
        try promise(again == json && again.hashValue == json.hashValue, "own text is read as something else")
    }
    try promise(json.detached() == json, "a detached value is another")
}

private let schemas: [JSONSchema] = [
    ["a": .string, "b": .integer(in: 0...9).optional, "c": [.number], "d": .any.nullable],
    [["id": .number, "tags": [.string(minLength: 1, maxLength: 5, matching: "^[a-z]+$")]]],
    .anyOf(.dictionary(of: .integer), .array(of: .oneOf(.string, .enumeration(1, "x", .null)), maxCount: 4)),
    (["x": ["y": ["z": .bool]]] as JSONSchema).closed,
]

private func checkSchemas(_ json: JSON) throws {
    for schema in schemas {
        do {
            try schema.check(json)
        } catch {
            try promise(error.path.hasPrefix("$"), "an error without a path")
        }
    }
    if let schema = try? JSONSchema(document: json) {
        try? schema.check(json)
    }
}

private struct Record: Codable {
    var a: String?
    var b: [Int]?
    var c: [String: [Double]]?
    var d: Date?
    var e: Kind?
    var f: [Int: JSON]?
    var g: Decimal?
    var h: [Record]?
}

/// Made by hand, from others of its kind.
private struct Tree: JSONConvertible {
    var a: [Tree]
    var b: [String: Tree]?
    var c: Double?
    init(json: JSON) throws {
        a = try json.value("a")
        b = try json.value("b")
        c = try json.value("c")
    }
}

private enum Kind: Codable {
    case none, one(Int), two(x: String, y: URL?)
}

private func decode(_ json: JSON, _ bytes: UnsafeRawBufferPointer) {
    var decoder = FerryJSONDecoder()
    _ = try? decoder.decode(Record.self, from: bytes, spare: 0)
    _ = try? decoder.decode([Record].self, from: json)
    _ = try? decoder.decode([String: JSON].self, from: json)
    _ = try? decoder.decode([Decimal].self, from: bytes, spare: 0)
    _ = try? json.value(as: Tree.self)
    _ = try? json.value(as: [String: [Int?]].self)
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    decoder.dateDecodingStrategy = .iso8601
    _ = try? decoder.decode(Record.self, from: json)
    _ = try? decoder.decode([Kind].self, from: json)
}

/// Encoded text decodes to the same value, in any layout.
private func checkEncoder(_ json: JSON, _ bytes: UnsafeRawBufferPointer) throws {
    var encoder = FerryJSONEncoder()
    encoder.outputFormatting = .sortedKeys
    var pretty = encoder
    pretty.outputFormatting.insert([.prettyPrinted, .withoutEscapingSlashes])
    let decoder = FerryJSONDecoder()
    if let view = try? encoder.encode(json) {
        let again = try promised(try? JSON(parsing: view), "an encoded view is not JSON")
        try promise(again == json || hasKeyTwice(json), "an encoded view is read as something else")
    }
    guard let record = try? decoder.decode(Record.self, from: bytes, spare: 0),
        let text = try? encoder.encode(record)
    else { return }
    // As values: `-0` is 0 the second time.
    let value = try JSON(parsing: text)
    for other in [text, try pretty.encode(record)] {
        let again = try promised(try? decoder.decode(Record.self, from: other), "an encoded value is not decoded")
        try promise(try JSON(parsing: encoder.encode(again)) == value, "an encoded value is decoded as another")
    }
}

private func hasKeyTwice(_ json: JSON) -> Bool {
    if let array = json.array { return array.contains(where: hasKeyTwice) }
    guard let object = json.object else { return false }
    // Keys that are canonically equivalent are also equal in Swift.
    return Set(object.keys).count < object.count || object.contains { hasKeyTwice($0.value) }
}

/// A text that is refused is refused by the decoder and the schema, too.
private func expectRefusal(_ bytes: UnsafeRawBufferPointer) throws {
    try promise((try? FerryJSONDecoder().decode(JSON.self, from: bytes, spare: 0)) == nil, "the decoder takes it")
    try promise((try? schemas[0].check(parsing: bytes, spare: 0)) == nil, "the schema takes it")
}
