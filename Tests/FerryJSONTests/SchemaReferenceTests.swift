import FerryJSON
import Testing

/// References within a document, and hostile uses of them.
@Suite struct SchemaReferenceTests {
    private func schema(_ text: String) throws -> JSONSchema { try JSONSchema(document: JSON(parsing: text)) }

    private func fits(_ schema: JSONSchema, _ text: String) throws -> Bool {
        do {
            try schema.check(JSON(parsing: text))
            return true
        } catch is JSONMismatch {
            return false
        }
    }

    @Test(
        "A reference leads to a schema of the document",
        arguments: [
            ##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"null"}}}"##,
            ##"{"$ref":"#/$defs/a~1b~0c","$defs":{"a/b~c":{"type":"null"}}}"##,
            ##"{"$ref":"#/$defs/a%20%C3%BC","$defs":{"a ü":{"type":"null"}}}"##,
            ##"{"$ref":"#/anyOf/0/items","anyOf":[{"items":{"type":"null"}}]}"##,
            ##"{"$ref":"#/$defs/a/$defs/b","$defs":{"a":{"$defs":{"b":{"type":"null"}}}}}"##,
            ##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#c"},"c":{"$anchor":"c","type":"null"}}}"##,
            #"{"$id":"http://a.de/x/root.json","$ref":"item.json","$defs":{"i":{"$id":"item.json","type":"null"}}}"#,
            #"{"$id":"http://a.de/x/root.json","$ref":"http://A.de/y/../x/item.json","$defs":{"i":{"$id":"./item.json","type":"null"}}}"#,
            ##"{"$id":"http://a.de/x/root.json","$ref":"/z/item.json#n","$defs":{"i":{"$id":"../z/item.json","$defs":{"n":{"$anchor":"n","type":"null"}}}}}"##,
            ##"{"$id":"http://a.de/root.json","$ref":"item#/$defs/n","$defs":{"i":{"$id":"item","$defs":{"n":{"type":"null"}}}}}"##,
            ##"{"$id":"http://a.de/root.json","$ref":"http://a.de/root.json#/$defs/a","$defs":{"a":{"type":"null"}}}"##,
            ##"{"$id":"urn:uuid:1","$ref":"urn:uuid:2","$defs":{"a":{"$id":"urn:uuid:2","$ref":"#/$defs/b","$defs":{"b":{"type":"null"}}}}}"##,
            ##"{"$ref":"item","$defs":{"a":{"$id":"item","allOf":[{"$ref":"#in"}],"$defs":{"b":{"$anchor":"in","type":"null"}}},"c":{"$anchor":"in"}}}"##,
            ##"{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"null"}}}"##,
        ])
    func leads(_ text: String) throws {
        let schema = try schema(text)
        #expect(try fits(schema, "null"))
        #expect(try !fits(schema, "1"))
    }

