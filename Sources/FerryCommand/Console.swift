internal import Dispatch
internal import Glibc
internal import Synchronization

/// Standard output for results, standard error for everything that is said about them.
enum Console {
    /// Results: never mixed with progress. After the first that could not be written none is.
    static func out(_ text: String) { out(text.utf8) }

    static func out(_ bytes: some Sequence<UInt8>) {
        if hasOutputEnded { return }
        begun.add(1, ordering: .relaxed)
        let code = Array(bytes).withUnsafeBytes { write($0, to: STDOUT_FILENO) }
        ended.add(1, ordering: .relaxed)
        if code != 0 { outputCode.store(code, ordering: .relaxed) }
    }

    /// Writes to standard output.
    private static let begun = Atomic<UInt64>(0)
    private static let ended = Atomic<UInt64>(0)

    /// From now on the process ends with `code` when a write to standard output takes longer than 0.2 seconds: whoever
    /// reads it may never read on, and a write that waits for them cannot be broken off. `message` is for stderr.
    static func endsIfStuck(
        _ code: ExitCode, saying message: String? = nil, unless end: InterruptionFlag? = nil, since seen: UInt64? = nil
    ) {
        if end?.isRaised ?? false { return }
        if let seen, ended.load(ordering: .relaxed) < seen {
            var room = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
            if let message, poll(&room, 1, 0) == 1 { error(message) }
            _exit(code.rawValue)
        }
        let now = begun.load(ordering: .relaxed)
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(200)) {
            endsIfStuck(code, saying: message, unless: end, since: now)
        }
    }

    /// The errno by which standard output ended; 0 as long as it has not.
    private static let outputCode = Atomic<Int32>(0)

    /// Whether nobody gets what is put out from here on, so that it need not be made.
    static var hasOutputEnded: Bool { outputCode.load(ordering: .relaxed) != 0 }

    /// Why results were lost, in the system's words; `nil` when none was. Whoever closed the other end wanted no more.
    static var outputFault: String? {
        let code = outputCode.load(ordering: .relaxed)
        return code == 0 || code == EPIPE ? nil : String(cString: strerror(code))
    }

    /// Has each of the three streams lead somewhere: what the caller has closed would be the number of the next file or
    /// socket, and get what is meant for it. Standard output then cannot be written, which is said where it is tried.
    static func openStreams() {
        for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) == -1 {
            // The lowest number that is free, which is this one.
            _ = open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Progress and messages; what cannot be written is left out.
    static func error(_ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { write($0, to: STDERR_FILENO) }
    }

    static var outIsTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Whether a line on stderr may be rewritten in place.
    static var isLive: Bool { isatty(STDERR_FILENO) == 1 && !hasDumbTerminal }

    /// The terminal behind stderr; a usual one where it does not say.
    static var size: (columns: Int, rows: Int) { size(of: STDERR_FILENO) }

    /// Columns of a terminal that does not say how many it has.
    static let usualColumns = 80

    /// Columns for text on standard output: those of its terminal, where that is wider than usual, otherwise the usual
    /// ones. A narrower terminal wraps lines by itself.
    static var outColumns: Int { max(size(of: STDOUT_FILENO).columns, usualColumns) }

    private static func size(of descriptor: Int32) -> (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (usualColumns, 24) }
        return (Int(size.ws_col), max(Int(size.ws_row), 2))
    }

    /// For lines on stderr that are live.
    static func boldError(_ text: String) -> String {
        isLive && !wantsNoColor ? "\u{1B}[1m\(text)\u{1B}[0m" : text
    }

    /// Colour is for terminals, and not for those who said no (no-color.org).
    static var usesColor: Bool { outIsTerminal && !hasDumbTerminal && !wantsNoColor }

    static func bold(_ text: String) -> String {
        usesColor ? "\u{1B}[1m\(text)\u{1B}[0m" : text
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

    /// Writes all of it; returns the errno by which that ended, or 0.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // Somebody has made it non-blocking.
                var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&room, 1, -1)
            } else if errno != EINTR {
                return errno
            }
        }
        return 0
    }
}
