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

    /// Columns for tables on standard output: those of its terminal, however few they are; without one the usual ones.
    static var tableColumns: Int { max(size(of: STDOUT_FILENO).columns, 40) }

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

/// How much room text takes on a terminal, where not every character is one column wide.
enum TerminalText {
    static func width(_ text: String) -> Int { text.unicodeScalars.reduce(0) { $0 + width($1) } }

    /// The text, or its beginning and an ellipsis.
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

    /// The words of a text in lines of at most `columns`. A word that is longer than a line gets a line of its own.
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

    /// Paragraphs in lines of at most `columns`. An empty line ends a paragraph; an indented line stays as it is.
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

/// Lines on the terminal behind stderr, each picture drawn over the last.
///
/// Whoever has it draws under a lock: pictures must not come one into the other.
struct LivePicture: Sendable {
    /// Lines of the last one.
    private var drawn = 0

    /// Puts out the lines that stay, and the picture below them.
    mutating func draw(_ lines: [String], below staying: [String] = []) {
        // The cursor stands below the last picture.
        var text = drawn > 0 ? "\u{1B}[\(drawn)A\r" : "\r"
        text += "\u{1B}[J"
        for line in staying + lines { text += line + "\n" }
        drawn = lines.count
        Console.error(text)
    }
}

extension String {
    /// With blanks behind it, to so many characters; with `gap` of them where there is no room.
    func padded(to width: Int, gap: Int = 0) -> String { self + blanks(max(gap, width - count)) }

    /// Likewise, with the blanks in front.
    func aligned(right width: Int, gap: Int = 1) -> String { blanks(max(gap, width - count)) + self }
}

func blanks(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }
