import FerryTransport

/// A response whose head has come, and whose body comes as it is read. The head's members show through.
@dynamicMemberLookup
public struct StreamedResponse: Sendable {
    /// Status, headers and what was measured so far; its own body is empty.
    public let head: Response

    /// The body, decoded, piece by piece.
    public let body: ResponseBody

    init(head: Response, body: ResponseBody) {
        self.head = head
        self.body = body
    }

    /// The length that the server has announced, before decoding; `nil` when it has not.
    public var contentLength: Int64? { head.result.contentLength }

    /// A member of the head.
    public subscript<Member>(dynamicMember member: KeyPath<Response, Member>) -> Member { head[keyPath: member] }
}
