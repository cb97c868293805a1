import FerryJSON
import Testing

/// Each keyword of JSON Schema, in both drafts: texts that match, and texts that do not.
@Suite struct SchemaKeywordTests {
    private func fits(_ schema: JSONSchema, _ text: String) throws -> Bool {
        do {
            try schema.check(JSON(parsing: text))
            return true
        } catch is JSONMismatch {
            return false
        }
    }

    private func schema(_ text: String, _ draft: String) throws -> JSONSchema {
        let members = text.dropFirst()
        let rest = members == "}" ? members : "," + members
        return try JSONSchema(document: JSON(parsing: #"{"$schema":"\#(draft)""# + rest))
    }

    private static let drafts = [
        "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#",
    ]

    private func check(_ text: String, _ drafts: [String], _ fitting: [String], _ others: [String]) throws {
        for draft in drafts {
            let schema = try schema(text, draft)
            for document in fitting { #expect(try fits(schema, document), "\(document) in \(draft)") }
            for document in others { #expect(try !fits(schema, document), "\(document) in \(draft)") }
        }
    }

    @Test(
        "Keywords of both drafts",
        arguments: [
            (#"{"enum":[1,"a"],"const":1}"#, ["1", "1.0"], ["\"a\"", "2"]),
            (#"{"const":1,"enum":[1,"a"]}"#, ["1"], ["\"a\"", "null"]),
            (#"{"enum":[1,2],"const":3}"#, [], ["1", "3"]),
            (#"{"enum":[]}"#, [], ["1", "null", "[]", "{}"]),
            (#"{"enum":[],"type":["string","null"]}"#, [], ["null", "\"\""]),
            (#"{"properties":{"a":{"enum":[]}}}"#, ["{}", "{\"b\":1}"], ["{\"a\":1}"]),
            (#"{"const":{"a":[1,{"b":2}]}}"#, [#"{"a":[1.0,{"b":2}]}"#], [#"{"a":[{"b":2},1]}"#, "{}"]),
            // No object has a key that is required and forbidden.
            (#"{"required":["a"],"additionalProperties":false}"#, ["5", "[]"], ["{}", #"{"a":1}"#, #"{"b":1}"#]),
            (#"{"not":{"required":["a"],"additionalProperties":false}}"#, ["{}", #"{"a":1}"#], ["5", "null"]),
            (#"{"contains":{"required":["a"],"additionalProperties":false}}"#, [#"[{"a":1},5]"#], [#"[{"a":1},{}]"#]),
            (#"{"multipleOf":0.01}"#, ["19.99", "0", "1e20", "\"x\"", "-0.07"], ["0.001", "19.995"]),
            (#"{"multipleOf":3}"#, ["9", "-9.0", "0", "3e15"], ["10", "1.5", "1e15"]),
            (#"{"multipleOf":2.5}"#, ["5", "7.5", "1e3"], ["6", "2"]),
            (#"{"multipleOf":1e-8}"#, ["12391239123", "0.00000001"], ["0.000000001"]),
            (#"{"multipleOf":7}"#, ["18446744073709551614", "-9223372036854775807"], ["18446744073709551615"]),
            (
                #"{"uniqueItems":true}"#, ["[1,2]", "[]", "[1,true]", "[0,false]", #"["1",1]"#, "[[1],[2]]", "{}"],
                ["[1,1.0]", #"[{"a":1,"b":2},{"b":2,"a":1}]"#, "[[],[]]", "[null,null]"]
            ),
            (#"{"uniqueItems":false}"#, ["[1,1]"], []),
            (#"{"minProperties":2,"maxProperties":3}"#, [#"{"a":1,"b":1}"#, "[]"], ["{}", #"{"a":1,"a":2}"#]),
            (#"{"maxProperties":1}"#, [#"{"a":1,"a":2}"#, "{}"], [#"{"a":1,"b":2}"#]),
            (#"{"propertyNames":{"maxLength":2}}"#, [#"{"ab":1}"#, "{}", "\"abc\""], [#"{"abc":1}"#]),
            (#"{"propertyNames":false}"#, ["{}"], [#"{"a":1}"#]),
            (
                #"{"patternProperties":{"^n":{"type":"integer"},"s$":{"minimum":5}}}"#,
                [#"{"n":1,"x":"y"}"#, #"{"ns":5}"#, #"{"xs":"a"}"#], [#"{"n":"x"}"#, #"{"ns":4}"#, #"{"xs":1}"#]
            ),
            (
                #"{"properties":{"nx":{"maximum":9}},"patternProperties":{"^n":{"minimum":5}},"additionalProperties":false}"#,
                [#"{"nx":7,"ny":70}"#, "{}"], [#"{"nx":10}"#, #"{"nx":4}"#, #"{"x":1}"#]
            ),
            (
                #"{"patternProperties":{"^n":true},"additionalProperties":{"type":"null"}}"#,
                [#"{"n":1,"x":null}"#], [#"{"x":1}"#]
            ),
            (
                #"{"required":["na","b"],"patternProperties":{"^[nb]":{"type":"integer"}},"additionalProperties":false}"#,
                [#"{"na":1,"b":2}"#], [#"{"na":1}"#, #"{"na":"x","b":1}"#, #"{"na":1,"b":2,"c":3}"#]
            ),
            (#"{"allOf":[{"minimum":1},{"maximum":3}]}"#, ["2", "\"x\""], ["0", "4"]),
            (#"{"not":{"type":"string"}}"#, ["1"], ["\"a\""]), (#"{"not":true}"#, [], ["1", "null"]),
            (#"{"not":{"not":{"type":"integer"}}}"#, ["1"], ["1.5"]),
            (
                #"{"if":{"type":"integer"},"then":{"minimum":5},"else":{"type":"string"}}"#, ["5", "\"a\""],
                ["4", "1.5", "null"]
            ),
            (#"{"if":{"minimum":5},"else":{"maximum":2}}"#, ["6", "1", "\"x\""], ["3"]),
            (#"{"then":{"type":"null"},"else":false}"#, ["1"], []), (#"{"if":false}"#, ["1"], []),
            (#"{"contains":{"type":"null"}}"#, ["[1,null]", "{}"], ["[]", "[1]"]),
            (#"{"contains":false}"#, ["1"], ["[1]", "[]"]),
            (
                ##"{"$ref":"#/definitions/small","definitions":{"small":{"maximum":9}}}"##, ["9", "\"x\""], ["10"]
            ),
            (
                ##"{"properties":{"next":{"$ref":"#"}},"additionalProperties":false}"##,
                [#"{"next":{"next":{}}}"#], [#"{"next":{"nex":{}}}"#, #"{"a":1}"#]
            ),
            (
                #"{"title":"t","description":"d","default":1,"examples":[1],"readOnly":true,"writeOnly":false,"$comment":"c","contentEncoding":"base64","contentMediaType":"text/plain","format":"no such format"}"#,
                ["1", "\"not base64\""], []
            ),
            (#"{"type":"string","type":"integer","minimum":1,"minimum":0}"#, ["0"], ["\"x\"", "-1"]),
        ] as [(String, [String], [String])])
    func both(_ text: String, _ fitting: [String], _ others: [String]) throws {
        try check(text, Self.drafts, fitting, others)
    }

    @Test(
        "Keywords of 2020-12",
        arguments: [
            (
                #"{"prefixItems":[{"type":"string"},{"type":"integer"}]}"#, [#"["a",1,null]"#, #"["a"]"#, "[]", "1"],
                [#"["a","b"]"#, "[1]"]
            ),
            (#"{"prefixItems":[true],"items":false}"#, ["[1]", "[]"], ["[1,2]"]),
            (#"{"prefixItems":[true,true],"items":{"type":"null"}}"#, ["[1,2,null]"], ["[1,2,3]"]),
            (#"{"contains":{"minimum":5},"minContains":2}"#, ["[5,1,6]"], ["[5,1]", "[]"]),
            (#"{"contains":{"minimum":5},"minContains":0,"maxContains":1}"#, ["[]", "[5,1]"], ["[5,6]"]),
            (#"{"contains":{"minimum":5},"maxContains":2}"#, ["[5,6,1]"], ["[1]", "[5,6,7]"]),
            (#"{"minContains":5}"#, ["[]"], []),
            (#"{"dependentRequired":{"a":["b","c"]}}"#, [#"{"a":1,"b":1,"c":1}"#, #"{"b":1}"#], [#"{"a":1,"b":1}"#]),
            (
                #"{"dependentSchemas":{"a":{"properties":{"b":{"type":"null"}}}}}"#,
                [#"{"a":1,"b":null}"#, #"{"b":1}"#],
                [#"{"a":1,"b":1}"#]
            ),
            (##"{"$ref":"#/$defs/a","minimum":5,"$defs":{"a":{"maximum":9}}}"##, ["7"], ["4", "10"]),
            (##"{"$ref":"#small","$defs":{"x":{"$anchor":"small","maximum":9}}}"##, ["9"], ["10"]),
            (##"{"$ref":"#node","$defs":{"x":{"$dynamicAnchor":"node","maximum":9}}}"##, ["9"], ["10"]),
            (
                #"{"properties":{"a":true},"patternProperties":{"^x":true},"unevaluatedProperties":false}"#,
                [#"{"a":1,"xy":2}"#, "{}", "1"], [#"{"b":1}"#]
            ),
            (
                #"{"allOf":[{"properties":{"a":true}},{"anyOf":[{"properties":{"b":{"type":"integer"}},"required":["b"]},{"properties":{"c":true}}]}],"unevaluatedProperties":false}"#,
                [#"{"a":1,"b":1}"#, #"{"a":1,"b":1,"c":1}"#, #"{"c":1}"#], [#"{"b":"x","c":1}"#, #"{"d":1}"#]
            ),
            (
                #"{"if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"properties":{"a":true}},"else":{"properties":{"b":true}},"unevaluatedProperties":false}"#,
                [#"{"k":1,"a":1}"#, #"{"b":1}"#], [#"{"k":1,"b":1}"#, #"{"k":2}"#, #"{"a":1}"#]
            ),
            (
                #"{"dependentSchemas":{"a":{"properties":{"b":true}}},"properties":{"a":true},"unevaluatedProperties":false}"#,
                [#"{"a":1,"b":1}"#], [#"{"b":1}"#]
            ),
            (
                ##"{"$ref":"#/$defs/p","properties":{"b":true},"unevaluatedProperties":{"type":"null"},"$defs":{"p":{"properties":{"a":true}}}}"##,
                [#"{"a":1,"b":1,"c":null}"#], [#"{"c":1}"#]
            ),
            (
                #"{"required":["a"],"allOf":[{"required":["b"]}],"unevaluatedProperties":false}"#, [],
                [#"{"a":1,"b":1}"#, "{}"]
            ),
            (#"{"not":{"not":{"properties":{"a":true}}},"unevaluatedProperties":false}"#, ["{}"], [#"{"a":1}"#]),
            (#"{"additionalProperties":true,"unevaluatedProperties":false}"#, [#"{"a":1}"#], []),
            (#"{"allOf":[{"unevaluatedProperties":true}],"unevaluatedProperties":false}"#, [#"{"a":1}"#], []),
            (
                #"{"prefixItems":[true],"contains":{"type":"string"},"unevaluatedItems":false}"#, [#"[1,"a","b"]"#],
                [#"[1,"a",2]"#]
            ),
            (
                #"{"oneOf":[{"prefixItems":[{"const":1},true]},{"prefixItems":[{"const":2}]}],"unevaluatedItems":{"type":"null"}}"#,
                ["[1,2]", "[2,null]", "[2]"], ["[2,3]", "[1,2,3]"]
            ),
            (#"{"allOf":[{"items":true}],"unevaluatedItems":false}"#, ["[1]"], []),
        ] as [(String, [String], [String])])
    func since2020(_ text: String, _ fitting: [String], _ others: [String]) throws {
        try check(text, [Self.drafts[0]], fitting, others)
    }

    @Test(
        "Keywords of draft-07",
        arguments: [
            (
                #"{"items":[{"type":"string"},true],"additionalItems":{"type":"null"}}"#,
                [#"["a",1,null]"#, #"["a"]"#],
                ["[1]", #"["a",1,2]"#]
            ),
            (#"{"items":[true],"additionalItems":false}"#, ["[1]"], ["[1,2]"]),
            (#"{"items":[],"additionalItems":false}"#, ["[]"], ["[1]"]),
            (#"{"items":{"type":"null"},"additionalItems":false}"#, ["[null,null]"], ["[1]"]),
            (#"{"additionalItems":false}"#, ["[1]"], []),
            (
                #"{"dependencies":{"a":["b"],"c":{"required":["d"]},"e":[]}}"#, [#"{"a":1,"b":1}"#, #"{"e":1}"#],
                [#"{"a":1}"#, #"{"c":1}"#]
            ),
            // Keywords beside a reference are ignored.
            (##"{"$ref":"#/$defs/a","minimum":5,"type":"null","$defs":{"a":{"maximum":9}}}"##, ["4"], ["10"]),
            (##"{"$ref":"#small","definitions":{"x":{"$id":"#small","maximum":9}}}"##, ["9"], ["10"]),
        ] as [(String, [String], [String])])
    func draft7(_ text: String, _ fitting: [String], _ others: [String]) throws {
        try check(text, [Self.drafts[1]], fitting, others)
    }

    @Test(
        "A keyword of the other draft is named",
        arguments: [
            (0, #"{"dependencies":{}}"#, "dependencies"), (0, #"{"additionalItems":true}"#, "additionalItems"),
            (0, #"{"items":[true]}"#, "schema"), (1, #"{"prefixItems":[true]}"#, "prefixItems"),
            (1, #"{"minContains":1}"#, "minContains"), (1, #"{"dependentRequired":{}}"#, "dependentRequired"),
            (1, #"{"unevaluatedProperties":false}"#, "unevaluatedProperties"), (1, #"{"$anchor":"a"}"#, "$anchor"),
            (0, ##"{"$dynamicRef":"#a"}"##, "$dynamicRef"), (0, ##"{"$recursiveRef":"#"}"##, "$recursiveRef"),
            (0, #"{"$vocabulary":{}}"#, "$vocabulary"),
            (0, #"{"allOf":[{"$schema":"http://json-schema.org/draft-07/schema#"}]}"#, "$schema"),
        ])
    func otherDraft(_ draft: Int, _ text: String, _ keyword: String) {
        let error = #expect(throws: JSONSchemaError.self) { try schema(text, Self.drafts[draft]) }
        #expect(error?.keyword == keyword)
    }

    @Test(
        "The missed keyword is named",
        arguments: [
            (
                #"{"not":{"type":"null"}}"#, "null",
                #"$: expected a value that does not match the schema of "not", found null that matches it"#
            ),
            (#"{"items":{"multipleOf":0.5}}"#, "[1,0.7]", "$[1]: expected multiple of 0.5, found another number"),
            (#"{"uniqueItems":true}"#, "[1,1]", "$: expected array of unique elements, found equal elements"),
            (#"{"contains":{"type":"null"}}"#, "[1]", "$: expected array with at least 1 that are null, found fewer"),
            (#"{"contains":true,"maxContains":1}"#, "[1,2]", "$: expected array with at most 1 that fit, found more"),
            (#"{"minProperties":1}"#, "{}", "$: expected object of at least 1 members, found shorter object"),
            (
                #"{"propertyNames":{"pattern":"^a"}}"#, #"{"b":1}"#,
                "$.b: expected string matching ^a, found another string"
            ),
            (#"{"dependentRequired":{"a":["b"]}}"#, #"{"a":1}"#, "$.b: expected anything, found nothing"),
            (
                #"{"unevaluatedProperties":false}"#, #"{"a":1}"#,
                "$.a: expected no other keys, found a key that is not named"
            ),
            (#"{"patternProperties":{"^a":{"type":"null"}}}"#, #"{"ab":1}"#, "$.ab: expected null, found number"),
            (#"{"prefixItems":[true],"items":false}"#, "[1,2]", "$[1]: expected nothing, found number"),
            (#"{"enum":[1],"const":2}"#, "1", "$: expected nothing, found another number"),
            (
                ##"{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}],"$defs":{"a":{"type":"string"}}}"##, "1",
                "$: expected string or null, found number"
            ),
            (
                ##"{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}],"$defs":{"a":{"required":["x"],"type":"object"}}}"##,
                "{}", "$.x: expected anything, found nothing"
            ),
        ])
    func message(_ text: String, _ document: String, _ message: String) throws {
        let schema = try JSONSchema(document: JSON(parsing: text))
        let error = try #require(throws: JSONMismatch.self) { try schema.check(JSON(parsing: document)) }
        #expect(error.description == message)
    }

    @Test func theWordsOfTheLanguageSayTheSame() throws {
        let point = JSONSchema.tuple(.number, .number, .string.optional)
        for text in ["[1,2]", #"[1,2,"m"]"#] { #expect(try fits(point, text)) }
        for text in ["[1]", "[1,2,3]", #"[1,2,"m",4]"#, #"["x",2]"#] { #expect(try !fits(point, text)) }
        let name = JSONSchema.allOf(.string(minLength: 1), .not(.enumeration("admin")))
        #expect(try fits(name, "\"kim\"") && !fits(name, "\"admin\"") && !fits(name, "\"\"") && !fits(name, "1"))
        let scores = JSONSchema.dictionary(
            of: .integer(in: 0...100).multiple(of: 5), keys: .string(maxLength: 2), minCount: 1, maxCount: 2)
        #expect(try fits(scores, #"{"a":5,"b":10}"#))
        for text in ["{}", #"{"a":4}"#, #"{"abc":5}"#, #"{"a":5,"b":5,"c":5}"#, #"{"a":105}"#] {
            #expect(try !fits(scores, text))
        }
        let ids = JSONSchema.array(of: .string(format: .uuid), unique: true)
        #expect(try fits(ids, #"["123e4567-e89b-12d3-a456-426614174000"]"#) && !fits(ids, #"["x"]"#))
        #expect(
            try fits(JSONSchema.not(.string).nullable, "null")
                && !fits(JSONSchema.not(.null).nullable.closed, "{}") == false)
    }

    @Test func aSchemaOfADocumentMayBePartOfAnother() throws {
        let tree = try JSONSchema(document: JSON(parsing: ##"{"type":"object","properties":{"a":{"$ref":"#"}}}"##))
        let pair: JSONSchema = ["x": tree, "y": tree.nullable.optional]
        #expect(try fits(pair, #"{"x":{"a":{"a":{}}},"y":null}"#))
        #expect(try !fits(pair, #"{"x":{"a":{"a":null}},"y":{}}"#))
        #expect(try !fits(pair, #"{"x":{},"y":{"a":1}}"#))
    }

    @Test func manyElementsAreComparedByValue() throws {
        let schema = try JSONSchema(document: ["uniqueItems": true])
        let scalars = (0..<40).flatMap { ["\($0)", "\"\($0)\"", "\($0).5"] }
        let deep = (0..<40).map { #"{"a":[\#($0),{"b":"\#($0)"}],"c":[]}"# }
        for list in [scalars, deep, scalars + deep] {
            #expect(try fits(schema, "[\(list.joined(separator: ","))]"))
            #expect(try fits(schema, "[true,\(list.joined(separator: ",")),false,null]"))
        }
        for twin in ["39.0", "\"7\"", "7.50"] {
            #expect(try !fits(schema, "[\(scalars.joined(separator: ",")),\(twin)]"))
        }
        for twin in [#"{"c":[],"a":[7.0,{"b":"7"}]}"#, #"{"c":1,"c":[],"a":[7,{"b":0,"b":"7"}]}"#] {
            #expect(try !fits(schema, "[\(deep.joined(separator: ",")),\(twin)]"))
        }
        #expect(try fits(schema, "[\(deep.joined(separator: ",")),\(#"{"c":[],"a":[7,{"b":"8"}]}"#)]"))
    }
}
