internal import Glibc

/// A file that the command line names. `-` is standard input; pipes such as `/dev/stdin` and `<(command)` can be read.
enum InputFile {
    /// All of it, in memory.
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

    /// Whether it has a length and can be read from its beginning again; pipes and terminals have none.
    static func isRegular(_ path: String) -> Bool {
        var status = stat()
        return path != "-" && stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// The path of a file that can be read.
    static func readable(_ path: String) throws(InputError) -> String {
        if access(path, R_OK) != 0 { throw unreadable(path, errno) }
        return path
    }

    private static func unreadable(_ path: String, _ code: Int32) -> InputError {
        InputError("cannot read \(path): \(String(cString: strerror(code)))")
    }
}
