/// Text in a page.
enum HTMLText {
    /// Without meaning to HTML, in an attribute, too; a control is a question mark.
    static func escaped(_ text: some StringProtocol) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(character.value < 32 && character != "\n" ? "?" : character)
            }
        }
        return escaped
    }
}
