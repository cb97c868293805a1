import FerryJSON
import Testing

@Suite struct SchemaVocabularyTests {
    private func schema(_ text: String) throws -> JSONSchema { try JSONSchema(document: JSON(parsing: text)) }

    private func fits(_ schema: JSONSchema, _ text: String) throws -> Bool {
        do {
            try schema.check(JSON(parsing: text))
            return true
        } catch is JSONMismatch {
            return false
        }
    }

    @Test func aWholeSchemaIsRead() throws {
        let schema = try schema(
            """
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "x", "title": "Users", "type": "array",
             "minItems": 1, "maxItems": 2, "items": {
               "type": "object", "required": ["id", "name"], "additionalProperties": false, "properties": {
                 "id": {"type": "integer", "minimum": 1, "exclusiveMaximum": 100},
                 "name": {"type": ["string", "null"], "minLength": 1, "maxLength": 5, "pattern": "^[a-z]+$"},
                 "color": {"enum": ["red", "green"]}, "version": {"const": 2},
                 "any": true, "size": {"anyOf": [{"type": "number"}, {"const": "big"}]}}}}
            """)
        for text in [
            #"[{"id":1,"name":"kim"}]"#, #"[{"id":99.0,"name":null,"color":"red","version":2,"any":[],"size":"big"}]"#,
        ] {
            #expect(try fits(schema, text))
        }
        for text in [
            "[]", #"[{"id":1}]"#, #"[{"id":0,"name":"a"}]"#, #"[{"id":100,"name":"a"}]"#, #"[{"id":1,"name":""}]"#,
            #"[{"id":1,"name":"abcdef"}]"#, #"[{"id":1,"name":"A"}]"#, #"[{"id":1,"name":"a","x":1}]"#,
            #"[{"id":1,"name":"a","color":"blue"}]"#, #"[{"id":1,"name":"a","version":3}]"#,
            #"[{"id":1,"name":"a","size":"small"}]"#, #"[1,2,3]"#, "{}",
        ] {
            #expect(try !fits(schema, text), "\(text)")
        }
    }

