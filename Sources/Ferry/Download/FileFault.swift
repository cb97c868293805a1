import Glibc

/// What the system says of a file that is to be written or read.
struct FileFault: Error, Sendable {
    var path: String
    var errno: Int32
    /// Ferry's own words, where the system's would mislead.
    var words: String?

    init(_ path: String, errno: Int32 = Glibc.errno, words: String? = nil) {
        self.path = path
        self.errno = errno
        self.words = words
    }

    var message: String { "\(path): \(words ?? String(cString: strerror(errno)))" }
}

extension RequestError {
    /// A file of a download could not be opened, written or put in its place.
    init(_ fault: FileFault, url: String, phase: RequestPhase) {
        var facts = RequestError(preparing: .fileIO, message: fault.message, url: url).facts
        facts.phase = phase
        facts.errno = fault.errno
        self.init(facts)
    }
}
