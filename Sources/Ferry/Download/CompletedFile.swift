import Cxattr
import FerryJSON
import Glibc

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
