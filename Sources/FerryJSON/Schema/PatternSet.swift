/// A set of characters, `[…]`, in the form of POSIX, where no escapes exist: `]` stands first, `-` last, `^` not first.
struct PatternSet {
    var isNegated = false
    private var ranges = ""
    private var others = ""
    private var hasBracket = false
    private var hasCaret = false
    private var hasHyphen = false

    var isEmpty: Bool { ranges.isEmpty && others.isEmpty && !hasBracket && !hasCaret && !hasHyphen }

    /// The members of the classes `d`, `w` and `s`, ECMAScript's in ASCII.
    static func members(of kind: Unicode.Scalar) -> String {
        switch kind {
        case "d": "0-9"
        case "w": "A-Za-z0-9_"
        default: " \t\n\r\u{b}\u{c}"
        }
    }

    mutating func add(class kind: Unicode.Scalar) {
        ranges += Self.members(of: kind)
    }

    mutating func add(_ scalar: Unicode.Scalar) {
        switch scalar {
        case "]": hasBracket = true
        case "^": hasCaret = true
        case "-": hasHyphen = true
        // Before these a bracket would begin a POSIX class; alone at the end it does not.
        case "[": others = others + "["
        default: others = String(scalar) + others
        }
    }

    /// A range whose ends have a meaning of their own in a set is taken apart into its members.
    mutating func add(_ low: Unicode.Scalar, _ high: Unicode.Scalar) {
        let special: [Unicode.Scalar] = ["]", "^", "-", "["]
        guard special.contains(low) || special.contains(high) else {
            ranges += "\(low)-\(high)"
            return
        }
        for value in low.value...high.value {
            if let scalar = Unicode.Scalar(value) { add(scalar) }
        }
    }

    var text: String {
        // A lone ^ would negate; an alternative without a set says the same.
        if hasCaret, !isNegated, ranges.isEmpty, others.isEmpty, !hasBracket {
            return hasHyphen ? "[-^]" : "\\^"
        }
        return (isNegated ? "[^" : "[") + (hasBracket ? "]" : "") + ranges + others + (hasCaret ? "^" : "")
            + (hasHyphen ? "-" : "") + "]"
    }
}
