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
