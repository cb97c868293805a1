internal import Dispatch
internal import FerrySynchronization
internal import Glibc

/// Standard output for results, standard error for messages and progress.
enum Console {
    /// Prints results, never mixed with progress. After the first failed write, nothing more is written.
    static func out(_ text: String) { out(text.utf8) }

    static func out(_ bytes: some Sequence<UInt8>) { put(Array(bytes)) }

    /// Ends the line on standard output, unless a message has ended it.
    static func endLine() { put([UInt8(ascii: "\n")], unlessLineIsEnded: true) }

    private static func put(_ bytes: [UInt8], unlessLineIsEnded: Bool = false) {
        if hasOutputEnded { return }
        begun.add(1, ordering: .relaxed)
        let code = bytes.withUnsafeBytes { bytes in
            guard sharesTerminal else { return write(bytes, to: STDOUT_FILENO) }
            return line.withLock { line in
                if unlessLineIsEnded && line == .ended { return 0 }
                if let last = bytes.last { line = last == UInt8(ascii: "\n") ? .complete : .open }
                return write(bytes, to: STDOUT_FILENO)
            }
        }
        ended.add(1, ordering: .relaxed)
        if code != 0 { outputCode.store(code, ordering: .relaxed) }
    }

    /// Writes messages to standard error, on a line of their own if standard output is the same terminal.
    static func betweenLines(_ message: () -> Void) {
        guard sharesTerminal else { return message() }
        line.withLock { line in
            if line == .open {
                error("\n")
                line = .ended
            }
            message()
        }
    }

    /// The last line of standard output.
    private enum Line {
        case complete
        case open
        /// A message has ended it.
        case ended
    }

    /// Kept only if both streams are the same terminal.
    private static let line = Mutex(Line.complete)

    private static let sharesTerminal: Bool = {
        var (out, error) = (stat(), stat())
        guard isatty(STDOUT_FILENO) == 1, isatty(STDERR_FILENO) == 1 else { return false }
        return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &error) == 0 && out.st_rdev == error.st_rdev
    }()

    /// Does something with an output file that may block, like standard output.
    static func counted<Result>(_ work: () -> Result) -> Result {
        begun.add(1, ordering: .relaxed)
        defer { ended.add(1, ordering: .relaxed) }
        return work()
    }

    /// The numbers of writes that have begun and ended, to standard output or to a file.
    private static let begun = Atomic<UInt64>(0)
    private static let ended = Atomic<UInt64>(0)

    /// From now on the process ends with `code` if a write takes longer than 0.2 seconds: the reader
    /// may never continue, and a blocked write cannot be interrupted. `message` goes to stderr.
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

    /// The errno of the failed write to standard output; 0 without one.
    private static let outputCode = Atomic<Int32>(0)

    /// Whether nobody receives further output, so that it need not be created.
    static var hasOutputEnded: Bool { outputCode.load(ordering: .relaxed) != 0 }

    /// Why results were lost, in the system's words; `nil` if none were. A reader that closed its end wanted no more.
    static var outputFault: String? {
        let code = outputCode.load(ordering: .relaxed)
        return code == 0 || code == EPIPE ? nil : String(cString: strerror(code))
    }

    /// Makes sure that each of the three streams is open. Otherwise the next file or socket would get the number of a
    /// closed stream, and receive its output. Standard output then cannot be written, which is reported when it is
    /// tried.
    static func openStreams() {
        for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) == -1 {
            // The lowest free number, which is this one.
            _ = open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Prints progress and messages. If they cannot be written they are dropped.
    static func error(_ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { write($0, to: STDERR_FILENO) }
    }

    static var outIsTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Whether a line on stderr can be rewritten in place.
    static var isLive: Bool { isatty(STDERR_FILENO) == 1 && !hasDumbTerminal }

    /// The size of the terminal on stderr, or the usual size if it is unknown.
    static var size: (columns: Int, rows: Int) { size(of: STDERR_FILENO) }

    /// The number of columns if the terminal does not report it.
    static let usualColumns = 80

    /// The number of columns for text on standard output: that of its terminal, but at least the usual number. A
    /// narrower terminal wraps lines itself.
    static var outColumns: Int { max(size(of: STDOUT_FILENO).columns, usualColumns) }

    /// Columns for tables on standard output: those of its terminal, however few they are; without one the usual ones.
    static var tableColumns: Int { max(size(of: STDOUT_FILENO).columns, 40) }

    private static func size(of descriptor: Int32) -> (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (usualColumns, 24) }
        return (Int(size.ws_col), max(Int(size.ws_row), 2))
    }

    /// Bold text for live lines on stderr.
    static func boldError(_ text: String) -> String {
        isLive && !wantsNoColor ? "\u{1B}[1m\(text)\u{1B}[0m" : text
    }

    /// Colours are for terminals, unless the user has turned them off (no-color.org).
    static var usesColor: Bool { outIsTerminal && !hasDumbTerminal && !wantsNoColor }

    static func bold(_ text: String) -> String {
        usesColor ? "\u{1B}[1m\(text)\u{1B}[0m" : text
    }

    /// Rewrites the live line.
    static func live(_ text: String) {
        error("\r\u{1B}[2K\(text)")
    }

    /// Removes the live line.
    static func endLive() {
        error("\r\u{1B}[2K")
    }

    private static var wantsNoColor: Bool {
        getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
    }

    private static var hasDumbTerminal: Bool {
        getenv("TERM").map { String(cString: $0) == "dumb" } ?? true
    }

    /// Writes all bytes; returns the errno of a failure, or 0.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // The descriptor is non-blocking.
                var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&room, 1, -1)
            } else if errno != EINTR {
                return errno
            }
        }
        return 0
    }
}

/// The width of text on a terminal, where some characters take two columns or none.
enum TerminalText {
    static func width(_ text: String) -> Int { text.unicodeScalars.reduce(0) { $0 + width($1) } }

    /// The text, or its beginning with an ellipsis.
    static func cut(_ text: String, to columns: Int) -> String {
        if width(text) <= columns { return text }
        if columns < 1 { return "" }
        var kept = ""
        var used = 1
        for character in text {
            used += width(String(character))
            if used > columns { break }
            kept.append(character)
        }
        return kept + "…"
    }

    /// The words of a text in lines of at most `columns`. A longer word gets a line of its own.
    /// Several blanks in a row become one, unless they are kept.
    static func filled(_ text: String, to columns: Int, keepingBlanks: Bool = false) -> [String] {
        var lines: [String] = []
        let words = text.split(omittingEmptySubsequences: !keepingBlanks) { " \n".contains($0) }
        for word in words.map(String.init) {
            if let line = lines.last, width(line) + 1 + width(word) <= columns {
                lines[lines.count - 1] = line + " " + word
            } else {
                lines.append(word)
            }
        }
        return lines
    }

    /// Paragraphs in lines of at most `columns`. An empty line ends a paragraph; an indented line stays unchanged.
    static func filledParagraphs(_ text: String, to columns: Int) -> String {
        var lines: [String] = []
        var paragraph = ""
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.isEmpty || line.hasPrefix("  ") {
                lines += filled(paragraph, to: columns) + [String(line)]
                paragraph = ""
            } else {
                paragraph += line + " "
            }
        }
        return (lines + filled(paragraph, to: columns)).joined(separator: "\n")
    }

    private static func width(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: return wide.contains { $0.contains(scalar.value) } ? 2 : 1
        }
    }

    /// Unicode's East Asian Width (UAX 11), wide and fullwidth, by its blocks.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
        0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF,
        0x20000...0x3FFFD,
    ]
}

/// A block of lines on the terminal of stderr, each version drawn over the last.
///
/// The owner draws under a lock, so that two versions do not mix.
struct LivePicture: Sendable {
    /// The number of lines of the last version.
    private var drawn = 0

    /// Prints the permanent lines, and the block below them.
    mutating func draw(_ lines: [String], below staying: [String] = []) {
        // The cursor is below the last version.
        var text = drawn > 0 ? "\u{1B}[\(drawn)A\r" : "\r"
        text += "\u{1B}[J"
        for line in staying + lines { text += line + "\n" }
        drawn = lines.count
        Console.error(text)
    }
}

extension String {
    /// Padded on the right to this number of characters, or with `gap` blanks if it is longer.
    func padded(to width: Int, gap: Int = 0) -> String { self + blanks(max(gap, width - count)) }

    /// The same, padded on the left.
    func aligned(right width: Int, gap: Int = 1) -> String { blanks(max(gap, width - count)) + self }
}

func blanks(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }
