internal import FoundationEssentials

/// The configuration of a cache in a Redis server.
public struct RedisConfiguration: Sendable {
    /// The address of a server.
    public enum Address: Sendable, Hashable {
        /// A host and its port.
        case host(String, port: Int)
        /// A Unix socket.
        case unixSocket(String)
    }

    /// The address of the server.
    public var address: Address

    /// The number of the database (SELECT). The default is 0.
    public var database = 0

    /// The user for the login (ACL). The default is `nil`: Redis's default user, if there is a ``password``.
    public var user: String?

    /// The password for the login (AUTH). The default is `nil`: no login.
    public var password: String?

    /// The TLS settings. The default is `nil`: no TLS. A connection to a Unix socket never uses it.
    public var tls: TLS?

    /// The prefix of the names of all keys and of the channel. Processes with the same prefix share their entries. The
    /// default is `ferry:`.
    public var prefix = "ferry:"

    /// The timeout for connect, after the name lookup. With TLS the handshake must end within the same time, counted
    /// from the start of the name lookup. The default is 500 ms. A request waits for at most ``timeout``.
    public var connectTimeout: Duration = .milliseconds(500)

    /// The timeout of a lookup, from the call; afterwards it is a miss. The default is 50 ms.
    public var timeout: Duration = .milliseconds(50)

    /// The timeout of a write or a removal. The default is a second.
    public var writeTimeout: Duration = .seconds(1)

    /// The maximum lifetime of an entry in Redis (PX). It is shorter if the request limits how long the response is
    /// useful. The default is a day.
    public var timeToLive: Duration = .seconds(86_400)

    /// The maximum time for which a process that fetches a missing entry keeps others from fetching it, too. They wait
    /// for it. The default is `nil`: nobody waits, and each process fetches itself.
    ///
    /// A lease ends when the response is stored, or will not be stored. With `timeToLive`, responses that are never
    /// stored are fetched one after another, so do not use a lease if there are many of them. With `http`, a process
    /// remembers the URLs whose responses must not be stored, and does not wait for others there. Each process
    /// validates stale responses itself.
    public var lease: Duration?

    /// The minimum size of entries that are compressed with zstd, if that makes them an eighth smaller. The default is
    /// 8 KiB; `nil` compresses none. Entries that other processes have compressed are read in any case.
    public var minCompressedBytes: Int? = 8 << 10

    /// The maximum size of an entry in bytes; larger ones are neither written nor read. The default is 5 MiB.
    ///
    /// All processes with the same ``prefix`` should have the same limit. One with a smaller limit does not find larger
    /// entries, and leaves them for the others; but when it has fetched a response that is too large for it, it removes
    /// the older entry of the others, because that must not be found in place of the newer response.
    public var maxEntryBytes = 5 << 20

    /// Redis has no larger values.
    var mostEntryBytes: Int { min(max(maxEntryBytes, 0), 512 << 20) }

    /// The maximum size of the write queue in bytes; entries that do not fit are not written. The default is 16 MiB.
    public var maxQueuedBytes = 16 << 20

    /// The number of consecutive failed lookups or connects after which Redis is not used for a ``pause``. The default
    /// is 3.
    public var maxFailures = 3

    /// How long Redis is not used after failures: every lookup is a miss at once. Each further failure doubles it, up
    /// to ``longestPause``. The default is a second.
    public var pause: Duration = .seconds(1)

    /// The maximum ``pause``. The default is half a minute.
    public var longestPause: Duration = .seconds(30)

    /// Creates a configuration with the defaults for a server at a host and port.
    public init(host: String = "127.0.0.1", port: Int = 6379) { address = .host(host, port: port) }

    /// Creates a configuration with the defaults for a server at a Unix socket.
    public init(unixSocket path: String) { address = .unixSocket(path) }

