internal import FerryCache

/// Hears from others what they have removed, on a connection of its own. Used on the thread of the loop only.
struct RedisSubscription {
    private let loop: RedisLoop
    private var connection: RedisConnection?
    private var isConnecting = false
    private var logins = 0
    /// It is not tried again before this.
    private var retryTime: UInt64 = 0

    private static let retryPause: UInt64 = 1_000_000_000

    init(_ loop: RedisLoop) { self.loop = loop }

    var descriptor: Int32? { connection?.descriptor }

    /// When it is to be tried again.
    var nextTime: UInt64? { connection == nil && !isConnecting && retryTime > 0 ? retryTime : nil }

    mutating func connect() {
        if connection != nil || isConnecting || monotonicTime() < retryTime { return }
        isConnecting = true
        loop.connect(.removals)
    }

    mutating func arrived(_ result: Result<RedisConnection, RedisFault>) {
        isConnecting = false
        do throws(RedisFault) {
            let made = try result.get()
            let login = loop.configuration.login
            for command in login { try made.append(command) }
            logins = login.count
            try made.append(["SUBSCRIBE".bytes, loop.configuration.channel.bytes])
            // Fits into the buffer of a new socket.
            try made.send()
            connection = made
        } catch {
            end()
        }
    }

    mutating func receive() {
        do throws(RedisFault) {
            var logins = logins
            try connection?.receive { reply throws(RedisFault) in
                if logins > 0 {
                    logins -= 1
                    if reply.kind != .status { throw RedisFault(.noPermission) }
                    return
                }
                guard reply.kind == .array, reply.elements.count == 3 else { throw RedisFault(.damaged) }
                // What was removed before the subscription was not heard of.
                if reply.elements[0].text == "message", reply.elements[2].text == loop.removals.sender { return }
                loop.removals.add()
            }
            self.logins = logins
        } catch {
            end()
        }
    }

    /// Nothing is heard any more.
    mutating func end() {
        connection = nil
        retryTime = monotonicTime() &+ Self.retryPause
    }
}

extension RedisConfiguration {
    var channel: String { prefix + "removed" }
}
