internal import Ferry
internal import FerryRedis
internal import FoundationEssentials
internal import Glibc

/// `--engine`: the engine for requests over HTTP/1.1.
enum EngineOption {
    static let name = "engine"
    static let words = ["automatic", "libcurl"]

    /// Its help names the default.
    static var option: CommandOption {
        CommandOption(
            name, value: "NAME", words: words,
            "Choose the engine: automatic (Ferry's own where possible) or libcurl; the default is "
                + TransferEngine.standard.word)
    }

    /// `nil` if it is not set.
    static func engine(_ arguments: ParsedArguments) throws(UsageError) -> TransferEngine? {
        switch arguments.last(name) {
        case nil: try environment()
        case "automatic": .automatic
        case "libcurl": .libcurl
        case .some(let text): throw UsageError("--engine must be automatic or libcurl, not '\(text)'")
        }
    }

    /// The library takes another word for the default, which a user would not notice.
    private static func environment() throws(UsageError) -> TransferEngine? {
        let text = getenv("FERRY_ENGINE").map { String(cString: $0) } ?? ""
        if text.isEmpty || words.contains(text) { return nil }
        throw UsageError("FERRY_ENGINE must be automatic or libcurl, not '\(text)'")
    }
}

extension TransferEngine {
    /// The name on the command line.
    var word: String { self == .automatic ? "automatic" : "libcurl" }
}

extension RequestMetrics.Engine {
    /// The name in JSON.
    var word: String { self == .http1 ? "http1" : "libcurl" }
}

/// Where a cache stores responses: a folder, or a Redis server.
enum CacheLocation: Sendable {
    case folder(String)
    case redis(RedisConfiguration)

    /// The location that `--cache-dir` or `--cache` sets; `nil` without them.
    init?(_ arguments: ParsedArguments) throws(UsageError) {
        switch (arguments.last("cache-dir"), arguments.last("cache")) {
        case (nil, nil): return nil
        case (.some, .some):
            throw UsageError("--cache-dir and --cache cannot be combined: one names a folder, the other a Redis server")
        case (let folder?, nil):
            if folder.isEmpty { throw UsageError("--cache-dir needs a folder") }
            self = .folder(folder)
        case (nil, let url?):
            do throws(RedisURLError) {
                self = .redis(try RedisConfiguration(url: url))
            } catch {
                // Not the URL itself: there may be a password in it.
                throw UsageError("--cache needs redis://, rediss:// or unix:///PATH: \(error)")
            }
        }
    }

    /// The option that names it.
    static func name(_ arguments: ParsedArguments) -> String { arguments.has("cache") ? "cache" : "cache-dir" }

    /// The cache of an agent. With `connects`, a lookup may wait for the connection to Redis: for a process that sends
    /// only one request.
    func configuration(connects: Bool) -> CacheConfiguration {
        switch self {
        case .folder(let folder): return CacheConfiguration(directory: folder)
        case .redis(var redis):
            if connects { redis.timeout = redis.connectTimeout }
            return CacheConfiguration { [redis] in RedisCacheStorage(redis) }
        }
    }
}

/// The cache of `ferry run` and `ferry bench`, according to RFC 9111.
enum HTTPCacheOption {
    static let options = [
        CommandOption(
            "http-cache", optionalValue: "KIND", "Cache responses as the server says, in memory; private or shared"),
        CommandOption("cache-dir", value: "FOLDER", "With --http-cache: store responses in FOLDER instead of memory"),
        CommandOption(
            "cache", value: "URL", "With --http-cache: store responses in Redis, redis[s]://HOST[:PORT][/DATABASE]"),
    ]
    static let names = ["http-cache", "cache-dir", "cache"]

    /// The size of the memory cache, if no folder is set.
    private static let memoryBytes = 256 << 20

