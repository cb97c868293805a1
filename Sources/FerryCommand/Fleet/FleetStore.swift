internal import Dispatch
internal import Ferry
internal import FerryMeasurement
internal import FerryRedis
internal import FerrySynchronization

/// The store in which the processes of a fleet leave messages for each other. Every value expires.
protocol FleetStore: Sendable {
    /// The values of keys; `nil` for a key without a value.
    func values(of keys: [String]) async throws(FleetError) -> [[UInt8]?]

    /// Sets a value. Returns `false` if `onlyIfAbsent` is set and the key already has a value.
    func set(
        _ key: String, to value: [UInt8], expiringAfter time: Duration, onlyIfAbsent: Bool
    ) async throws(FleetError) -> Bool

    func remove(_ keys: [String]) async throws(FleetError)

    /// The time of the store's clock in microseconds. All workers start by this clock.
    func time() async throws(FleetError) -> UInt64
}

/// An error that ends a fleet: one line for standard error. The exit code is 3.
struct FleetError: Error, CustomStringConvertible, Equatable {
    let description: String

    init(_ description: String) { self.description = description }

    /// Ctrl-C before anything was measured. The exit code reports it, so no message is printed.
    static let interrupted = FleetError("interrupted")
    /// A worker that is silent for too long loses its place to another process.
    static let placeTaken = FleetError("another process has taken the place of this worker")
}

/// `redis[s]://HOST[:PORT][/DATABASE]#NAME`: the server and the name by which the processes of a fleet find each other.
struct FleetAddress: Sendable {
    let configuration: RedisConfiguration
    let name: String

    /// The longest name.
    private static let mostCharacters = 64

    /// `option` is the name in error messages. They do not quote the URL, because it may contain a password.
    init(_ text: String, option: String) throws(UsageError) {
        guard let hash = text.lastIndex(of: "#") else {
            throw UsageError("--\(option): #NAME is missing; expected redis[s]://HOST[:PORT][/DATABASE]#NAME")
        }
        name = String(text[text.index(after: hash)...])
        let isPlain = name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) }
        guard isPlain, !name.isEmpty, name.count <= Self.mostCharacters else {
            throw UsageError("--\(option): the name must consist of 1 to 64 letters, digits, '-', '_' and '.'")
        }
        do throws(RedisURLError) {
            var configuration = try RedisConfiguration(url: String(text[..<hash]))
            configuration.connectTimeout = .seconds(5)
            configuration.timeout = .seconds(5)
            configuration.maxEntryBytes = FleetMessage.mostBytes
            self.configuration = configuration
        } catch {
            throw UsageError("--\(option): \(error.description)")
        }
    }
}

/// The store in Redis. Commands block a queue of their own, never a thread of the task pool. After the first command
/// has succeeded, a command without a connection is repeated for five seconds.
final class RedisFleetStore: FleetStore {
    private let client: RedisClient
    private let hasWorked = Atomic(false)
    private let queue = DispatchQueue(label: "ferry.bench.fleet")

    init(_ configuration: RedisConfiguration) { client = RedisClient(configuration) }

    func values(of keys: [String]) async throws(FleetError) -> [[UInt8]?] {
        guard case .array(let replies) = try await perform(["MGET"] + keys), replies.count == keys.count else {
            throw FleetError("Redis sent an invalid reply to MGET")
        }
        return replies.map { if case .bytes(let bytes) = $0 { bytes } else { nil } }
    }

    func set(
        _ key: String, to value: [UInt8], expiringAfter time: Duration, onlyIfAbsent: Bool
    ) async throws(FleetError) -> Bool {
        let bound = ["PX", "\(max(1, time.microseconds / 1000))"] + (onlyIfAbsent ? ["NX"] : [])
        let words = ["SET", key].map { Array($0.utf8) } + [value] + bound.map { Array($0.utf8) }
        switch try await perform(words) {
        case .status: return true
        case .null where onlyIfAbsent: return false
        default: throw FleetError("Redis sent an invalid reply to SET")
        }
    }

    func remove(_ keys: [String]) async throws(FleetError) { _ = try await perform(["DEL"] + keys) }

    func time() async throws(FleetError) -> UInt64 {
        guard case .array(let parts) = try await perform(["TIME"]), parts.count == 2,
            case .bytes(let seconds) = parts[0], case .bytes(let micro) = parts[1],
            let seconds = UInt64(String(decoding: seconds, as: UTF8.self)), seconds < 1 << 40,
            let micro = UInt64(String(decoding: micro, as: UTF8.self)), micro < 1_000_000
        else { throw FleetError("Redis sent an invalid reply to TIME") }
        return seconds * 1_000_000 + micro
    }

    private func perform(_ words: [String]) async throws(FleetError) -> RedisClient.Reply {
        try await perform(words.map { Array($0.utf8) })
    }

    private func perform(_ words: [[UInt8]]) async throws(FleetError) -> RedisClient.Reply {
        let end = monotonicNanoseconds() + Self.patience
        while true {
            let result = await withCheckedContinuation { continuation in
                queue.async { [self] in
                    let result = Result { () throws(RedisClient.Fault) in try client.perform(words) }
                    var works = hasWorked.load(ordering: .relaxed)
                    if case .success = result { works = true }
                    // The thread sanitizer does not see that the continuation orders what is read below.
                    hasWorked.store(works, ordering: .releasing)
                    continuation.resume(returning: result)
                }
            }
            let works = hasWorked.load(ordering: .acquiring)
            switch result {
            case .success(let reply): return reply
            case .failure(let fault):
                let isWorthIt = !fault.isReply && works
                if !isWorthIt || monotonicNanoseconds() >= end { throw FleetError(fault.description) }
                await pause(milliseconds: 200)
            }
        }
    }

    private static let patience: UInt64 = 5_000_000_000
}

/// The names of the keys of one fleet. The keys of a run contain its identifier, so that no run reads what an earlier
/// run has left.
struct FleetKeys: Sendable, Equatable {
    private let prefix: String

    init(_ name: String) { prefix = "ferry:bench:\(name):" }

    /// The key of the coordinator's state.
    var state: String { prefix + "state" }

    func order(_ run: String) -> String { "\(prefix)\(run):order" }
    func worker(_ number: Int, _ run: String) -> String { "\(prefix)\(run):worker:\(number)" }
    func result(_ number: Int, _ run: String) -> String { "\(prefix)\(run):result:\(number)" }

    func all(_ run: String, workers: Int) -> [String] {
        [order(run)] + (1...workers).flatMap { [worker($0, run), result($0, run)] }
    }
}

/// Waits for this time, even if the task is cancelled.
func pause(milliseconds: Int) async {
    await withCheckedContinuation { continuation in
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { continuation.resume() }
    }
}
