import Cxattr
import FerryJSON
import Glibc

/// The metadata of a partial file, with which another run, of this process or another, can resume.
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
    /// Identifies the URL of the partial file.
    var urlDigest: String
    var validator: ResumeValidator?
    /// The size of the whole file; `nil` if the server did not say.
    var total: Int64?
    /// The future name in a directory target.
    var name: String?
    /// `nil` for a partial file that is written from start to end: then its length is the progress.
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

    /// Whether it belongs to a partial file of this URL.
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

    /// The number of bytes that are there, for a partial file of this length.
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

/// A file that an earlier download has completed, and the validator that the server sent for it.
///
/// The validator is in an extended attribute of the file (xattr(7)), together with the file's length and modification
/// time, so that a file that was modified since is not taken for the server's.
struct CompletedFile: Sendable, Equatable {
    /// The name in its directory.
    var name: String
    var length: Int64
    var validator: ResumeValidator

    /// The last of `name`, `name-1` and so on that a download of this URL has completed and that `isWanted`. Only
    /// `name` itself is checked unless it `isNumbered`. May wait for the disk.
    static func find(
        _ name: String, in directory: OpenDirectory, url: String, isNumbered: Bool,
        where isWanted: (CompletedFile, _ descriptor: Int32) -> Bool
    ) -> CompletedFile? {
        let digest = CompletionMark.digest(of: url)
        var last: CompletedFile?
        for number in 0...(isNumbered ? mostOfAName : 0) {
            let name = number == 0 ? name : SafeFileName.numbered(name, number)
            let file = openat(directory.descriptor, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
            if file < 0 {
                if errno == ENOENT { break }
                continue
            }
            defer { close(file) }
            guard let mark = CompletionMark(of: file), mark.urlDigest == digest else { continue }
            let found = CompletedFile(name: name, length: mark.length, validator: mark.validator)
            if isWanted(found, file) { last = found }
        }
        return last
    }

    /// Marks an open file as complete. Has no effect if the file system does not support such attributes or has no room
    /// for this one.
    static func mark(_ descriptor: Int32, url: String, _ validator: ResumeValidator) {
        guard let bytes = CompletionMark(of: descriptor, url: url, validator)?.bytes else { return }
        _ = fsetxattr(descriptor, CompletionMark.attribute, bytes, bytes.count, 0)
    }

    /// The maximum number of older versions of a file to look at.
    private static let mostOfAName = 100
}

/// The content of the attribute.
private struct CompletionMark {
    static let attribute = "user.ferry.download"
    private static let version = 1
    /// The maximum size in bytes; ext4 has room for about 4,000 bytes for all attributes of a file.
    private static let most = 3_000

    let urlDigest: String
    let validator: ResumeValidator
    let length: Int64
    /// Seconds and nanoseconds.
    private let modified: [Int]

    /// The mark of a download that ends now; `nil` if the file cannot be examined.
    init?(of descriptor: Int32, url: String, _ validator: ResumeValidator) {
        var status = stat()
        if fstat(descriptor, &status) != 0 { return nil }
        urlDigest = Self.digest(of: url)
        self.validator = validator
        length = Int64(status.st_size)
        modified = Self.modified(status)
    }

    /// The mark of an earlier download; `nil` if there is none, or if the file was modified since.
    init?(of descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        var space = [UInt8](repeating: 0, count: Self.most)
        let count = fgetxattr(descriptor, Self.attribute, &space, space.count)
        guard count > 0, let json = try? JSON(parsing: Array(space.prefix(count))), let mark = try? Self(json: json),
            mark.validator.isSound, mark.length == Int64(status.st_size), mark.modified == Self.modified(status)
        else { return nil }
        self = mark
    }

    /// `nil` if it exceeds the maximum size.
    var bytes: [UInt8]? {
        let json = JSON(members: [
            ("version", JSON(Self.version)), ("urlDigest", JSON(urlDigest)), ("validator", validator.json),
            ("length", JSON(length)), ("modified", JSON(modified.map { JSON($0) })),
        ])
        let bytes = json.bytes(pretty: false)
        return bytes.count > Self.most ? nil : bytes
    }

    static func digest(of url: String) -> String { SHA256.hexadecimal(of: Array(url.utf8)) }

    private static func modified(_ status: stat) -> [Int] { [status.st_mtim.tv_sec, status.st_mtim.tv_nsec] }
}

extension CompletionMark: JSONConvertible {
    init(json: JSON) throws {
        guard try json.value("version", as: Int.self) == Self.version else {
            throw json.mismatch(expected: "version 1")
        }
        urlDigest = try json.value("urlDigest")
        validator = try json.value("validator")
        length = try json.value("length")
        modified = try json.value("modified")
    }
}
