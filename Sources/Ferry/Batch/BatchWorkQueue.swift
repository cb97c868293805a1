/// What there is to do for the hands of a batch, and the hands that have nothing to do.
struct BatchWorkQueue {
    /// What a hand does, without waiting for anything.
    enum Work: Sendable {
        case begin(Int)
        /// Make the value of an answer, or find that there is more to do for it.
        case settle(Int, BatchMember.Transfer, Answer)
        /// Take what the task of a member has brought.
        case take(Int, Result<Made, RequestError>)
    }

    /// A hand that rests is given its next work, or `nil` when all is done.
    typealias Hand = UnsafeContinuation<Work?, Never>

    /// In the order it came.
    private var arriving: [Work] = []
    /// What came before that, the next last.
    private var leaving: [Work] = []
    private var resting: [Hand] = []

    mutating func pop() -> Work? {
        if leaving.isEmpty {
            swap(&arriving, &leaving)
            leaving.reverse()
        }
        return leaving.popLast()
    }

    /// The hand that is to be given it; it waits in line when all are busy.
    mutating func push(_ work: Work) -> Hand? {
        if let hand = resting.popLast() { return hand }
        arriving.append(work)
        return nil
    }

    mutating func rest(_ hand: Hand) { resting.append(hand) }

    mutating func takeResting() -> [Hand] {
        defer { resting = [] }
        return resting
    }
}
