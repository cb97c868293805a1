import Ferry
import FoundationEssentials

@testable import FerryTestSupport

/// A request of a race. It passes everything it is told to its token.
struct RaceRequest: Request {
    let target: RaceTarget
    let token: RaceToken
    var priority = RequestPriority.normal
    var cachePolicy = CachePolicy.none
    var cacheMode = CacheMode.cacheElseNetwork
    /// Its hooks are also those of a run in the background, which nobody awaits.
    var isFetchedAgain = false
    var coalesces = false
    var retryPolicy: RetryPolicy?
    var timeouts: Timeouts?
    var body: RequestBody?

    init(_ target: RaceTarget, _ token: RaceToken, choice: Int) {
        self.target = target
        self.token = token
        priority = [.low, .normal, .high][choice % 3]
        if target.path == "/busy" { retryPolicy = .quick }
        if target.path == "/held" { timeouts = Timeouts(idle: .milliseconds(30)) }
        if target.method != .post { return }
        let bytes = Data(target.body!)
        body =
            choice % 2 == 0
            ? .data(bytes)
            : .stream {
                AsyncStream { continuation in
                    for part in stride(from: 0, to: bytes.count, by: 3000) {
                        continuation.yield(bytes[part..<part + 3000])
                    }
                    continuation.finish()
                }
            }
    }

    var path: String { target.path }
    var method: HTTPMethod { target.method }
    func completionPreprocessor(_ reply: Reply<Response>) { note("completionPreprocessor") }
    func failurePreprocessor(_ error: RequestError) { note("failurePreprocessor") }
    func willDeliver(_ result: Result<Reply<Response>, RequestError>) { note("willDeliver") }

    private func note(_ hook: String) {
        if !isFetchedAgain { token.note(hook) }
    }
}
