internal import CFerryJSON

/// A compiled regular expression.
///
/// Sendable because the C library locks an expression while it searches.
final class SchemaPattern: @unchecked Sendable {
    let text: String
    let handle: OpaquePointer

    init(_ text: String) throws(SchemaPatternError) {
        var translator = PatternTranslator(text)
        let expression = try translator.translate()
        var message = [CChar](repeating: 0, count: 128)
        let onePass = translator.needsOnePass ? Self.onePass(expression) : nil
        guard let handle = ferry_json_pattern_create(expression, onePass, &message, message.count) else {
            let bytes = message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw SchemaPatternError(message: String(decoding: bytes, as: UTF8.self))
        }
        self.text = text
        self.handle = handle
    }

    /// The same, found from the text's beginning: any characters, line breaks and NUL among them, may come before.
    private static func onePass(_ expression: String) -> String { "^([^a]|a)*(\(expression))" }

    /// A pattern that the program itself contains.
    convenience init(trusted text: String) {
        do {
            try self.init(text)
        } catch {
            preconditionFailure("the pattern \(text) cannot be used: \(error.message)")
        }
    }

    deinit { ferry_json_pattern_free(handle) }
}

/// A pattern that cannot be used, and why.
struct SchemaPatternError: Error {
    let message: String
}
