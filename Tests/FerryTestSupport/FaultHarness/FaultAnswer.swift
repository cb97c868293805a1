import FoundationEssentials

@testable import Ferry

/// The response of a run, however its body was received.
@dynamicMemberLookup
struct FaultAnswer: Sendable {
    let head: Response
    /// The body: collected, read, or found in the file.
    let body: [UInt8]

    /// The number of body bytes, named as in a response.
    var bytes: [UInt8] { body }
    var bodyLength: Int { body.count }
    var text: String { String(decoding: body, as: UTF8.self) }

    /// A member of the head.
    subscript<Member>(dynamicMember member: KeyPath<Response, Member>) -> Member { head[keyPath: member] }
}
