/// What somebody who typed a word that is not known may have meant.
enum Suggestion {
    /// ` (did you mean NAME?)`, or nothing where no name is within two slips of it.
    static func text(for word: String, in names: [String]) -> String {
        let most = min(2, word.count / 2)
        let near = names.filter { abs($0.count - word.count) <= most }
            .map { (name: $0, slips: slips(Array(word), Array($0))) }.filter { $0.slips <= most }
        return near.min { $0.slips < $1.slips }.map { " (did you mean \($0.name)?)" } ?? ""
    }

    /// Letters that are left out, put in, changed, or two beside each other that have changed places: the optimal
    /// string alignment distance.
    static func slips(_ a: [Character], _ b: [Character]) -> Int {
        var last: [Int] = []
        var row = Array(0...b.count)
        for i in a.indices {
            var next = [i + 1]
            for j in b.indices {
                var best = min(row[j] + (a[i] == b[j] ? 0 : 1), row[j + 1] + 1, next[j] + 1)
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, last[j - 1] + 1) }
                next.append(best)
            }
            (last, row) = (row, next)
        }
        return row[b.count]
    }
}
