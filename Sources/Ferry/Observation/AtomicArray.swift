import Synchronization

/// A fixed number of atomic words in one piece of memory, all zero at first.
///
/// Sendable because the pointer never changes and the words are atomic.
final class AtomicArray: @unchecked Sendable {
    let count: Int
    private let words: UnsafeMutablePointer<Atomic<UInt64>>

    init(count: Int) {
        self.count = count
        words = .allocate(capacity: count)
        for index in 0..<count { (words + index).initialize(to: Atomic(0)) }
    }

    deinit {
        words.deinitialize(count: count)
        words.deallocate()
    }

    subscript(index: Int) -> Atomic<UInt64> {
        @inline(__always) _read {
            precondition(index >= 0 && index < count, "no word of this number")
            yield words[index]
        }
    }
}
