internal import Dispatch
internal import Ferry
internal import FerryMeasurement
internal import FerryRedis
internal import Synchronization

/// Where the processes of a fleet leave messages for each other. Every value expires.
protocol FleetStore: Sendable {
    /// The values of keys; `nil` for one that has none.
    func values(of keys: [String]) async throws(FleetError) -> [[UInt8]?]

    /// Sets a value. Returns `false` where `onlyIfAbsent` is asked for and the key has one.
    func set(
        _ key: String, to value: [UInt8], expiringAfter time: Duration, onlyIfAbsent: Bool
    ) async throws(FleetError) -> Bool

    func remove(_ keys: [String]) async throws(FleetError)

    /// Microseconds of the store's clock, by which all begin.
    func time() async throws(FleetError) -> UInt64
}

/// Why a fleet cannot go on; one line for stderr, the exit code is 3.
struct FleetError: Error, CustomStringConvertible, Equatable {
    let description: String

    init(_ description: String) { self.description = description }

    /// By ctrl-C before anything was measured: the exit code says it.
    static let interrupted = FleetError("interrupted")
    /// Of a worker that has said nothing for too long.
    static let placeTaken = FleetError("another process has taken this worker's place")
}

/// `redis://HOST[:PORT][/DATABASE]#NAME`: the server and the name by which the processes of a fleet find each other.
struct FleetAddress: Sendable {
    let configuration: RedisConfiguration
    let name: String

    /// The longest name.
    private static let mostCharacters = 64

    /// `option` is for the message. The URL is not quoted in it, as there may be a password in it.
    init(_ text: String, option: String) throws(UsageError) {
        guard let hash = text.lastIndex(of: "#") else {
            throw UsageError("--\(option) needs redis://HOST[:PORT][/DATABASE]#NAME, and there is no #NAME")
        }
        name = String(text[text.index(after: hash)...])
        let isPlain = name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) }
        guard isPlain, !name.isEmpty, name.count <= Self.mostCharacters else {
            throw UsageError("--\(option): a name has 1 to 64 letters, digits, '-', '_' and '.'")
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

/// The store in Redis. Commands wait on a queue of their own, never on a thread that tasks run on. Once a command has
/// succeeded, later ones are repeated for some seconds while there is no connection.
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
                queue.async { [client] in
                    continuation.resume(
                        returning: Result { () throws(RedisClient.Fault) in try client.perform(words) })
                }
            }
            switch result {
            case .success(let reply):
                hasWorked.store(true, ordering: .relaxed)
                return reply
            case .failure(let fault):
                let isWorthIt = !fault.isReply && hasWorked.load(ordering: .relaxed)
                if !isWorthIt || monotonicNanoseconds() >= end { throw FleetError(fault.description) }
                await pause(milliseconds: 200)
            }
        }
    }

    private static let patience: UInt64 = 5_000_000_000
}

/// The names of the keys of one fleet. Those of a run have its number in them, so that what an earlier run has left is
/// never taken for its own.
struct FleetKeys: Sendable, Equatable {
    private let prefix: String

    init(_ name: String) { prefix = "ferry:bench:\(name):" }

    /// What the coordinator says last.
    var state: String { prefix + "state" }

    func order(_ run: String) -> String { "\(prefix)\(run):order" }
    func worker(_ number: Int, _ run: String) -> String { "\(prefix)\(run):worker:\(number)" }
    func result(_ number: Int, _ run: String) -> String { "\(prefix)\(run):result:\(number)" }

    func all(_ run: String, workers: Int) -> [String] {
        [order(run)] + (1...workers).flatMap { [worker($0, run), result($0, run)] }
    }
}

/// Waits, whether or not the task is cancelled.
func pause(milliseconds: Int) async {
    await withCheckedContinuation { continuation in
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { continuation.resume() }
    }
}
