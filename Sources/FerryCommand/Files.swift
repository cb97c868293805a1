internal import Ferry
internal import FerryJSON
internal import FoundationEssentials
internal import Glibc

/// A file that the command line names. `-` is standard input; pipes like `/dev/stdin` and `<(command)` can be read.
enum InputFile {
    /// The whole content, in memory.
    static func bytes(at path: String) throws(InputError) -> [UInt8] {
        if path == "-" { return try StandardInput.all() }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path, errno) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var space = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = read(descriptor, &space, space.count)
            if count == 0 { return bytes }
            if count > 0 { bytes += space[..<count] } else if errno != EINTR { throw unreadable(path, errno) }
        }
    }

    /// Whether it can be sent while it is read, because its length is known and it can be read again from its
    /// beginning; pipes and terminals cannot. Below `/proc` and `/sys` the length of a file says nothing: it is 0, or
    /// more than there is to read.
    static func isStreamable(_ path: String) -> Bool {
        guard isFile(path, withContent: true), let real = realpath(path, nil) else { return false }
        defer { free(real) }
        return !["/proc/", "/sys/"].contains { String(cString: real).hasPrefix($0) }
    }

    /// The name to send with its content: that of a file, and `-` for a pipe or standard input.
    static func name(of path: String) -> String {
        // By bytes: a slash and a combining mark after it are one character.
        let last = path.utf8.split(separator: UInt8(ascii: "/")).last
        return isFile(path) ? last.map { String(decoding: $0, as: UTF8.self) } ?? path : "-"
    }

    private static func isFile(_ path: String, withContent: Bool = false) -> Bool {
        var status = stat()
        return path != "-" && stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
            && (!withContent || status.st_size > 0)
    }

    /// The path of a readable file.
    static func readable(_ path: String) throws(InputError) -> String {
        if access(path, R_OK) != 0 { throw unreadable(path, errno) }
        return path
    }

    /// The path of a file with the same content that can be opened again and again, as the files of TLS are. What comes
    /// from a pipe is kept in memory until the process ends, because it may be a private key.
    static func reopenable(_ path: String) throws(InputError) -> String {
        var status = stat()
        if path != "-", stat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG { return try readable(path) }
        let content = try bytes(at: path)
        let name = "/ferry-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        let memory = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0o600)
        guard memory >= 0 else {
            throw InputError("cannot keep \(path) in memory: \(String(cString: strerror(errno)))")
        }
        shm_unlink(name)
        guard content.withUnsafeBytes({ write(memory, $0.baseAddress, $0.count) }) == content.count else {
            throw InputError("cannot keep \(path) in memory: \(String(cString: strerror(errno)))")
        }
        return "/proc/self/fd/\(memory)"
    }

    private static func unreadable(_ path: String, _ code: Int32) -> InputError {
        InputError("cannot read \(path): \(String(cString: strerror(code)))")
    }
}

extension Multipart {
    /// Appends a file that the command line names. A file whose length is not known is read at once.
    mutating func append(
        _ name: String, inputFile path: String, filename: String?, contentType: String
    ) throws(InputError) {
        if InputFile.isStreamable(path) {
            append(name, file: try InputFile.readable(path), filename: filename, contentType: contentType)
        } else {
            let bytes = try InputFile.bytes(at: path)
            append(name, bytes, filename: filename ?? InputFile.name(of: path), contentType: contentType)
        }
    }
}

/// An output file of the command line. It is opened late, so that an existing file stays if there is no output.
final class OutputFile {
    private let path: String
    private var descriptor: Int32 = -1
    /// Not a regular file, so that its reader may make a write wait.
    private var mayBlock = false
    /// Why it could not be written; nothing is written after that.
    private(set) var fault: InputError?
    /// Whether its reader has closed its end, and wanted no more: that is no fault, as with standard output.
    private(set) var hasLostReader = false

