/// Those who wait for the elements of one source. It has no lock of its own: it lives in its owner's.
struct Listeners<Element: Sendable>: Sendable {
    private var continuations: [UInt64: AsyncStream<Element>.Continuation] = [:]
    private var lastNumber: UInt64 = 0

    var count: Int { continuations.count }

    mutating func add(_ continuation: AsyncStream<Element>.Continuation) -> UInt64 {
        lastNumber += 1
        continuations[lastNumber] = continuation
        return lastNumber
    }

    /// The continuation is returned so that it is let go after the lock was left.
    mutating func remove(_ number: UInt64) -> AsyncStream<Element>.Continuation? {
        continuations.removeValue(forKey: number)
    }

    /// Called with the owner's lock held, so that all get the elements in the same order; it only queues them.
    func send(_ element: Element) {
        for continuation in continuations.values { continuation.yield(element) }
    }

    /// The source is gone: the iterations end when they have had what was queued.
    func finish() {
        for continuation in continuations.values { continuation.finish() }
    }
}
