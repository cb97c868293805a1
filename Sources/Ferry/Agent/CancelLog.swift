/// When all runs were cancelled, or all of a tag: for those that were answered then, or before the cancel came to them,
/// and that a task was about to go on with, where nobody finds them.
struct CancelLog {
    private var recent: [(number: UInt32, tag: String?)] = []
    /// Of the last one; 0 = there was none.
    private(set) var number: UInt32 = 0

    /// More of them nobody makes in the moment that a task takes to go on.
    private static let most = 64
    /// So many will not come.
    private static let last = UInt32.max

    /// All runs are cancelled, or those of a tag.
    mutating func note(_ tag: String?) {
        if number < Self.last { number += 1 }
        if recent.count == Self.most { recent.removeFirst() }
        recent.append((number, tag))
    }

    /// Whether a run of this tag was meant after the one of that number.
    func covers(_ tag: String?, since earlier: UInt32) -> Bool {
        recent.contains { $0.number > earlier && ($0.tag == nil || $0.tag == tag) }
    }
}
