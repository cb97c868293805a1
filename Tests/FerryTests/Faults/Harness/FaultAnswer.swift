import FoundationEssentials

@testable import Ferry

/// What a run was answered, whatever became of the body.
@dynamicMemberLookup
struct FaultAnswer: Sendable {
    let head: Response
    /// The body: collected, read, or found in the file.
    let body: [UInt8]

    /// The same, by the name it has in a response.
    var bytes: [UInt8] { body }
    var bodyLength: Int { body.count }
    var text: String { String(decoding: body, as: UTF8.self) }

    /// A member of the head.
    subscript<Member>(dynamicMember member: KeyPath<Response, Member>) -> Member { head[keyPath: member] }
}