    /// Creates a configuration from a URL: `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, the same with `rediss:`
    /// for TLS, or `unix://[[USER]:PASSWORD@]/PATH[?db=DATABASE]`. Any other URL is refused.
    ///
    /// A `rediss:` URL may have a query with the files of ``TLS``: `cacert=FILE` for the authorities, `cert=FILE` and
    /// `key=FILE` for the client certificate and its key.
    public init(url: String) throws(RedisURLError) {
        guard let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(), parts.fragment == nil
        else { throw RedisURLError("invalid Redis URL") }
        switch scheme {
        case "redis", "rediss":
            guard let host = parts.host, !host.isEmpty else { throw RedisURLError("the host is missing") }
            let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
            let port = parts.port ?? 6379
            guard (1...65_535).contains(port) else { throw RedisURLError("invalid port \(port)") }
            self.init(host: bare, port: port)
            let path = parts.path.drop { $0 == "/" }
            if !path.isEmpty { database = try Self.database(String(path)) }
            if scheme == "rediss" {
                tls = try TLS(parts.queryItems ?? [])
            } else if parts.query != nil {
                throw RedisURLError("a redis: URL cannot have a query")
            }
        case "unix":
            guard parts.host?.isEmpty != false, parts.path.count > 1 else { throw RedisURLError("missing socket path") }
            self.init(unixSocket: parts.path)
            for item in parts.queryItems ?? [] {
                guard item.name == "db", let text = item.value else { throw RedisURLError("only db is allowed") }
                database = try Self.database(text)
            }
        default: throw RedisURLError("the scheme must be redis, rediss or unix")
        }
        if let password = parts.password, !password.isEmpty {
            self.password = password
            user = parts.user.flatMap { $0.isEmpty ? nil : $0 }
        } else if parts.user?.isEmpty == false {
            throw RedisURLError("the password of the user is missing")
        }
    }

    private static func database(_ text: String) throws(RedisURLError) -> Int {
        guard let number = Int(text), (0...1_000_000).contains(number) else {
            throw RedisURLError("the database must be a number")
        }
        return number
    }
}

extension RedisConfiguration {
    /// The TLS settings of the connections to Redis: TLS 1.2 or newer (RFC 8446, RFC 5246). The files are read for each
    /// connection. The defaults verify the server's certificate with the authorities of the system.
    public struct TLS: Sendable, Hashable {
        /// What is verified of the server's certificate.
        public enum Verification: Sendable, Hashable {
            /// The chain up to an authority, and the name.
            case full
            /// Nothing. For tests only: anyone on the network can read the password and change the responses.
            case none
        }

        /// A PEM file of authorities that replaces the system's. The default is `nil`, the system's.
        public var authorityFile: String?

        /// A PEM file with the client certificate, followed by its chain. The default is `nil`, none. Redis demands one
        /// unless its `tls-auth-clients` says otherwise.
        public var certificateFile: String?

        /// A PEM file with the private key, without encryption. The default is `nil`: it is in ``certificateFile``.
        public var keyFile: String?

        /// The name that the server's certificate must have, and that is sent in the handshake. The default is `nil`,
        /// the host.
        public var serverName: String?

        /// What is verified. The default is ``Verification/full``.
        public var verification = Verification.full

        /// Creates TLS settings with the defaults.
        public init() {}

        /// The settings in a URL.
        init(_ items: [URLQueryItem]) throws(RedisURLError) {
            for item in items {
                // The error names no item: it may be a part of a password with a question mark.
                let file = item.value ?? ""
                switch item.name {
                case "cacert" where authorityFile == nil && !file.isEmpty: authorityFile = file
                case "cert" where certificateFile == nil && !file.isEmpty: certificateFile = file
                case "key" where keyFile == nil && !file.isEmpty: keyFile = file
                default: throw RedisURLError("only cacert, cert and key with a file are allowed, each once")
                }
            }
            if keyFile != nil && certificateFile == nil { throw RedisURLError("key needs cert") }
        }
    }
}

/// The error for a URL that does not name a Redis server.
public struct RedisURLError: Error, CustomStringConvertible {
    /// What is wrong, without the URL, which may contain a password.
    public let description: String

    init(_ description: String) { self.description = description }
}

extension RedisConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The address, without user and password.
    public var description: String {
        switch address {
        case .host(let host, let port): "RedisConfiguration(\(host):\(port)/\(database))"
        case .unixSocket(let path): "RedisConfiguration(\(path)/\(database))"
        }
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Only the address and the database, so that `dump` shows no password.
    public var customMirror: Mirror { Mirror(self, children: ["address": address, "database": database]) }
}