    init(path: String) { self.path = path }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Opens and truncates it.
    func open() {
        if descriptor >= 0 || fault != nil { return }
        // A pipe may have no reader.
        descriptor = Console.counted { Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666) }
        if descriptor < 0 { fault = Self.unwritable(path, errno) }
        var status = stat()
        mayBlock = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
    }

    func write(_ bytes: UnsafeRawBufferPointer) {
        open()
        if fault != nil || hasLostReader { return }
        let code =
            mayBlock
            ? Console.counted { Console.write(bytes, to: descriptor) } : Console.write(bytes, to: descriptor)
        if code == EPIPE {
            hasLostReader = true
        } else if code != 0 {
            fault = Self.unwritable(path, code)
        }
    }

    /// Writes a whole text.
    static func write(_ text: String, to path: String) throws(InputError) {
        let file = OutputFile(path: path)
        file.open()
        Array(text.utf8).withUnsafeBytes(file.write)
        if file.hasLostReader { throw unwritable(path, EPIPE) }
        if let fault = file.fault { throw fault }
    }

    /// The path that an option names. Throws as ``check(_:)`` does, and for `-`, which names no file. `way` says what
    /// leads to standard output.
    static func checked(
        _ path: String, of option: String, instead way: String = "/dev/stdout is standard output"
    ) throws -> String {
        if path == "-" { throw UsageError("--\(option) needs a file, not -; \(way)") }
        try check(path)
        return path
    }

    /// Throws if it is known before anything is sent that the file cannot be written.
    static func check(_ path: String) throws(InputError) {
        var status = stat()
        if stat(path, &status) == 0 {
            if status.st_mode & S_IFMT == S_IFDIR { throw unwritable(path, EISDIR) }
            if access(path, W_OK) != 0 { throw unwritable(path, errno) }
            return
        }
        if path.isEmpty { throw unwritable(path, ENOENT) }
        if access(folder(of: path), W_OK | X_OK) != 0 { throw unwritable(path, errno) }
    }

    /// The target of a download for a path: a directory if it is one or ends in a slash, and otherwise a file, which
    /// will be replaced. A link stays: the file that it names is replaced or created. Throws if it is known before
    /// anything is sent that this is not possible.
    static func downloadTarget(_ path: String) throws -> DownloadTarget {
        if path == "-" { throw UsageError("--output needs a file, not -; ferry fetch -o - writes to standard output") }
        var status = stat()
        let isDirectory = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
        if isDirectory || path.hasSuffix("/") {
            if access(path, W_OK | X_OK) != 0 { throw unwritable(path, errno) }
            if !isDirectory { throw unwritable(path, ENOTDIR) }
            return .directory(path)
        }
        if path.isEmpty { throw unwritable(path, ENOENT) }
        return .file(try replaceable(path))
    }

    /// The file at the end of a chain of links, if it can be replaced.
    private static func replaceable(_ path: String) throws -> String {
        var place = path
        for _ in 0..<mostLinks {
            var status = stat()
            let isThere = lstat(place, &status) == 0
            let kind = isThere ? status.st_mode & S_IFMT : S_IFREG
            if isOfSystem(place) || ![S_IFREG, S_IFLNK, S_IFDIR].contains(kind) {
                throw UsageError("\(path) is not a regular file, and cannot be replaced; ferry fetch -o writes into it")
            }
            if access(folder(of: place), W_OK | X_OK) != 0 { throw unwritable(path, errno) }
            if kind == S_IFDIR { throw unwritable(path, EISDIR) }
            guard kind == S_IFLNK else { return place }
            guard let next = try? FileManager.default.destinationOfSymbolicLink(atPath: place) else {
                throw unwritable(path, errno)
            }
            place = next.hasPrefix("/") ? next : folder(of: place) + next
        }
        throw unwritable(path, ELOOP)
    }

    private static let mostLinks = 40

    /// Whether it is below `/dev` or `/proc`, where files stand for something else. `/dev/shm` has ordinary files.
    private static func isOfSystem(_ path: String) -> Bool {
        guard let real = realpath(folder(of: path), nil) else { return false }
        defer { free(real) }
        let folder = String(cString: real) + "/"
        return ["/dev/", "/proc/"].contains(where: folder.hasPrefix) && !folder.hasPrefix("/dev/shm/")
    }

    private static func folder(of path: String) -> String {
        path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(decoding: path.utf8[...$0], as: UTF8.self) } ?? "./"
    }

    private static func unwritable(_ path: String, _ code: Int32) -> InputError {
        InputError("cannot write \(path): \(String(cString: strerror(code)))")
    }
}

/// The text of a JSON file, to report errors by file and line, as compilers do.
struct JSONFile: Sendable {
    let path: String
    let text: Data

    init(path: String, text: Data) {
        self.path = path
        self.text = text
    }

    /// Reads the file.
    init(at path: String) throws(InputError) {
        self.init(path: path, text: Data(try InputFile.bytes(at: path)))
    }

    /// Parses the file.
    func document() throws(InputError) -> JSON {
        do {
            return try JSON(parsing: text)
        } catch {
            throw InputError("\(path):\(line(of: error.offset)): not JSON: \(error.reason)")
        }
    }

    /// An error at one of its values.
    func fault(_ place: JSON, _ message: String) -> InputError {
        let offset = text.withUnsafeBytes { place.offset(in: $0) } ?? 0
        return InputError("\(path):\(line(of: offset)): \(message)")
    }

    /// A schema at one of its values, in the vocabulary of JSON Schema.
    func schema(_ json: JSON, _ what: String = "") throws(InputError) -> JSONSchema {
        do {
            return try JSONSchema(document: json)
        } catch {
            let place = json.value(atPointer: error.pointer)
            let pointer = error.pointer.isEmpty ? "" : " at \(error.pointer)"
            throw fault(place?[error.keyword] ?? place ?? json, "\(what)\(error.keyword) \(error.message)\(pointer)")
        }
    }

    /// Counted from 1.
    private func line(of offset: Int) -> Int { 1 + text.prefix(offset).count { $0 == UInt8(ascii: "\n") } }
}

/// A report on one line, with fields in alphabetical order, without the line end. Characters that could control a
/// terminal are escaped, which does not change their meaning: they are only in strings.
func jsonLine(_ report: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(report) else { preconditionFailure("a report is always JSON") }
    let line = String(decoding: data, as: UTF8.self)
    if !line.unicodeScalars.contains(where: \.commandsTerminals) { return line }
    return line.unicodeScalars.reduce(into: "") { $0 += $1.commandsTerminals ? $1.escapedForJSON : String($1) }
}

extension Unicode.Scalar {
    /// An escape sequence of JSON (RFC 8259, 7).
    var escapedForJSON: String {
        UTF16.encode(self)!.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }
}

extension Recorder {
    /// What is said of exchanges that had no place in the recording; `nil` if all had one.
    var shortage: String? {
        let count = droppedExchanges
        if count == 0 { return nil }
        let limits = "\(maxEntries) exchanges and \(maxTotalBytes >> 20) MiB"
        return "\(count) \(count == 1 ? "exchange was" : "exchanges were") not recorded: --har has room for \(limits)"
    }
}
