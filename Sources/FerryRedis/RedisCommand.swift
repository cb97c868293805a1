internal import FerryCache

/// What is to be asked of Redis.
struct RedisCommand: Sendable {
    enum Outcome: Sendable {
        case reply(RedisReply)
        case failed(CacheFaultKind)
        /// It was not sent: Redis is left alone for a while, or the storage is closed.
        case refused
        /// It was not sent: too much waits to be written.
        case full
    }

    enum Line: Sendable {
        /// Somebody waits for it.
        case look
        case change
    }

    var arguments: [[UInt8]]
    /// The last of them, where it is made only when the command is sent, on the thread of the loop: it takes time.
    var last: (@Sendable () -> [UInt8])?
    var line: Line
    /// Nanoseconds from the call on.
    var patience: UInt64
    /// Of what is to be written; they count until it is.
    var bytes = 0
    /// Called once, on the thread of the loop or on that of the caller.
    var finish: @Sendable (Outcome) -> Void
}

/// A line: the first that came is the first that goes.
struct RedisLine<Element> {
    private var elements: [Element?] = []
    private var head = 0

    var isEmpty: Bool { head == elements.count }
    var first: Element? { isEmpty ? nil : elements[head] }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func popFirst() -> Element? {
        if isEmpty { return nil }
        let element = elements[head]
        elements[head] = nil
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: head <= 1024)
            head = 0
        } else if head > 1024 && head * 2 > elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Changes all, from the first on.
    mutating func forEach(_ body: (inout Element) -> Void) {
        for index in head..<elements.count {
            if var element = elements[index] {
                body(&element)
                elements[index] = element
            }
        }
    }
}
