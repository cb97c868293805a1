internal import Glibc

/// Standard output for results, standard error for everything that is said about them.
enum Console {
    /// Results: never coloured, never mixed with progress.
    static func out(_ text: String) {
        write(Array(text.utf8), to: STDOUT_FILENO)
    }

    static func out(_ bytes: some Sequence<UInt8>) {
        write(Array(bytes), to: STDOUT_FILENO)
    }

    /// Progress and messages.
    static func error(_ text: String) {
        write(Array(text.utf8), to: STDERR_FILENO)
    }

    static var outIsTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Whether a line on stderr may be rewritten in place.
    static var isLive: Bool { isatty(STDERR_FILENO) == 1 && !hasDumbTerminal }

    /// The terminal behind stderr; a usual one where it does not say.
    static var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (80, 24) }
        return (Int(size.ws_col), max(Int(size.ws_row), 2))
    }

    /// For lines on stderr that are live.
    static func boldError(_ text: String) -> String {
        isLive && !wantsNoColor ? "\u{1B}[1m\(text)\u{1B}[0m" : text
    }

    /// Colour is for terminals, and not for those who said no (no-color.org).
    static func bold(_ text: String) -> String {
        outIsTerminal && !hasDumbTerminal && !wantsNoColor ? "\u{1B}[1m\(text)\u{1B}[0m" : text
    }

    /// Rewrites the live line.
    static func live(_ text: String) {
        error("\r\u{1B}[2K\(text)")
    }

    /// Takes the live line away.
    static func endLive() {
        error("\r\u{1B}[2K")
    }

    private static var wantsNoColor: Bool {
        getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
    }

    private static var hasDumbTerminal: Bool {
        getenv("TERM").map { String(cString: $0) == "dumb" } ?? true
    }

    /// Writes all of it. Whoever closed the other end wanted no more, so a failure ends the writing without a word.
    private static func write(_ bytes: [UInt8], to descriptor: Int32) {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count > 0 {
                    rest = rest.dropFirst(count)
                } else if errno != EINTR && errno != EAGAIN {
                    return
                }
            }
        }
    }
}
