internal import CFerryJSON

/// A JSON value (RFC 8259): a view of one value in a parsed document, or in one that was built.
///
/// Nothing is copied or converted until it is asked for. All values of a document share its memory and may be used from
/// any thread. Where a key stands twice in an object, the last one counts.
///
///     let user = try JSON(parsing: body)
///     let name = user["name"]?.string  // String?
///     let level = try user.value("level", as: Int.self)  // or "$.level: expected integer, found string"
///     let sent: JSON = ["id": 7, "tags": ["a", "b"], "owner": .null, "profile": user["profile"] ?? .null]
public struct JSON: Sendable {
    package let document: JSONDocument
    /// Where the value begins on the tape.
    let index: Int

    init(document: JSONDocument, index: Int) {
        self.document = document
        self.index = index
    }

    /// The whole of a document.
    package init(_ document: JSONDocument) {
        self.init(document: document, index: 1)
    }

    /// The kinds of values that JSON knows.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// `null`
        case null
        /// `true` or `false`
        case bool
        /// An integer or a number with a fraction or an exponent.
        case number
        /// A text.
        case string
        /// Values in their order.
        case array
        /// Values by their keys.
        case object
    }

    /// What kind of value stands here.
    public var kind: Kind {
        switch ferry_json_tag(document.tape, index) {
        case JSONTag.string: .string
        case JSONTag.signed, JSONTag.unsigned, JSONTag.double: .number
        case JSONTag.yes, JSONTag.no: .bool
        case JSONTag.array: .array
        case JSONTag.object: .object
        default: .null
        }
    }

    /// The value alone, without the document that it came from.
    public func detached() -> JSON {
        var tape = TapeBuilder()
        tape.append(self)
        return JSON(document: tape.finish(), index: 1)
    }
}
