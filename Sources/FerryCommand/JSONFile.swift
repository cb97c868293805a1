internal import Ferry
internal import FerryJSON
internal import FoundationEssentials

/// The text of a file of JSON, to say where in it something is wrong: by file and line, as compilers do.
struct JSONFile: Sendable {
    let path: String
    let text: Data

    init(path: String, text: Data) {
        self.path = path
        self.text = text
    }

    /// Reads it.
    init(at path: String) throws(InputError) {
        self.init(path: path, text: Data(try InputFile.bytes(at: path)))
    }

    /// What it says.
    func document() throws(InputError) -> JSON {
        do {
            return try JSON(parsing: text)
        } catch {
            throw InputError("\(path):\(line(of: error.offset)): not JSON: \(error.reason)")
        }
    }

    /// Something is wrong with one of its values.
    func fault(_ place: JSON, _ message: String) -> InputError {
        let offset = text.withUnsafeBytes { place.offset(in: $0) } ?? 0
        return InputError("\(path):\(line(of: offset)): \(message)")
    }

    /// The schema that one of its values is, in the vocabulary of JSON Schema.
    func schema(_ json: JSON, _ what: String = "") throws(InputError) -> JSONSchema {
        do {
            return try JSONSchema(document: json)
        } catch {
            let place = json.value(atPointer: error.pointer)
            let pointer = error.pointer.isEmpty ? "" : " at \(error.pointer)"
            throw fault(place?[error.keyword] ?? place ?? json, "\(what)\(error.keyword) \(error.message)\(pointer)")
        }
    }

    /// Counted from 1.
    private func line(of offset: Int) -> Int { 1 + text.prefix(offset).count { $0 == UInt8(ascii: "\n") } }
}
