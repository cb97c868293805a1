internal import Ferry

/// The cache of `ferry run` and `ferry bench`: as the server says, by RFC 9111.
enum HTTPCacheOption {
    static let options = [
        CommandOption(
            "http-cache", optionalValue: "KIND", "Stores responses as the server says, in memory; private or shared"),
        CommandOption("cache-dir", value: "FOLDER", "With --http-cache: in this folder, which outlives the process"),
    ]
    static let names = ["http-cache", "cache-dir"]

    /// In memory, where no folder is named.
    private static let memoryBytes = 256 << 20

    /// Makes it the configuration's, for requests that say nothing of a cache of their own.
    static func apply(_ arguments: ParsedArguments, to configuration: inout NetworkConfiguration) throws(UsageError) {
        let directory = arguments.last("cache-dir")
        guard arguments.has("http-cache") else {
            if directory != nil { throw UsageError("--cache-dir goes with --http-cache") }
            return
        }
        if directory?.isEmpty == true { throw UsageError("--cache-dir wants a folder") }
        configuration.cachePolicy = .http(shared: try FetchCache.isShared(arguments.last("http-cache")))
        if let directory {
            configuration.cache = CacheConfiguration(directory: directory)
        } else if configuration.cache == nil {
            configuration.cache = CacheConfiguration { MemoryCacheStorage(maxBytes: memoryBytes) }
        }
    }
}
