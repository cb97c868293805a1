internal import FerryCache
import FerrySynchronization
internal import Glibc

/// A client that sends one command at a time to Redis and blocks until the reply has arrived.
///
/// It connects with the first command, and again after a fault. A command takes at most the sum of
/// ``RedisConfiguration/connectTimeout`` and ``RedisConfiguration/timeout``. A reply has at most
/// ``RedisConfiguration/maxEntryBytes``. Commands of several threads run one after another.
package final class RedisClient: Sendable {
    /// A reply of Redis.
    package indirect enum Reply: Sendable, Equatable {
        case null
        case status(String)
        case integer(Int64)
        case bytes([UInt8])
        case array([Reply])
    }

    /// The error of a command.
    package struct Fault: Error, CustomStringConvertible, Equatable {
        /// The message, without the password.
        package let description: String
        /// Whether Redis replied with this error. Otherwise there is no connection, or no valid reply in time.
        package var isReply = false
    }

    private let configuration: RedisConfiguration
    private let connection = Mutex<RedisConnection?>(nil)

    /// Creates a client of a server. It does not connect yet.
    package init(_ configuration: RedisConfiguration) { self.configuration = configuration }

    /// Sends a command and waits for its reply. Blocks the calling thread. Throws if Redis replies with an error.
    package func perform(_ arguments: [[UInt8]]) throws(Fault) -> Reply {
        let result = connection.withLock { connection in
            Result { () throws(Fault) in try perform(arguments, over: &connection) }
        }
        return try result.get()
    }

    private func perform(_ arguments: [[UInt8]], over connection: inout RedisConnection?) throws(Fault) -> Reply {
        let reply: RedisReply
        do throws(RedisFault) {
            if connection == nil { connection = try connect() }
            guard let connection else { throw RedisFault(.other) }
            reply = try exchange(arguments, over: connection)
        } catch {
            // A late reply would be taken for that of the next command.
            connection = nil
            throw Fault(description: text(of: error))
        }
        if reply.kind == .error { throw Fault(description: "Redis replied: \(reply.text.prefix(200))", isReply: true) }
        return Reply(reply)
    }

    private func connect() throws(RedisFault) -> RedisConnection {
        let made = try RedisConnection(configuration)
        for command in configuration.login {
            let reply = try exchange(command, over: made)
            if reply.kind == .error { throw RedisFault(reply) ?? RedisFault(.other) }
        }
        return made
    }

    private func exchange(_ arguments: [[UInt8]], over connection: RedisConnection) throws(RedisFault) -> RedisReply {
        let end = monotonicTime() &+ configuration.timeout.nanoseconds
        try connection.append(arguments)
        var replies: [RedisReply] = []
        while replies.isEmpty {
            if connection.unsent > 0 { try withoutPipeSignal(connection.send) }
            let now = monotonicTime()
            if now >= end { throw RedisFault(.timeout) }
            let events = connection.waitsForOutput ? POLLIN | POLLOUT : POLLIN
            var waited = pollfd(fd: connection.descriptor, events: Int16(events), revents: 0)
            let ready = poll(&waited, 1, Int32(clamping: (end - now + 999_999) / 1_000_000))
            if ready < 0 && errno != EINTR { throw RedisFault(.io) }
            if ready > 0, waited.revents & ~Int16(POLLOUT) != 0 {
                // OpenSSL may send an alert.
                try withoutPipeSignal { () throws(RedisFault) in try connection.receive { replies.append($0) } }
            }
        }
        guard replies.count == 1 else { throw RedisFault(.damaged) }
        return replies[0]
    }

    private func text(of fault: RedisFault) -> String {
        let place =
            switch configuration.address {
            case .host(let host, let port): "\(host):\(port)"
            case .unixSocket(let path): path
            }
        switch fault.kind {
        case .timeout: return "Redis at \(place) did not reply in time"
        case .noPermission: return "Redis at \(place) refused the login"
        case .damaged: return "Redis at \(place) sent a reply that is invalid or too large"
        case .busy: return "Redis at \(place) is busy"
        case .tls: return "no TLS connection to Redis at \(place): \(fault.reason)"
        default: return "no connection to Redis at \(place)"
        }
    }
}

extension RedisClient.Reply {
    fileprivate init(_ reply: RedisReply) {
        switch reply.kind {
        case .null: self = .null
        case .status, .error: self = .status(reply.text)
        case .integer: self = .integer(reply.integer)
        case .bytes: self = .bytes(reply.bytes)
        case .array: self = .array(reply.elements.map(Self.init))
        }
    }
}
