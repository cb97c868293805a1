internal import Synchronization

/// What a worker is to do.
struct Load: Sendable {
    var url: String
    var total: Int
    var concurrency: Int
    /// Of every body.
    var length: Int
    /// To the server at most; the others wait.
    var connections = 64
    /// Requests a second of the open model, and how long; `total` and `concurrency` say nothing then.
    var rate: Int?
    var seconds = 5

    /// `http://127.0.0.1:PORT`.
    var origin: String { String(url.prefix { $0 != "/" } + "//" + authority) }
    /// What follows it.
    var path: String { String(url.dropFirst(origin.count)) }

    /// Of a certificate that nobody has signed but itself.
    var isSecure: Bool { url.hasPrefix("https:") }

    private var authority: Substring { url.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "/" } }
}

/// Hands out the requests of a load one by one, so that all are at work until the last.
final class Tickets: Sendable {
    private let left: Atomic<Int>

    init(_ total: Int) {
        left = Atomic(total)
    }

    /// Whether there was one more to send, or so many.
    func take(_ count: Int = 1) -> Bool {
        left.wrappingSubtract(count, ordering: .relaxed).newValue >= 0
    }
}

/// What one of the `concurrency` senders saw.
struct SenderResult: Sendable {
    enum Outcome { case ok, wrong, failed }

    var latencies: [UInt64] = []
    var ok: UInt64 = 0
    var wrong: UInt64 = 0
    var failed: UInt64 = 0

    mutating func record(_ outcome: Outcome, nanoseconds: UInt64) {
        latencies.append(nanoseconds)
        switch outcome {
        case .ok: ok += 1
        case .wrong: wrong += 1
        case .failed: failed += 1
        }
    }
}
