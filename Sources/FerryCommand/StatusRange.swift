/// Status codes as people write them.
enum StatusRange {
    /// `200` or `200-299`; `nil` for what is none.
    static func reading(_ text: some StringProtocol) -> ClosedRange<Int>? {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { code(String($0)) }
        guard ends.count <= 2, let first = ends.first ?? nil, let last = ends.last ?? nil, first <= last else {
            return nil
        }
        return first...last
    }

    /// Three digits, the first of which is not 0.
    private static func code(_ text: String) -> Int? {
        guard text.utf8.count == 3, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        return Int(text).flatMap { $0 >= 100 ? $0 : nil }
    }
}
