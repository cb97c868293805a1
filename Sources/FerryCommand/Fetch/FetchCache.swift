internal import Ferry

/// What the command line says of the cache.
struct FetchCache: Sendable {
    var directory: String
    var policy: CachePolicy
    var mode: CacheMode

    /// `nil` when it says nothing.
    init?(_ arguments: ParsedArguments) throws(UsageError) {
        let version = try arguments.integer("cache-version", in: 0...Int.max)
        let time = try arguments.seconds("cache-ttl")
        let word = arguments.last("cache-mode") ?? "else-network"
        guard let mode = CacheMode(word: word) else {
            throw UsageError("--cache-mode wants else-network, reload or only, not '\(word)'")
        }
        guard let directory = arguments.last("cache-dir") else {
            for name in ["cache-ttl", "cache-version", "cache-mode"] where arguments.has(name) {
                throw UsageError("--\(name) goes with --cache-dir")
            }
            return nil
        }
        if directory.isEmpty { throw UsageError("--cache-dir wants a folder") }
        guard let time else { throw UsageError("--cache-dir goes with --cache-ttl") }
        self.directory = directory
        self.mode = mode
        policy = .timeToLive(time, version: version ?? 0)
    }
}
