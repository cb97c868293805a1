/// Words of a command line for bash, zsh and ksh that mean exactly these bytes, on one line and in visible characters.
enum ShellText {
    /// One word: bare where nothing in it means anything to a shell, else in single quotes, or, with characters that do
    /// not show, as `$'…'`. A byte of 0 cannot stand in a word and is left out.
    static func word(_ text: String) -> String { word(Array(text.utf8)) }

    static func word(_ bytes: [UInt8]) -> String {
        if !bytes.isEmpty, bytes.allSatisfy(bare.contains) { return String(decoding: bytes, as: UTF8.self) }
        return quoted(bytes)
    }

    /// Likewise, but in quotes always, as people write headers and URLs.
    static func quoted(_ text: String) -> String { quoted(Array(text.utf8)) }

    static func quoted(_ bytes: [UInt8]) -> String {
        if let text = String(validating: bytes, as: UTF8.self), text.unicodeScalars.allSatisfy(isVisible) {
            return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
        }
        var made = "$'"
        for piece in pieces(of: bytes) {
            switch piece {
            case .visible("'"), .visible("\\"): made += "\\" + piece.text
            // Of history, to an interactive shell.
            case .visible("!"): made += "\\041"
            case .visible: made += piece.text
            case .bytes([0x0A]): made += "\\n"
            case .bytes([0x0D]): made += "\\r"
            case .bytes([0x09]): made += "\\t"
            case .bytes(let bytes): for byte in bytes where byte != 0 { made += "\\" + octal(byte) }
            }
        }
        return made + "'"
    }

    /// `printf '…'`, which prints these bytes, zeros included.
    static func printing(_ bytes: [UInt8]) -> String {
        var made = "printf '"
        for byte in bytes {
            switch byte {
            case 0x25: made += "%%"
            case 0x0A: made += "\\n"
            case 0x20...0x7E where byte != 0x27 && byte != 0x5C: made.unicodeScalars.append(UnicodeScalar(byte))
            default: made += "\\" + octal(byte)
            }
        }
        return made + "'"
    }

    private enum Piece {
        case visible(UnicodeScalar)
        case bytes([UInt8])

        var text: String { if case .visible(let scalar) = self { String(Character(scalar)) } else { "" } }
    }

    private static func pieces(of bytes: [UInt8]) -> [Piece] {
        var pieces: [Piece] = []
        var rest = bytes[...]
        while let first = rest.first {
            let length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
            if let text = String(validating: rest.prefix(length), as: UTF8.self), let scalar = text.unicodeScalars.first
            {
                pieces.append(isVisible(scalar) ? .visible(scalar) : .bytes(Array(rest.prefix(length))))
                rest = rest.dropFirst(length)
            } else {
                pieces.append(.bytes([first]))
                rest = rest.dropFirst()
            }
        }
        return pieces
    }

    /// Of blanks only the one that everybody takes it for.
    private static func isVisible(_ scalar: UnicodeScalar) -> Bool {
        !scalar.isInvisible && (scalar == " " || scalar.properties.generalCategory != .spaceSeparator)
    }

    private static func octal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 8)
        return String(repeating: "0", count: 3 - digits.count) + digits
    }

    private static let bare = ByteSet("-._/:@%+,0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}
