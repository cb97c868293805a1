import Glibc

/// A file, or a range of its bytes.
struct FileBody: PulledBody {
    let path: String
    var range: Range<UInt64>?
    /// Tests have all of it read from the disk.
    var looksInMemory = true

    /// Opens the file: one that is not there, cannot be read, is no regular file or is too short is found out here.
    func makeSource() throws(BodyFault) -> any BodySource {
        // As a C string it would end there, and be the path of another file.
        if path.utf8.contains(0) { throw fault(EINVAL) }
        // Not blocking, or a FIFO nobody writes to would hold the caller; with a regular file it means nothing.
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if descriptor < 0 { throw fault(errno) }
        do throws(BodyFault) {
            let bounds = try bounds(of: descriptor)
            return FileSource(descriptor, bounds, path: path, looksInMemory: looksInMemory)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    private func bounds(of descriptor: Int32) throws(BodyFault) -> Range<UInt64> {
        var status = stat()
        if fstat(descriptor, &status) != 0 { throw fault(errno) }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: throw fault(EISDIR)
        default: throw BodyFault(message: "\(path) is not a regular file")
        }
        let size = UInt64(clamping: status.st_size)
        let range = range ?? 0..<size
        if range.upperBound > size {
            throw BodyFault(message: "\(path) has \(size) bytes, and \(range.upperBound) were to be sent")
        }
        return range
    }

    private func fault(_ code: Int32) -> BodyFault { BodyFault(file: path, errno: code) }
}

extension BodyFault {
    /// What the system says of a file.
    init(file path: String, errno code: Int32) {
        self.init(message: "\(path): \(String(cString: strerror(code)))", errno: code)
    }
}
