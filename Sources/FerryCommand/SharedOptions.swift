internal import Ferry
internal import FerryRedis
internal import FoundationEssentials

/// `--engine`: what carries requests over HTTP/1.1.
enum EngineOption {
    static let name = "engine"
    static let words = ["automatic", "libcurl"]

    /// Its help names the engine that counts without it.
    static var option: CommandOption {
        CommandOption(
            name, value: "NAME", words: words,
            "HTTP/1.1 by Ferry's own engine, or all by libcurl (\(TransferEngine.standard.word))")
    }

    /// `nil` when it is not given.
    static func engine(_ arguments: ParsedArguments) throws(UsageError) -> TransferEngine? {
        switch arguments.last(name) {
        case nil: nil
        case "automatic": .automatic
        case "libcurl": .libcurl
        case .some(let text): throw UsageError("--engine wants automatic or libcurl, not '\(text)'")
        }
    }
}

extension TransferEngine {
    /// As the command line has it.
    var word: String { self == .automatic ? "automatic" : "libcurl" }
}

extension RequestMetrics.Engine {
    /// As JSON has it.
    var word: String { self == .http1 ? "http1" : "libcurl" }
}

/// Where a cache stores responses: a folder, or a Redis server.
enum CacheLocation: Sendable {
    case folder(String)
    case redis(RedisConfiguration)

    /// What the command line says by `--cache-dir` or `--cache`; `nil` where it says nothing.
    init?(_ arguments: ParsedArguments) throws(UsageError) {
        switch (arguments.last("cache-dir"), arguments.last("cache")) {
        case (nil, nil): return nil
        case (.some, .some):
            throw UsageError("--cache-dir and --cache exclude each other: one names a folder, the other a Redis server")
        case (let folder?, nil):
            if folder.isEmpty { throw UsageError("--cache-dir wants a folder") }
            self = .folder(folder)
        case (nil, let url?):
            do throws(RedisURLError) {
                self = .redis(try RedisConfiguration(url: url))
            } catch {
                // Not the URL itself: there may be a password in it.
                throw UsageError("--cache wants redis://HOST[:PORT][/DATABASE] or unix:///PATH: \(error)")
            }
        }
    }

    /// The option that names it.
    static func name(_ arguments: ParsedArguments) -> String { arguments.has("cache") ? "cache" : "cache-dir" }

    /// The cache of an agent. A process that sends one request waits for the connection to Redis, and no request of
    /// many does.
    func configuration(connects: Bool) -> CacheConfiguration {
        switch self {
        case .folder(let folder): return CacheConfiguration(directory: folder)
        case .redis(var redis):
            if connects { redis.timeout = redis.connectTimeout }
            return CacheConfiguration { [redis] in RedisCacheStorage(redis) }
        }
    }
}

/// The cache of `ferry run` and `ferry bench`: as the server says, by RFC 9111.
enum HTTPCacheOption {
    static let options = [
        CommandOption(
            "http-cache", optionalValue: "KIND", "Stores responses as the server says, in memory; private or shared"),
        CommandOption("cache-dir", value: "FOLDER", "With --http-cache: in this folder, which outlives the process"),
        CommandOption("cache", value: "URL", "With --http-cache: in Redis, redis://HOST[:PORT][/DATABASE]"),
    ]
    static let names = ["http-cache", "cache-dir", "cache"]

    /// In memory, where no folder is named.
    private static let memoryBytes = 256 << 20

    /// Makes it the configuration's, for requests that say nothing of a cache of their own.
    static func apply(_ arguments: ParsedArguments, to configuration: inout NetworkConfiguration) throws(UsageError) {
        let location = try CacheLocation(arguments)
        guard arguments.has("http-cache") else {
            if location != nil { throw UsageError("--\(CacheLocation.name(arguments)) goes with --http-cache") }
            return
        }
        configuration.cachePolicy = .http(shared: try FetchCache.isShared(arguments.last("http-cache")))
        if let location {
            configuration.cache = location.configuration(connects: false)
        } else if configuration.cache == nil {
            configuration.cache = CacheConfiguration { MemoryCacheStorage(maxBytes: memoryBytes) }
        }
    }
}

