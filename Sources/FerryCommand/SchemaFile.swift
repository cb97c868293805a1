internal import Ferry
internal import FoundationEssentials

/// A schema that a file holds, in the vocabulary of JSON Schema.
enum SchemaFile {
    /// What is wrong with it is said by file and line.
    static func schema(at path: String) throws(InputError) -> JSONSchema { try schema(of: JSONFile(at: path)) }

    /// Likewise of what the file holds.
    static func schema(of text: Data, path: String) throws(InputError) -> JSONSchema {
        try schema(of: JSONFile(path: path, text: text))
    }

    private static func schema(of file: JSONFile) throws(InputError) -> JSONSchema {
        try file.schema(try file.document())
    }
}
