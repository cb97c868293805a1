internal import FoundationEssentials

/// Where a Redis server is, and how a cache in it is to be.
public struct RedisConfiguration: Sendable {
    /// Where a server listens.
    public enum Address: Sendable, Hashable {
        /// A host and its port.
        case host(String, port: Int)
        /// A Unix socket.
        case unixSocket(String)
    }

    /// Where the server listens.
    public var address: Address

    /// The number of the database (SELECT). The default is 0.
    public var database = 0

    /// The user to log in as (ACL). The default is `nil`: Redis's default user, where there is a ``password``.
    public var user: String?

    /// The password to log in with (AUTH). The default is `nil`: nobody logs in.
    public var password: String?

    /// What the names of all keys and of the channel begin with: processes with the same one share their entries. The
    /// default is `ferry:`.
    public var prefix = "ferry:"

    /// For the name of the host and the connection. The default is 500 ms. A request does not wait for it longer than
    /// ``timeout``.
    public var connectTimeout: Duration = .milliseconds(500)

    /// For a look into the cache, from the call on; after it the look is a miss. The default is 50 ms.
    public var timeout: Duration = .milliseconds(50)

    /// For what is written or removed. The default is a second.
    public var writeTimeout: Duration = .seconds(1)

    /// After which Redis removes an entry (PX), at most; it goes sooner where the request says how long it may be of
    /// use. The default is a day.
    public var timeToLive: Duration = .seconds(86_400)

    /// How long a process that fetches what is missing may keep the others from fetching it, too: they wait for it. The
    /// default is `nil`: nobody waits, and each fetches for itself.
    ///
    /// It ends when the response is stored, or is not going to be. With `timeToLive`, responses that are never stored
    /// are then fetched one after another: leave it where many are of that kind. With `http` a process remembers the
    /// URLs whose responses the server forbids to store, and waits for nobody there. A stale response is validated by
    /// each process.
    public var lease: Duration?

    /// Entries of at least so many bytes are compressed with zstd, where that makes them an eighth smaller. The default
    /// is 8 KiB; `nil` compresses none. Entries that others have compressed are read in any case.
    public var minCompressedBytes: Int? = 8 << 10

    /// Of one entry; larger ones are neither written nor taken from Redis. The default is 5 MiB.
    public var maxEntryBytes = 5 << 20

    /// Of what waits to be written; what does not fit is not written. The default is 16 MiB.
    public var maxQueuedBytes = 16 << 20

    /// After so many looks or connections in a row that failed, Redis is left alone for a ``pause``. The default is 3.
    public var maxFailures = 3

    /// How long Redis is left alone after failures: every look is a miss at once. Each further failure doubles it, up
    /// to ``longestPause``. The default is a second.
    public var pause: Duration = .seconds(1)

    /// The most that a ``pause`` grows to. The default is half a minute.
    public var longestPause: Duration = .seconds(30)

    /// A server at a host and a port, with the defaults.
    public init(host: String = "127.0.0.1", port: Int = 6379) { address = .host(host, port: port) }

    /// A server at a Unix socket, with the defaults.
    public init(unixSocket path: String) { address = .unixSocket(path) }

    /// A server by its URL: `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]` or
    /// `unix://[[USER]:PASSWORD@]/PATH[?db=DATABASE]`. Any other is refused; so is `rediss:`, as the library that
    /// carries this (hiredis 0.14 of Debian) has no TLS.
    public init(url: String) throws(RedisURLError) {
        guard let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased() else {
            throw RedisURLError("no URL of Redis")
        }
        switch scheme {
        case "redis":
            guard let host = parts.host, !host.isEmpty else { throw RedisURLError("no host") }
            let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
            let port = parts.port ?? 6379
            guard (1...65_535).contains(port) else { throw RedisURLError("no port: \(port)") }
            self.init(host: bare, port: port)
            let path = parts.path.drop { $0 == "/" }
            if !path.isEmpty { database = try Self.database(String(path)) }
            if parts.query != nil { throw RedisURLError("no query goes with redis:") }
        case "unix":
            guard parts.host?.isEmpty != false, parts.path.count > 1 else { throw RedisURLError("no path of a socket") }
            self.init(unixSocket: parts.path)
            for item in parts.queryItems ?? [] {
                guard item.name == "db", let text = item.value else { throw RedisURLError("only db goes with unix:") }
                database = try Self.database(text)
            }
        case "rediss": throw RedisURLError("TLS: hiredis of Debian has none; use a Unix socket or a tunnel")
        default: throw RedisURLError("redis: or unix: is wanted")
        }
        if let password = parts.password, !password.isEmpty {
            self.password = password
            user = parts.user.flatMap { $0.isEmpty ? nil : $0 }
        } else if parts.user?.isEmpty == false {
            throw RedisURLError("a user without a password")
        }
    }

    private static func database(_ text: String) throws(RedisURLError) -> Int {
        guard let number = Int(text), (0...1_000_000).contains(number) else {
            throw RedisURLError("a database is a number")
        }
        return number
    }
}

/// A URL that does not name a Redis server.
public struct RedisURLError: Error, CustomStringConvertible {
    /// What is wrong, without the URL: there may be a password in it.
    public let description: String

    init(_ description: String) { self.description = description }
}

extension RedisConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Where it is, without user and password.
    public var description: String {
        switch address {
        case .host(let host, let port): "RedisConfiguration(\(host):\(port)/\(database))"
        case .unixSocket(let path): "RedisConfiguration(\(path)/\(database))"
        }
    }

    /// Likewise.
    public var debugDescription: String { description }

    /// Where it is only, so that `dump` shows no password.
    public var customMirror: Mirror { Mirror(self, children: ["address": address, "database": database]) }
}
