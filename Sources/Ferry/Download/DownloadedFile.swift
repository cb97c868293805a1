/// A file that was downloaded, whole and on the disk.
@dynamicMemberLookup
public struct DownloadedFile: Sendable {
    /// Where it is; of a directory target with the name that was chosen.
    public let path: String

    /// Its bytes.
    public let length: Int64

    /// How many of them were there from an earlier run; 0 when it began anew.
    public let resumedFrom: Int64

    /// The last answer: its head and what was measured. Its body is the file, and is empty here.
    public let response: Response

    /// A member of the response.
    public subscript<Member>(dynamicMember member: KeyPath<Response, Member>) -> Member { response[keyPath: member] }
}