/// `USER:PASSWORD`. The password may have colons of its own.
struct Credentials: Sendable, Equatable {
    let user: String
    let password: String
}

extension Credentials {
    /// `nil` without a colon.
    init?(_ text: String) {
        guard let colon = text.firstIndex(of: ":") else { return nil }
        self.init(user: String(text[..<colon]), password: String(text[text.index(after: colon)...]))
    }
}

/// Status codes as people write them.
enum StatusRange {
    /// `200` or `200-299`; `nil` for what is none.
    static func reading(_ text: some StringProtocol) -> ClosedRange<Int>? {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { code(String($0)) }
        guard ends.count <= 2, let first = ends.first ?? nil, let last = ends.last ?? nil, first <= last else {
            return nil
        }
        return first...last
    }

    /// Three digits, the first of which is not 0.
    private static func code(_ text: String) -> Int? {
        guard text.utf8.count == 3, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        return Int(text).flatMap { $0 >= 100 ? $0 : nil }
    }
}

/// A schema that a file holds, in the vocabulary of JSON Schema.
enum SchemaFile {
    /// What is wrong with it is said by file and line.
    static func schema(at path: String) throws(InputError) -> JSONSchema { try schema(of: JSONFile(at: path)) }

    /// Likewise of what the file holds.
    static func schema(of text: Data, path: String) throws(InputError) -> JSONSchema {
        try schema(of: JSONFile(path: path, text: text))
    }

    private static func schema(of file: JSONFile) throws(InputError) -> JSONSchema {
        try file.schema(try file.document())
    }
}

/// The query of a URL, which forms look like, too.
enum URLQuery {
    /// In the order given, and a name as often as it was given: both may matter to a server.
    static func encoded(_ pairs: [(name: String, value: String)]) -> String {
        pairs.map { "\(PercentEncoding.encoded($0.name))=\(PercentEncoding.encoded($0.value))" }.joined(separator: "&")
    }

    /// The URL with these in its query, if there are any.
    static func appending(_ pairs: [(name: String, value: String)], to url: String) -> String {
        pairs.isEmpty ? url : appending(encoded(pairs), to: url)
    }

    /// Before a fragment, which is not sent, nor what stands behind it; after a query that is already there.
    static func appending(_ query: String, to url: String) -> String {
        let fragment = url.firstIndex(of: "#") ?? url.endIndex
        let start = url[..<fragment]
        let separator = start.contains("?") ? (start.hasSuffix("?") || start.hasSuffix("&") ? "" : "&") : "?"
        return start + separator + query + url[fragment...]
    }
}

/// A URL as it is typed.
enum CommandURL {
    /// With `http://` in front where it has no scheme, as in `localhost:8080/x`.
    static func complete(_ url: String) throws(UsageError) -> String {
        if url.isEmpty { throw UsageError("the URL is empty") }
        if url.hasPrefix("//") { return "http:" + url }
        return hasScheme(url) ? url : "http://" + url
    }

    /// The last part of its path; `nil` where that is empty or would be a folder.
    static func fileName(of url: String) -> String? {
        var path = url.prefix { $0 != "?" && $0 != "#" }
        if hasScheme(url), let colon = path.firstIndex(of: ":") { path = path[colon...].dropFirst(3) }
        guard let slash = path.lastIndex(of: "/") else { return nil }
        let name = path[path.index(after: slash)...]
        return name.isEmpty || name == "." || name == ".." ? nil : String(name)
    }

    /// Whether it begins with `http://` or `https://`, or with what names the socket of one.
    static func hasWebScheme(_ url: String) -> Bool {
        let start = url.prefix(13).lowercased()
        return ["http://", "https://", "http+unix://", "https+unix://"].contains(where: start.hasPrefix)
    }

    private static func hasScheme(_ url: String) -> Bool {
        let scheme = url.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }
        return !scheme.isEmpty && url.dropFirst(scheme.count).hasPrefix("://")
    }
}
