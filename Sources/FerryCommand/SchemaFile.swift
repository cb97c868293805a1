internal import Ferry
internal import FerryJSON
internal import FoundationEssentials

/// A schema that a file holds, in the vocabulary of JSON Schema.
enum SchemaFile {
    /// What is wrong with it is said as compilers do, by file and line.
    static func schema(at path: String) throws(InputError) -> JSONSchema {
        let text: Data
        do {
            text = try Data(contentsOf: URL(filePath: path))
        } catch {
            throw InputError("\(path): cannot be read")
        }
        return try schema(of: text, path: path)
    }

    /// Likewise of what the file holds.
    static func schema(of text: Data, path: String) throws(InputError) -> JSONSchema {
        let document: JSON
        do {
            document = try JSON(parsing: text)
        } catch {
            throw InputError("\(path):\(line(of: error.offset, in: text)): not JSON: \(error.reason)")
        }
        do {
            return try JSONSchema(document: document)
        } catch {
            let place = document.value(atPointer: error.pointer)
            let found = place?[error.keyword] ?? place
            let offset = text.withUnsafeBytes { found?.offset(in: $0) } ?? 0
            let pointer = error.pointer.isEmpty ? "" : " at \(error.pointer)"
            throw InputError("\(path):\(line(of: offset, in: text)): \(error.keyword) \(error.message)\(pointer)")
        }
    }

    /// Counted from 1.
    private static func line(of offset: Int, in text: Data) -> Int {
        1 + text.prefix(offset).count { $0 == UInt8(ascii: "\n") }
    }
}
