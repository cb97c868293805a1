internal import Synchronization

/// The load that a worker has to send.
struct Load: Sendable {
    var url: String
    var total: Int
    var concurrency: Int
    /// The length of every body.
    var length: Int
    /// The maximum number of connections to the server; other requests wait.
    var connections = 64
    /// Rate in requests per second and duration of the open-loop load; `total` and `concurrency` are ignored then.
    var rate: Int?
    var seconds = 5

    /// `http://127.0.0.1:PORT`.
    var origin: String { String(url.prefix { $0 != "/" } + "//" + authority) }
    /// The path after it.
    var path: String { String(url.dropFirst(origin.count)) }

    /// Whether the server has a self-signed certificate.
    var isSecure: Bool { url.hasPrefix("https:") }

    private var authority: Substring { url.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "/" } }
}

/// Hands out the requests of a load one by one, so that all senders are busy until the last.
final class Tickets: Sendable {
    private let left: Atomic<Int>

    init(_ total: Int) {
        left = Atomic(total)
    }

    /// Takes one request, or several; whether there were any left.
    func take(_ count: Int = 1) -> Bool {
        left.wrappingSubtract(count, ordering: .relaxed).newValue >= 0
    }
}

/// The results of one of the `concurrency` senders.
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
