import FerryJSON
import Testing

@Suite struct SchemaTests {
    static let user: JSONSchema = [
        "nick": .string, "level": .number, "tags": [.string], "extra": .any.optional, "bio": .string.nullable,
        "question": ["id": .number],
    ]
    static let good = #"{"nick":"kim","level":1,"tags":["a"],"bio":null,"question":{"id":4,"more":1},"unknown":[]}"#

    /// The result of the check, or "fits".
    private func verdict(_ schema: JSONSchema, _ text: String) throws -> String {
        do {
            try schema.check(JSON(parsing: text))
            return "fits"
        } catch let error as JSONMismatch {
            return error.description
        }
    }

    @Test func aDocumentOfTheRightShapeFits() throws {
        #expect(try verdict(Self.user, Self.good) == "fits")
        #expect(try verdict([Self.user], "[\(Self.good),\(Self.good)]") == "fits")
    }

    @Test func theErrorHasThePathWhatWasExpectedAndWhatStoodThere() throws {
        let bad = Self.good.replacing("\"id\":4", with: "\"id\":\"x\"")
        #expect(
            try verdict([Self.user], "[\(Self.good),\(Self.good),\(Self.good),\(bad)]")
                == "$[3].question.id: expected number, found string")
    }

    @Test(
        "Kinds",
        arguments: [
            (JSONSchema.string, "\"a\"", "1", "number"), (.number, "1.5", "true", "bool"),
            (.integer, "1.0", "null", "null"),
            (.bool, "false", "0", "number"), (.null, "null", "\"null\"", "string"), (.object, "{}", "[]", "array"),
            (.array, "[1,\"a\"]", "{}", "object"),
        ])
    func kinds(_ schema: JSONSchema, _ fitting: String, _ other: String, _ found: String) throws {
        #expect(try verdict(schema, fitting) == "fits")
        #expect(try verdict(schema, other).hasSuffix("found \(found)"))
        #expect(try verdict(.any, other) == "fits")
    }

    @Test func theEmptyLiteralIsAnyArray() throws {
        let schema: JSONSchema = ["list": []]
        #expect(try verdict(schema, #"{"list":[1,"a",[]]}"#) == "fits")
        #expect(try verdict(schema, #"{"list":{}}"#) == "$.list: expected array, found object")
    }

    @Test func anInfiniteEndBoundsNothing() throws {
        let schemas: [(JSONSchema, String, String?)] = [
            (.number(in: 0...Double.infinity), "1e300", "-1"), (.number(in: -Double.infinity...0), "-1e300", "1"),
            (.number(in: -Double.infinity..<Double.infinity), "1e19", nil), (.number(in: ..<Double.infinity), "1", nil),
        ]
        for (schema, fitting, other) in schemas {
            #expect(try verdict(schema, fitting) == "fits")
            #expect(try verdict(schema, "0") == "fits")
            if let other { #expect(try verdict(schema, other) != "fits") }
        }
    }

    @Test func aNamedKeyIsRequiredUnlessOptional() throws {
        let schema: JSONSchema = ["a": .string, "b": .integer.optional]
        #expect(try verdict(schema, #"{"a":"x"}"#) == "fits")
        #expect(try verdict(schema, #"{"b":1}"#) == "$.a: expected string, found nothing")
        #expect(try verdict(schema, #"{"a":"x","b":"y"}"#) == "$.b: expected integer, found string")
        #expect(try verdict(["list": [schema]], #"{"list":[{}]}"#) == "$.list[0].a: expected string, found nothing")
    }

    @Test func nullPassesOnlyWhereNullable() throws {
        #expect(try verdict(["a": .string.optional], #"{"a":null}"#) == "$.a: expected string, found null")
        #expect(try verdict(["a": .string.nullable], #"{"a":null}"#) == "fits")
        #expect(try verdict(["a": .string.nullable], #"{}"#) == "$.a: expected string or null, found nothing")
        #expect(try verdict(["a": .string.nullable.optional], #"{}"#) == "fits")
        #expect(try verdict(["a": .enumeration("x").nullable], #"{"a":null}"#) == "fits")
        #expect(try verdict(["a": .oneOf(.string, .bool).optional.nullable], #"{}"#) == "fits")
    }

    @Test func aBooleanIsNoNumberAndAFractionNoInteger() throws {
        #expect(try verdict(.number, "true") == "$: expected number, found bool")
        #expect(try verdict(.integer, "1.5") == "$: expected integer, found number with a fraction")
        #expect(try verdict(.integer, "1e400".replacing("400", with: "20")) == "fits")
    }

    @Test func extraKeysAreIgnoredUnlessTheObjectIsClosed() throws {
        let schema: JSONSchema = ["a": .integer]
        #expect(try verdict(schema, #"{"a":1,"b":2}"#) == "fits")
        #expect(try verdict(schema.closed, #"{"a":1}"#) == "fits")
        #expect(
            try verdict(schema.closed, #"{"a":1,"b c":2}"#)
                == "$[\"b c\"]: expected no other keys, found a key that is not named")
    }

    @Test func ofAKeyThatStandsTwiceTheLastHasToFit() throws {
        let schema: JSONSchema = ["a": .integer]
        #expect(try verdict(schema, #"{"a":"x","a":1}"#) == "fits")
        #expect(try verdict(schema, #"{"a":1,"a":"x"}"#) == "$.a: expected integer, found string")
    }

    @Test func numbersStayWithinTheirRange() throws {
        #expect(try verdict(.integer(in: 1...9), "9") == "fits")
        #expect(
            try verdict(.integer(in: 1...9), "10")
                == "$: expected integer at least 1 and at most 9, found higher number")
        #expect(try verdict(.integer(in: 1..<9), "9").hasSuffix("found higher number"))
        #expect(try verdict(.integer(in: 1...), "0").hasSuffix("integer at least 1, found lower number"))
        #expect(try verdict(.integer(in: ...5), "18446744073709551615").hasSuffix("found higher number"))
        #expect(try verdict(.number(in: 0..<1), "0.999") == "fits")
        #expect(try verdict(.number(in: 0..<1), "1.0").hasSuffix("found higher number"))
        #expect(
            try verdict(.integer(in: ...9_007_199_254_740_992), "9007199254740993").hasSuffix("found higher number"))
    }

    @Test func lengthsAreCountedInScalarsAndElements() throws {
        #expect(try verdict(.string(minLength: 2, maxLength: 3), "\"äöü\"") == "fits")
        #expect(
            try verdict(.string(minLength: 2), "\"ä\"")
                == "$: expected string of at least 2 characters, found shorter string")
        #expect(try verdict(.string(maxLength: 2), "\"abc\"").hasSuffix("found longer string"))
        #expect(try verdict(.array(of: .any, minCount: 1, maxCount: 2), "[1]") == "fits")
        #expect(
            try verdict(.array(of: .any, minCount: 1), "[]")
                == "$: expected array of at least 1 elements, found shorter array")
        #expect(try verdict(.array(of: .any, maxCount: 1), "[1,2]").hasSuffix("found longer array"))
    }

    @Test func valuesOfAnEnumerationAreComparedWhole() throws {
        let schema = JSONSchema.enumeration("red", 1, ["a": [1, 2]], .null)
        for text in ["\"red\"", "1.0", #"{"a":[1,2.0]}"#, "null"] { #expect(try verdict(schema, text) == "fits") }
        #expect(
            try verdict(schema, "\"blue\"") == #"$: expected one of "red", 1, {"a":[1,2]}, null, found another string"#)
        #expect(try verdict(schema, #"{"a":[2,1]}"#).hasSuffix("found another object"))
    }

    @Test func oneOfFitsOnceAnyOfAtLeastOnce() throws {
        let one = JSONSchema.oneOf(.string, .integer(in: 0...9), .integer(in: 5...20))
        #expect(try verdict(one, "\"a\"") == "fits")
        #expect(try verdict(one, "3") == "fits")
        #expect(
            try verdict(one, "7") == "$: expected exactly one of the alternatives, found number that matches several")
        #expect(try verdict(one, "true") == "$: expected string or integer, found bool")
        let any = JSONSchema.anyOf(.string, ["id": .integer])
        #expect(try verdict(any, "\"a\"") == "fits")
        #expect(try verdict(any, #"{"id":"x"}"#) == "$.id: expected integer, found string")
        #expect(try verdict(any, "1") == "$: expected string or object, found number")
    }

    @Test func aDictionaryChecksEveryValue() throws {
        #expect(try verdict(.dictionary(of: .integer), #"{"a":1,"b":2}"#) == "fits")
        #expect(try verdict(.dictionary(of: .integer), #"{"a":1,"b":"x"}"#) == "$.b: expected integer, found string")
    }

    @Test func objectsMayHaveMoreThan64Members() throws {
        let names = (0..<200).map { "key\($0)" }
        let members = names.map { "\"\($0)\": 1" }
        let document = try JSON(
            parsing: #"{"type":"object","required":\#(JSON(names.map { JSON($0) })),"properties":{}}"#)
        let schema = try JSONSchema(document: document)
        #expect(try verdict(schema, "{\(members.reversed().joined(separator: ","))}") == "fits")
        #expect(try verdict(schema, "{\(members.dropLast().joined(separator: ","))}").hasPrefix("$.key199:"))
        #expect(try verdict(schema, "{\(members.dropFirst().joined(separator: ","))}").hasPrefix("$.key0:"))
    }

    @Test func theOrderOfTheMembersDoesNotMatter() throws {
        let schema: JSONSchema = ["a": .integer, "b": .string, "c": .bool, "d": .null]
        let members = [#""a":1"#, #""b":"x""#, #""c":true"#, #""d":null"#, #""e":5"#]
        for shift in members.indices {
            let turned = members[shift...] + members[..<shift]
            #expect(try verdict(schema, "{\(turned.joined(separator: ","))}") == "fits")
            #expect(try verdict(schema, "{\(turned.reversed().joined(separator: ","))}") == "fits")
        }
    }

    @Test func aTextIsCheckedWithoutMakingAValue() throws {
        let text = Array(Self.good.utf8)
        try text.withUnsafeBytes { try Self.user.check(parsing: $0, spare: 0) }
        #expect(throws: JSONMismatch.self) {
            try Array("[]".utf8).withUnsafeBytes { try Self.user.check(parsing: $0, spare: 0) }
        }
        #expect(throws: JSONSyntaxError.self) {
            try Array("[".utf8).withUnsafeBytes { try Self.user.check(parsing: $0, spare: 0) }
        }
        #expect(throws: JSONSyntaxError.self) {
            try Self.user.check(parsing: UnsafeRawBufferPointer(start: nil, count: 0), spare: 0)
        }
    }

    @Test func theDocumentsValuesStayOutOfTheErrors() throws {
        let secret = "canary-4711"
        for schema in [JSONSchema.integer, .enumeration("x"), .string(maxLength: 1), .string(matching: "^x$")] {
            #expect(try !verdict(["a": schema], #"{"a":"\#(secret)"}"#).contains(secret))
        }
    }
}
