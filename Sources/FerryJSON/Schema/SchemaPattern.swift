internal import CFerryJSON

/// A compiled regular expression.
///
/// Sendable because RE2 may search with one expression on many threads at once.
final class SchemaPattern: @unchecked Sendable {
    let text: String
    let handle: OpaquePointer

    init(_ text: String) throws(SchemaPatternError) {
        var message = [CChar](repeating: 0, count: 128)
        var copy = text
        let handle = copy.withUTF8 { bytes in
            ferry_json_pattern_create(bytes.baseAddress, bytes.count, &message, message.count)
        }
        guard let handle else {
            let bytes = message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw SchemaPatternError(message: String(decoding: bytes, as: UTF8.self))
        }
        self.text = text
        self.handle = handle
    }

    /// A pattern that the program itself contains.
    convenience init(trusted text: String) {
        do {
            try self.init(text)
        } catch {
            preconditionFailure("the pattern \(text) cannot be used: \(error.message)")
        }
    }

    /// The bytes that it takes at most.
    var memory: Int { ferry_json_pattern_memory(handle) }

    deinit { ferry_json_pattern_free(handle) }
}

/// A pattern that cannot be used, and why.
struct SchemaPatternError: Error {
    let message: String
}
