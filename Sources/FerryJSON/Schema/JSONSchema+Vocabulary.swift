extension JSONSchema {
    /// A schema in the vocabulary of JSON Schema (2020-12 and draft-07).
    ///
    /// Understood are `type`, `enum`, `const`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`,
    /// `minLength`, `maxLength`, `pattern`, `items` (one schema), `minItems`, `maxItems`, `properties`, `required`,
    /// `additionalProperties`, `anyOf`, `oneOf`, the schemas `true` and `false`, and the annotations, which are
    /// ignored. Anything else is an error, `format` and `$ref` among it: a check that is silently left out is worse.
    public init(document: JSON) throws(JSONSchemaError) {
        self = try SchemaReader(document, pointer: "", depth: 0).schema()
    }
}
