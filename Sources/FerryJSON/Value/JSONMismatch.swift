internal import CFerryJSON

/// A value is not what was asked for, or what a schema demands: where it stands, what was expected, what is there.
///
/// It names keys and kinds and never holds a value of the document.
public struct JSONMismatch: Error, Sendable, Hashable, CustomStringConvertible {
    /// The way there from the root: `$[3].question.id`.
    public let path: String
    /// `number`, `string or null`, `integer in 0...9`.
    public let expected: String
    /// `string`, `nothing` where a key is absent.
    public let found: String

    public init(path: String, expected: String, found: String) {
        self.path = path
        self.expected = expected
        self.found = found
    }

    init(at value: JSON, expected: String, found: String? = nil) {
        self.init(
            path: JSONPath(to: value.index, in: value.document.tape).description, expected: expected,
            found: found ?? value.kind.rawValue)
    }

    /// An absent member or element.
    init(absent step: JSONPath.Step, in value: JSON, expected: String) {
        var path = JSONPath(to: value.index, in: value.document.tape)
        path.append(step)
        self.init(path: path.description, expected: expected, found: "nothing")
    }

    public var description: String { "\(path): expected \(expected), found \(found)" }
}