    @Test(
        "A reference that leads nowhere is an error that names it",
        arguments: [
            (##"{"$ref":"#/$defs/a"}"##, #"$["$ref"]"#, "refers to no schema: #/$defs/a"),
            (##"{"items":{"$ref":"#a"}}"##, #"$.items["$ref"]"#, "refers to no schema: #a"),
            (##"{"$ref":"#/$defs","$defs":{}}"##, #"$["$ref"]"#, "refers to no schema: #/$defs"),
            (##"{"$ref":"#/const","const":{}}"##, #"$["$ref"]"#, "refers to no schema: #/const"),
            (
                ##"{"prefixItems":[true,{"$ref":"other.json#/a"}]}"##, #"$.prefixItems[1]["$ref"]"#,
                "refers to another document, which is not supported: other.json"
            ),
            (
                #"{"$ref":"http://json-schema.org/draft-07/schema#"}"#, #"$["$ref"]"#,
                "refers to another document, which is not supported: http://json-schema.org/draft-07/schema"
            ),
            (##"{"$ref":"#/%zz"}"##, #"$["$ref"]"#, "has invalid percent-encoding"),
            (#"{"$ref":1}"#, #"$["$ref"]"#, "must be a string"), (#"{"$id":1}"#, #"$["$id"]"#, "must be a string"),
            (#"{"$id":"a#b"}"#, #"$["$id"]"#, "has a fragment; use $anchor"),
            (#"{"$anchor":"/a"}"#, #"$["$anchor"]"#, "must be a name"),
            (
                #"{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}"#, #"$["$defs"].b["$anchor"]"#,
                "appears twice in the document"
            ),
            (#"{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}}"#, #"$["$defs"].b["$id"]"#, "appears twice in the document"),
            (
                #"{"properties":{"properties":{"pattern":"(?=a)"}}}"#, "$.properties.properties.pattern",
                "look-ahead is not supported"
            ),
            (
                #"{"properties":{"0":{"allOf":[true,{"a b":1}]}}}"#, #"$.properties["0"].allOf[1]["a b"]"#,
                "is not supported"
            ),
            (
                #"{"items":[]}"#, "$.items",
                "must be an object or a boolean; a list of schemas is prefixItems in 2020-12"
            ),
        ])
    func leadsNowhere(_ text: String, _ path: String, _ message: String) throws {
        let error = try #require(throws: JSONSchemaError.self) { try schema(text) }
        #expect(error.description == "\(path): \(message)")
    }

    @Test(
        "A reference that only leads back to itself is an error",
        arguments: [
            ##"{"$ref":"#"}"##, ##"{"allOf":[{"$ref":"#"}]}"##, ##"{"not":{"anyOf":[true,{"oneOf":[{"$ref":"#"}]}]}}"##,
            ##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
            ##"{"if":true,"then":{"$ref":"#"}}"##, ##"{"dependentSchemas":{"a":{"$ref":"#"}}}"##,
            ##"{"$defs":{"unused":{"$ref":"#/$defs/unused"}}}"##,
            ##"{"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"allOf":[{"not":{"$ref":"#/$defs/a"}}]}}}"##,
            ##"{"allOf":[{"$anchor":"x","if":{"$ref":"#"}}]}"##,
        ])
    func circle(_ text: String) throws {
        let error = try #require(throws: JSONSchemaError.self) { try schema(text) }
        #expect(error.keyword == "$ref" && error.message == "refers back to itself for the same value")
    }

    @Test func aReferenceThatGoesOnIsNoCircle() throws {
        let tree = try schema(
            ##"{"$ref":"#/$defs/node","$defs":{"node":{"type":["object","null"],"properties":{"left":{"$ref":"#/$defs/node"},"right":{"$ref":"#/$defs/node"}},"propertyNames":{"$ref":"#/$defs/name"}},"name":{"type":"string","items":{"$ref":"#"}}}}"##
        )
        #expect(try fits(tree, #"{"left":{"left":null,"right":{}},"right":null}"#))
        #expect(try !fits(tree, #"{"left":{"left":null,"right":{"left":1}}}"#))
    }

    /// 2 to the power of 1,000 paths lead through the document, and through the schema.
    @Test func noNumberOfWaysTakesExponentialTime() throws {
        let wide = try schema(
            ##"{"anyOf":[{"properties":{"a":{"$ref":"#"}},"type":"object"},{"type":"object","properties":{"a":{"$ref":"#"}}},{"const":1}]}"##
        )
        let open = String(repeating: #"{"a":"#, count: 1000)
        let close = String(repeating: "}", count: 1000)
        #expect(try fits(wide, open + "1" + close))
        #expect(try !fits(wide, open + "2" + close))

        let steps = (0..<1000).map {
            ##""s\##($0)":{"allOf":[{"$ref":"#/$defs/s\##($0 + 1)"},{"$ref":"#/$defs/s\##($0 + 1)"}]}"##
        }
        let deep = try schema(
            ##"{"$ref":"#/$defs/s0","$defs":{\##(steps.joined(separator: ",")),"s1000":{"type":"null"}}}"##)
        #expect(try fits(deep, "null"))
        #expect(try !fits(deep, "1"))

        let nested = (0..<60).reduce(#"{"type":"object"}"#) { inner, _ in
            #"{"anyOf":[\#(inner),false],"unevaluatedProperties":{"type":"integer"}}"#
        }
        #expect(throws: JSONSchemaError.self) {
            try schema((0..<5).reduce(nested) { inner, _ in #"{"not":\#(inner)}"# })
        }
        let inner = try schema(
            (0..<29).reduce(#"{"properties":{"a":true}}"#) { inner, _ in
                #"{"anyOf":[\#(inner),false],"unevaluatedProperties":{"type":"integer"}}"#
            })
        #expect(try fits(inner, #"{"a":"x","b":1}"#))
        #expect(try !fits(inner, #"{"a":"x","b":"x"}"#))
    }

    @Test func requiredKeysDoNotMultiplyTheSchema() throws {
        let text = (0..<30).reduce(#"{"type":"integer"}"#) { inner, _ in
            #"{"required":["a","b","c"],"additionalProperties":\#(inner)}"#
        }
        #expect(try fits(schema(text), "1") && !fits(schema(text), #"{"a":1}"#))
    }

    /// A check that needs too many results is abandoned, whatever encloses it.
    @Test func aCheckThatTakesTooMuchWorkIsGivenUp() throws {
        let ways = repeatElement(##"{"items":{"$ref":"#/$defs/all"}}"##, count: 40).joined(separator: ",")
        let row = "[" + repeatElement("2", count: 100).joined(separator: ",") + "]"
        let json = try JSON(parsing: "[" + repeatElement(row, count: 600).joined(separator: ",") + "]")
        for top in [##"{"$ref":"#/$defs/all""##, ##"{"not":{"$ref":"#/$defs/all"}"##] {
            let schema = try schema(##"\##(top),"$defs":{"all":{"allOf":[\##(ways)]}}}"##)
            let error = try #require(throws: JSONMismatch.self) { try schema.check(json) }
            #expect(error.expected == "a document that takes less work to check")
        }
    }

    @Test(arguments: [1000, 20_000]) func aLongDocumentTakesLinearTime(_ count: Int) throws {
        let wide = try schema(
            ##"{"anyOf":[{"items":{"$ref":"#"},"minItems":1},{"items":{"$ref":"#"},"maxItems":0},{"const":1}]}"##)
        let growth = try growthOfEightfold(count) { count in
            let json = try JSON(parsing: "[" + repeatElement("[[1],[1,[]]]", count: count).joined(separator: ",") + "]")
            return { try wide.check(json) }
        }
        #expect(growth < mostGrowth)
    }
}
