/// What the body of an answer is taken for.
public enum ResponseFormat: Sendable, Hashable {
    /// Bytes: nothing is looked at.
    case data
    /// JSON, where the value is made of it; a value of bytes or text takes any body.
    case json
    /// XML, which must be well-formed.
    case xml
}
