/// What a run brings: the value, and the response it was made from, whose members show through.
@dynamicMemberLookup
public struct Reply<Value: Sendable>: Sendable {
    /// What ``Request/value(from:)`` made.
    public let value: Value

    /// What the server answered.
    public let response: Response

    /// A reply of its parts.
    public init(value: Value, response: Response) {
        self.value = value
        self.response = response
    }

    /// A member of the response.
    public subscript<Member>(dynamicMember member: KeyPath<Response, Member>) -> Member { response[keyPath: member] }
}
