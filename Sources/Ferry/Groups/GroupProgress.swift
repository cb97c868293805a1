/// How far a batch or chain has come.
public struct GroupProgress: Sendable, Hashable {
    /// Members or steps that have ended, in whatever way.
    public let finished: Int
    /// All members; of a chain the steps as far as they are known: those that a step adds count from then on.
    public let total: Int

    /// From 0 to 1; 1 when there is nothing to do.
    public var fraction: Double { total == 0 ? 1 : Double(finished) / Double(total) }

    /// So many of so many.
    public init(finished: Int, total: Int) {
        self.finished = finished
        self.total = total
    }
}
