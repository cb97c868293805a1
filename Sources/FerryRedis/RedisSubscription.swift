internal import FerryCache

/// Receives the removals by other processes, on its own connection. Used only on the loop's thread.
struct RedisSubscription {
    private let loop: RedisLoop
    private var connection: RedisConnection?
    private var isConnecting = false
    private var logins = 0
    /// The earliest time of the next attempt.
    private var retryTime: UInt64 = 0

    private static let retryPause: UInt64 = 1_000_000_000

    init(_ loop: RedisLoop) { self.loop = loop }

    var descriptor: Int32? { connection?.descriptor }

    /// The time of the next attempt, if there is one.
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
            // It fits into the buffer of a new socket.
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
                // Removals from before the subscription were not received.
                let isMessage = reply.elements[0].text == "message"
                let words = isMessage ? reply.elements[2].text.split(separator: " ", maxSplits: 1) : []
                if let sender = words.first, sender == loop.removals.sender { return }
                loop.removals.add(words.count > 1 ? String(words[1]) : nil, isMessage: isMessage)
            }
            self.logins = logins
        } catch {
            end()
        }
    }

    /// Closes the connection; no more messages are received.
    mutating func end() {
        connection = nil
        retryTime = monotonicTime() &+ Self.retryPause
    }
}

extension RedisConfiguration {
    var channel: String { prefix + "removed" }
}
