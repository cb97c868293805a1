internal import Glibc

/// A file that the command line wants written. It is opened late, so that what was there stays when nothing comes.
final class OutputFile {
    private let path: String
    private var descriptor: Int32 = -1
    /// Why it could not be written; nothing is written after that.
    private(set) var fault: InputError?

    init(path: String) { self.path = path }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Opens it, empty.
    func open() {
        if descriptor >= 0 || fault != nil { return }
        descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        if descriptor < 0 { fault = Self.unwritable(path, errno) }
    }

    func write(_ bytes: UnsafeRawBufferPointer) {
        open()
        if fault != nil { return }
        let code = Console.write(bytes, to: descriptor)
        if code != 0 { fault = Self.unwritable(path, code) }
    }

    /// Writes all of a text.
    static func write(_ text: String, to path: String) throws(InputError) {
        let file = OutputFile(path: path)
        file.open()
        Array(text.utf8).withUnsafeBytes(file.write)
        if let fault = file.fault { throw fault }
    }

    /// Throws where it is known before anything is sent that the file cannot be written.
    static func check(_ path: String) throws(InputError) {
        var status = stat()
        if stat(path, &status) == 0 {
            if status.st_mode & S_IFMT == S_IFDIR { throw unwritable(path, EISDIR) }
            if access(path, W_OK) != 0 { throw unwritable(path, errno) }
            return
        }
        if path.isEmpty { throw unwritable(path, ENOENT) }
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? "."
        if access(String(folder), W_OK | X_OK) != 0 { throw unwritable(path, errno) }
    }

    private static func unwritable(_ path: String, _ code: Int32) -> InputError {
        InputError("cannot write \(path): \(String(cString: strerror(code)))")
    }
}