    @Test func keywordsCountOnlyForTheirKindWithoutAType() throws {
        let schema = try schema(#"{"minLength": 2, "minimum": 5, "required": ["a"], "items": {"type": "string"}}"#)
        for text in ["\"ab\"", "5", #"{"a":1}"#, #"["x"]"#, "null", "true"] { #expect(try fits(schema, text)) }
        for text in ["\"a\"", "4", "{}", "[1]"] { #expect(try !fits(schema, text)) }
    }

    @Test func membersNotNamedFollowAdditionalProperties() throws {
        let schema = try schema(
            #"{"properties": {"a": {"type": "string"}}, "required": ["b"], "additionalProperties": {"type": "integer"}}"#
        )
        #expect(try fits(schema, #"{"a":"x","b":1,"c":2}"#))
        #expect(try !fits(schema, #"{"a":"x","b":"y"}"#))
        #expect(try !fits(schema, #"{"b":1,"c":"x"}"#))
    }

    @Test func theStricterOfTwoBoundsCounts() throws {
        #expect(try !fits(schema(#"{"minimum":5,"exclusiveMinimum":5}"#), "5"))
        #expect(try !fits(schema(#"{"exclusiveMinimum":5,"minimum":7}"#), "6"))
        #expect(try !fits(schema(#"{"maximum":9,"exclusiveMaximum":7}"#), "8"))
        #expect(try fits(schema(#"{"maximum":9,"exclusiveMaximum":12}"#), "9"))
    }

    @Test func theSchemaFalseRefusesEverything() throws {
        #expect(try !fits(schema(#"{"properties":{"a":false}}"#), #"{"a":1}"#))
        #expect(try fits(schema(#"{"properties":{"a":false}}"#), "{}"))
        #expect(try fits(schema("true"), "1"))
    }

    @Test(
        "An unsupported keyword is an error that names it and its place",
        arguments: [
            (##"{"$ref":"#/a"}"##, "$ref", ""),
            (#"{"properties":{"a/b":{"format":1}}}"#, "format", "/properties/a~1b"),
            (#"{"items":{"multipleOf":0}}"#, "multipleOf", "/items"),
            (#"{"oneOf":[true,{"not":{"$vocabulary":{}}}]}"#, "$vocabulary", "/oneOf/1/not"),
            (#"{"additionalProperties":{"uniqueItems":1}}"#, "uniqueItems", "/additionalProperties"),
            (#"{"allOf":[]}"#, "allOf", ""), (#"{"if":1}"#, "schema", "/if"), (#"{"type":"text"}"#, "type", ""),
            (#"{"type":[]}"#, "type", ""), (#"{"minimum":"1"}"#, "minimum", ""),
            (#"{"minLength":-1}"#, "minLength", ""),
            (#"{"minLength":1.5}"#, "minLength", ""), (#"{"enum":1}"#, "enum", ""),
            (#"{"required":"a"}"#, "required", ""), (#"{"required":[1]}"#, "required", ""),
            (#"{"properties":[]}"#, "properties", ""),
            (#"{"items":[{}]}"#, "schema", "/items"), ("1", "schema", ""), (#"{"anyOf":{}}"#, "anyOf", ""),
            (#"{"$schema":"http://json-schema.org/draft-04/schema#"}"#, "$schema", ""),
            (#"{"exclusiveMinimum":true}"#, "exclusiveMinimum", ""),
            (#"{"madeUp":1}"#, "madeUp", ""),
        ])
    func refused(_ text: String, _ keyword: String, _ pointer: String) throws {
        let error = #expect(throws: JSONSchemaError.self) { try schema(text) }
        #expect(error?.keyword == keyword)
        #expect(error?.pointer == pointer)
    }

    /// Two ways to write one letter are two keys.
    @Test func keysAreTheSameOnlyScalarByScalar() throws {
        let names = ["\u{e9}", "e\u{301}", "~\u{301}", "/\u{301}"]
        let pointers = ["%C3%A9", "e%CC%81", "~0%CC%81", "~1%CC%81"]
        for (number, pointer) in pointers.enumerated() {
            let schema = try JSONSchema(
                document: [
                    "$defs": [
                        names[0]: ["const": 0], names[1]: ["const": 1], names[2]: ["const": 2], names[3]: ["const": 3],
                    ],
                    "$ref": .init("#/$defs/\(pointer)"),
                ])
            #expect(try fits(schema, "\(number)"))
            #expect(try !fits(schema, "\(number + 1)"))
        }
        let both = try schema(
            "{\"properties\":{\"\u{e9}\":{\"const\":0},\"e\u{301}\":{\"const\":1}},\"required\":[\"\u{e9}\"]}")
        #expect(try fits(both, "{\"\u{e9}\":0,\"e\u{301}\":1}"))
        #expect(try !fits(both, "{\"e\u{301}\":1}"))
        #expect(try !fits(both, "{\"\u{e9}\":1}"))
        let patterns = try schema("{\"allOf\":[{\"pattern\":\"\u{e9}\"},{\"pattern\":\"e\u{301}\"}]}")
        #expect(try fits(patterns, "\"\u{e9}e\u{301}\""))
        #expect(try !fits(patterns, "\"\u{e9}\""))
    }

    @Test func schemasAreNested64Deep() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: #"{"items":"#, count: depth) + "true" + String(repeating: "}", count: depth)
        }
        _ = try schema(nested(64))
        let error = #expect(throws: JSONSchemaError.self) { try schema(nested(65)) }
        #expect(error?.message == "is nested more than 64 deep" && error?.keyword == "schema")
        let definitions = (0..<65).reduce("{}") { inner, _ in #"{"$defs":{"a":\#(inner)}}"# }
        #expect(throws: JSONSchemaError.self) { try schema(definitions) }
    }

    @Test func aLargeSchemaIsReadInLinearTime() throws {
        let growth = try growthOfEightfold(500) { count in
            let members = (0..<count).map { ##""key\##($0)":{"$ref":"#/$defs/d\##($0)"}"## }.joined(separator: ",")
            let definitions = (0..<count).map { #""d\#($0)":{"minLength":\#($0)}"# }.joined(separator: ",")
            let json = try JSON(parsing: #"{"properties":{\#(members)},"$defs":{\#(definitions)}}"#)
            return { try? JSONSchema(document: json).check(1) }
        }
        #expect(growth < mostGrowth)
    }

    @Test func aSchemaNestedWithoutEndIsRefused() {
        let text = String(repeating: #"{"items":"#, count: 500) + "{}" + String(repeating: "}", count: 500)
        #expect(throws: JSONSchemaError.self) { try schema(text) }
    }
}
