/// How a file is downloaded; complete by default.
public struct DownloadOptions: Sendable, Hashable {
    /// Whether what an earlier run has left is gone on with. The default is `true`; with `false` it begins anew.
    public var resumes = true

    /// Bytes that the file must have; another length fails the run with `contentMismatch(.length)`, as soon as the
    /// server tells it. The default is `nil`, any.
    public var expectedLength: Int64?

    /// The SHA-256 that the file must have, as 64 hexadecimal digits in either case; another one fails the run with
    /// `contentMismatch(.sha256)`, and what was loaded is thrown away. All of the file is read for it at the end. The
    /// default is `nil`, any.
    public var sha256: String?

    /// How many parts of the file are loaded at once, each over a connection of its own. The first ``leastSegment``
    /// bytes are asked for by themselves; a server that answers with them, and with a strong validator, is asked for
    /// the rest in so many parts, or fewer. The default is 1.
    public var segments = 1

    /// Bytes of the first segment, and those that the others have at least, if there is more than one of them. The
    /// default is 1 MiB.
    public var leastSegment: Int64 = 1 << 20

    /// Bytes a second, on average, of all segments together. The default is `nil`, as fast as can be.
    public var bytesPerSecond: Int?

    /// The defaults, and what is named here.
    public init(
        resumes: Bool = true, expectedLength: Int64? = nil, sha256: String? = nil, segments: Int = 1,
        bytesPerSecond: Int? = nil
    ) {
        self.resumes = resumes
        self.expectedLength = expectedLength
        self.sha256 = sha256
        self.segments = segments
        self.bytesPerSecond = bytesPerSecond
    }
}
