extension JSONSchema {
    /// A schema in the vocabulary of JSON Schema: 2020-12, or draft-07 where `$schema` says so.
    ///
    /// All keywords of both are understood but `$dynamicRef` and `$vocabulary`; `$ref` may lead to any schema of the
    /// document, and to no other document. Annotations are ignored, `format` among them: with `assertingFormats` a
    /// string must have it, and a format that is not one of `Format` is an error. Any other keyword is an error too: a
    /// check that is silently left out is worse.
    ///
    /// The document may be nested 64 schemas deep. A reference that leads back to itself for the same value is an
    /// error.
    public init(document: JSON, assertingFormats: Bool = false) throws(JSONSchemaError) {
        self = try SchemaReader.schema(document, assertingFormats: assertingFormats)
    }
}
