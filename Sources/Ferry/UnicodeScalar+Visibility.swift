extension Unicode.Scalar {
    /// Whether a terminal takes it for more than a character: C0 and C1 controls (U+009B alone begins a command), the
    /// two other ends of a line of Unicode, and what turns the direction of a text.
    package var commandsTerminals: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    /// Whether it shows nothing of itself, or nobody knows what: controls, ends of lines, what changes the order or the
    /// look of what stands around it, and what has no meaning.
    var isInvisible: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: true
        default: false
        }
    }
}
