/// Turns `created_at` into `createdAt`.
enum SnakeCase {
    /// Underscores at either end stay; what is between them becomes one word.
    static func camelCase(of key: String) -> String {
        let leading = key.prefix { $0 == "_" }
        guard leading.endIndex != key.endIndex else { return key }
        let trailing = key.suffix(key.reversed().prefix { $0 == "_" }.count)
        let words = key[leading.endIndex..<trailing.startIndex].split(separator: "_")
        guard words.count > 1 else { return key }
        let joined = words.dropFirst().reduce(words[0].lowercased()) { $0 + capitalized($1) }
        return leading + joined + trailing
    }

    private static func capitalized(_ word: Substring) -> String {
        word.prefix(1).uppercased() + word.dropFirst().lowercased()
    }
}
