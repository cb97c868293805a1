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
            for name in ["cache-ttl", "http-cache", "cache-version", "cache-mode"] where arguments.has(name) {
                throw UsageError("--\(name) goes with --cache-dir")
            }
            return nil
        }
        if directory.isEmpty { throw UsageError("--cache-dir wants a folder") }
        self.directory = directory
        self.mode = mode
        if arguments.has("http-cache") {
            for name in ["cache-ttl", "cache-version"] where arguments.has(name) {
                throw UsageError("--http-cache and --\(name) exclude each other: the server says how long")
            }
            policy = .http(shared: try Self.isShared(arguments.last("http-cache")))
            return
        }
        guard let time else { throw UsageError("--cache-dir goes with --cache-ttl or --http-cache") }
        policy = .timeToLive(time, version: version ?? 0)
    }

    /// The word of `--http-cache`.
    static func isShared(_ word: String?) throws(UsageError) -> Bool {
        switch word {
        case nil, "": false
        case "private": false
        case "shared": true
        case .some(let word): throw UsageError("--http-cache wants private or shared, not '\(word)'")
        }
    }
}
