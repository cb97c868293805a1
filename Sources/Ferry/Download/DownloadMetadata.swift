import FerryJSON

/// The metadata of a part file, with which another run, of this process or another, can resume.
struct DownloadMetadata: Sendable, Equatable {
    /// A piece of a file that is loaded in several pieces at once.
    struct Segment: Sendable, Equatable {
        var start: Int64
        /// The first byte after the segment.
        var end: Int64
        /// The number of bytes from its start that are certainly there.
        var written: Int64 = 0

        var isComplete: Bool { start + written >= end }
    }

    /// For people who look at the file: without query values, which may be secret.
    var url: String
    /// Identifies the URL of the part file.
    var urlDigest: String
    var validator: ResumeValidator?
    /// The size of the whole file; `nil` if the server did not say.
    var total: Int64?
    /// The future name in a directory target.
    var name: String?
    /// `nil` for a part file that is written from start to end: then its length is the progress.
    var segments: [Segment]?

    init(url: String) {
        self.url = Redaction.url(url)
        urlDigest = SHA256.hexadecimal(of: Array(url.utf8))
    }

    /// From the bytes of a metadata file; `nil` if they have another version or are not metadata.
    init?(_ bytes: [UInt8]) {
        guard let json = try? JSON(parsing: bytes), let found = try? Self(json: json), found.isSound else { return nil }
        self = found
    }

    /// Whether it belongs to a part file of this URL.
    func isOf(url: String) -> Bool { urlDigest == SHA256.hexadecimal(of: Array(url.utf8)) }

    /// Metadata of the same URL without anything else.
    var anew: DownloadMetadata {
        var metadata = self
        (metadata.validator, metadata.total, metadata.name, metadata.segments) = (nil, nil, nil, nil)
        return metadata
    }

    var bytes: [UInt8] {
        var members: [(String, JSON)] = [
            ("version", JSON(Self.version)), ("url", JSON(url)), ("urlDigest", JSON(urlDigest)),
        ]
        if let validator { members.append(("validator", validator.json)) }
        if let total { members.append(("total", JSON(total))) }
        if let name { members.append(("name", JSON(name))) }
        if let segments { members.append(("segments", JSON(segments.map(\.json)))) }
        return JSON(members: members).bytes(pretty: true)
    }

    /// Whether the segments are contiguous, from the first byte to the last.
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

    /// The number of bytes that are there, for a part file of this length.
    func received(_ length: Int64) -> Int64 { segments.map { $0.reduce(0) { $0 + $1.written } } ?? length }
}

extension DownloadMetadata: JSONConvertible {
    /// The version of the format.
    private static let version = 1

    init(json: JSON) throws {
        guard try json.value("version", as: Int.self) == Self.version else {
            throw json.mismatch(expected: "version 1")
        }
        url = try json.value("url")
        urlDigest = try json.value("urlDigest")
        validator = try json.value("validator")
        total = try json.value("total")
        name = try json.value("name")
        segments = try json.value("segments")
    }
}

extension DownloadMetadata.Segment: JSONConvertible {
    init(json: JSON) throws {
        start = try json.value("start")
        end = try json.value("end")
        written = try json.value("written")
    }

    fileprivate var json: JSON { ["start": JSON(start), "end": JSON(end), "written": JSON(written)] }
}

extension ResumeValidator: JSONConvertible {
    init(json: JSON) throws {
        if let tag = json["entityTag"] {
            self = .entityTag(try tag.value("_0"))
        } else {
            self = .lastModified(try json.value("lastModified", as: JSON.self).value("_0"))
        }
    }

    var json: JSON {
        switch self {
        case .entityTag(let tag): ["entityTag": ["_0": JSON(tag)]]
        case .lastModified(let date): ["lastModified": ["_0": JSON(date)]]
        }
    }
}