    /// Sets it in the configuration, for requests without a cache of their own.
    static func apply(_ arguments: ParsedArguments, to configuration: inout NetworkConfiguration) throws(UsageError) {
        let location = try CacheLocation(arguments)
        guard arguments.has("http-cache") else {
            if location != nil { throw UsageError("--\(CacheLocation.name(arguments)) requires --http-cache") }
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

/// `USER:PASSWORD`. The password may contain colons.
struct Credentials: Sendable, Equatable {
    let user: String
    let password: String
}

extension Credentials {
    /// `nil` without a colon.
    init?(_ text: String) {
        guard let (user, password) = text.parted(at: ":") else { return nil }
        self.init(user: user, password: password)
    }
}

/// Parses status codes.
enum StatusRange {
    /// `200` or `200-299`; `nil` if it is invalid.
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

/// A schema from a file, in the vocabulary of JSON Schema.
enum SchemaFile {
    /// Mistakes are reported by file and line.
    static func schema(at path: String) throws(InputError) -> JSONSchema { try schema(of: JSONFile(at: path)) }

    /// The same for the content of a file.
    static func schema(of text: Data, path: String) throws(InputError) -> JSONSchema {
        try schema(of: JSONFile(path: path, text: text))
    }

    private static func schema(of file: JSONFile) throws(InputError) -> JSONSchema {
        try file.schema(try file.document())
    }
}

/// The query of a URL; forms have the same format.
enum URLQuery {
    /// In the given order, with repeated names, because both may matter to a server.
    static func encoded(_ pairs: [(name: String, value: String)]) -> String {
        pairs.map { "\(PercentEncoding.encoded($0.name))=\(PercentEncoding.encoded($0.value))" }.joined(separator: "&")
    }

    /// The URL with these arguments in its query, if there are any.
    static func appending(_ pairs: [(name: String, value: String)], to url: String) -> String {
        pairs.isEmpty ? url : appending(encoded(pairs), to: url)
    }

    /// Inserted before a fragment and after an existing query.
    static func appending(_ query: String, to url: String) -> String {
        // By bytes: each of these and a combining mark after it are one character.
        let bytes = url.utf8
        let fragment = bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
        let start = bytes[..<fragment]
        let isOpen = start.last.map { "?&".utf8.contains($0) } ?? false
        let separator = start.contains(UInt8(ascii: "?")) ? (isOpen ? "" : "&") : "?"
        let rest = String(decoding: bytes[fragment...], as: UTF8.self)
        return String(decoding: start, as: UTF8.self) + separator + query + rest
    }
}

/// A URL as typed.
enum CommandURL {
    /// With `http://` in front if it has no scheme, as in `localhost:8080/x`.
    static func complete(_ url: String) throws(UsageError) -> String {
        if url.isEmpty { throw UsageError("the URL is empty") }
        if url.utf8.starts(with: "//".utf8) { return "http:" + url }
        return hasScheme(url) ? url : "http://" + url
    }

    /// The last component of its path; `nil` if it is empty or a folder.
    static func fileName(of url: String) -> String? {
        // By bytes: a slash and a combining mark after it are one character.
        var path = url.utf8.prefix { !"?#".utf8.contains($0) }
        if hasScheme(url), let colon = path.firstIndex(of: UInt8(ascii: ":")) { path = path[colon...].dropFirst(3) }
        guard let slash = path.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        let name = String(decoding: path[path.index(after: slash)...], as: UTF8.self)
        return name.isEmpty || name == "." || name == ".." ? nil : name
    }

    /// Whether it begins with `http://` or `https://`, or with the scheme of a Unix socket.
    static func hasWebScheme(_ url: String) -> Bool {
        let start = String(decoding: url.utf8.prefix(13), as: UTF8.self).lowercased().utf8
        return ["http://", "https://", "http+unix://", "https+unix://"].contains { start.starts(with: $0.utf8) }
    }

    static func hasScheme(_ url: String) -> Bool {
        // By bytes: the last slash and a combining mark after it are one character.
        let scheme = url.utf8.prefix { byte in
            let character = Character(Unicode.Scalar(byte))
            return character.isASCII && (character.isLetter || character.isNumber || "+-.".contains(character))
        }
        return !scheme.isEmpty && url.utf8[scheme.endIndex...].starts(with: "://".utf8)
    }

    /// The place behind the first `://`; `nil` without one.
    static func schemeEnd(_ url: String) -> String.Index? { url.utf8.firstRange(of: "://".utf8)?.upperBound }
}

extension String {
    /// What is before and after the first of this ASCII character; `nil` without one. By bytes: it and a combining mark
    /// after it are one `Character`.
    func parted(at sign: Unicode.Scalar) -> (before: String, after: String)? {
        guard let place = utf8.firstIndex(of: UInt8(ascii: sign)) else { return nil }
        let after = utf8[utf8.index(after: place)...]
        return (String(decoding: utf8[..<place], as: UTF8.self), String(decoding: after, as: UTF8.self))
    }
}
