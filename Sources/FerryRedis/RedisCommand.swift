internal import FerryCache

/// A command for Redis, with its time limit and completion handler.
struct RedisCommand: Sendable {
    enum Outcome: Sendable {
        case reply(RedisReply)
        case failed(CacheFaultKind)
        /// The command was not sent: the circuit is open, or the storage is closed.
        case refused
        /// The command was not sent: too many bytes wait to be written.
        case full
    }

    enum Line: Sendable {
        /// A caller waits for the reply.
        case look
        case change
    }

    var arguments: [[UInt8]]
    /// Makes the last argument when the command is sent, on the loop's thread, because it takes time.
    var last: (@Sendable () -> [UInt8])?
    var line: Line
    /// The time limit in nanoseconds, from the call.
    var patience: UInt64
    /// The bytes to write; they count until the command has been written.
    var bytes = 0
    /// Called once, on the loop's thread or on the caller's.
    var finish: @Sendable (Outcome) -> Void
}

/// A first-in, first-out queue.
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

    /// Changes all elements, from the first.
    mutating func forEach(_ body: (inout Element) -> Void) {
        for index in head..<elements.count {
            if var element = elements[index] {
                body(&element)
                elements[index] = element
            }
        }
    }
}
