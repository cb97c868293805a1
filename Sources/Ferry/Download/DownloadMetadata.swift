import FoundationEssentials

/// What is known of a part, so that another run, of this process or another, can go on with it.
struct DownloadMetadata: Sendable, Equatable, Codable {
    /// A piece of a file that is loaded in several at once.
    struct Segment: Sendable, Equatable, Codable {
        var start: Int64
        /// The first byte that is not its own.
        var end: Int64
        /// Bytes from its start on that are certainly there.
        var written: Int64 = 0

        var isComplete: Bool { start + written >= end }
    }

    private(set) var version = 1
    /// For who looks at it: without the values of the query, which may be secret.
    var url: String
    /// By which it is told whether a part is of this URL.
    var urlDigest: String
    var validator: ResumeValidator?
    /// Of the whole file; `nil` when the server did not say.
    var total: Int64?
    /// What a directory target will be called.
    var name: String?
    /// `nil` of a part that is written from its start to its end: then its length says how far it is.
    var segments: [Segment]?

    init(url: String) {
        self.url = Redaction.url(url)
        urlDigest = SHA256.hexadecimal(of: Array(url.utf8))
    }

    /// From a file's bytes; `nil` when they are of another version, or no metadata at all.
    init?(_ bytes: [UInt8]) {
        guard let found = try? JSONDecoder().decode(Self.self, from: Data(bytes)), found.version == 1, found.isSound
        else { return nil }
        self = found
    }

    /// Whether it speaks of a part of this URL.
    func isOf(url: String) -> Bool { urlDigest == SHA256.hexadecimal(of: Array(url.utf8)) }

    /// Of the same URL, and nothing else is known.
    var anew: DownloadMetadata {
        var metadata = self
        (metadata.validator, metadata.total, metadata.name, metadata.segments) = (nil, nil, nil, nil)
        return metadata
    }

    var bytes: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
        guard let data = try? encoder.encode(self) else { preconditionFailure("metadata is always JSON") }
        return Array(data)
    }

    /// Segments follow one another from the first byte to the last.
    private var isSound: Bool {
        if let name, SafeFileName.safe(name) != name { return false }
        if let validator, !validator.isSound { return false }
        guard let segments else { return (total ?? 0) >= 0 }
        var end: Int64 = 0
        for segment in segments {
            guard segment.start == end, segment.end > segment.start, segment.written >= 0,
                segment.written <= segment.end - segment.start
            else { return false }
            end = segment.end
        }
        return end == total
    }

    /// Bytes that are there, of a part of this length.
    func received(_ length: Int64) -> Int64 { segments.map { $0.reduce(0) { $0 + $1.written } } ?? length }
}
