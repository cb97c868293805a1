internal import Chiredis
internal import FerryCache
internal import Glibc

/// What the thread of a loop does: sends commands, takes replies, and answers those that wait too long. Used on that
/// thread only.
final class RedisWorker {
    /// A command that was sent, and whose reply is to come.
    private struct Sent {
        /// `nil` once it was answered: its reply is late.
        var finish: (@Sendable (RedisCommand.Outcome) -> Void)?
        var deadline: UInt64
        var time: UInt64
        var bytes = 0
        /// Of the login: anything but OK ends the connection.
        var isLogin = false
    }

    private let loop: RedisLoop
    private var configuration: RedisConfiguration { loop.configuration }
    private var looks = RedisLine<RedisLoop.Item>()
    private var changes = RedisLine<RedisLoop.Item>()
    private var connection: RedisConnection?
    private var isConnecting = false
    private var sent = RedisLine<Sent>()
    /// Since when every reply has come too late.
    private var lateSince: UInt64?
    /// Nothing has to be looked after before this.
    private var nextDeadline = UInt64.max
    private var closeTime: UInt64?
    private var subscription: RedisSubscription

    /// More is not sent ahead, so that a look does not wait behind all that is to be written.
    private static let mostUnsent = 256 << 10

    init(_ loop: RedisLoop) {
        self.loop = loop
        subscription = RedisSubscription(loop)
    }

    func run() {
        // hiredis writes to a socket that may be closed.
        var signals = sigset_t()
        sigfillset(&signals)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        while true {
            let taken = loop.take()
            for item in taken.looks { add(item, to: \.looks) }
            for item in taken.changes { add(item, to: \.changes) }
            for arrival in taken.arrivals { arrived(arrival) }
            expire()
            if taken.isClosed && isOver() { break }
            connect()
            send()
            wait()
        }
        connection = nil
        subscription.end()
        refuseAll(.refused)
        loop.ended()
    }

    private func add(_ item: RedisLoop.Item, to line: ReferenceWritableKeyPath<RedisWorker, RedisLine<RedisLoop.Item>>)
    {
        nextDeadline = min(nextDeadline, item.deadline)
        self[keyPath: line].append(item)
    }

    /// Closed, and nothing is left to be done, or it takes too long.
    private func isOver() -> Bool {
        let now = monotonicTime()
        let end = closeTime ?? now &+ configuration.writeTimeout.nanoseconds
        closeTime = end
        nextDeadline = min(nextDeadline, end)
        if now >= end { return true }
        // A reply that is late is nobody's.
        var isAwaited = false
        sent.forEach { if $0.finish != nil { isAwaited = true } }
        return looks.isEmpty && changes.isEmpty && !isAwaited
    }

    // MARK: Connections

    private func connect() {
        if connection == nil {
            if isConnecting || (looks.isEmpty && changes.isEmpty) { return }
            isConnecting = true
            loop.connect(.commands)
        } else {
            subscription.connect()
        }
    }

    private func arrived(_ arrival: RedisLoop.Arrival) {
        if arrival.role == .removals { return subscription.arrived(arrival.result) }
        isConnecting = false
        switch arrival.result {
        case .failure(let fault): lost(fault)
        case .success(let made):
            connection = made
            let now = monotonicTime()
            do throws(RedisFault) {
                for command in configuration.login {
                    try made.append(command)
                    sent.append(Sent(finish: nil, deadline: .max, time: now, isLogin: true))
                }
                for (name, number) in loop.owed.all { try pay(name, number, by: made) }
            } catch {
                lost(error)
            }
        }
    }

    private func pay(_ name: String, _ number: UInt64, by connection: RedisConnection) throws(RedisFault) {
        try connection.append(["UNLINK".bytes, name.bytes])
        let owed = loop.owed
        sent.append(
            Sent(
                finish: { outcome in
                    if case .reply(let reply) = outcome, reply.kind == .integer { owed.pay(name, number) }
                },
                deadline: .max, time: monotonicTime()))
    }

    /// The connection is gone, or could not be made: nobody waits for the next.
    private func lost(_ fault: RedisFault) {
        connection = nil
        lateSince = nil
        // Redis may close a connection that has been idle.
        if !(sent.isEmpty && looks.isEmpty && changes.isEmpty) { loop.noted(success: false) }
        while let next = sent.popFirst() { finish(next, .failed(fault.kind)) }
        refuseAll(.failed(fault.kind))
    }

    private func refuseAll(_ outcome: RedisCommand.Outcome) {
        while let next = sent.popFirst() { finish(next, outcome) }
        while let item = looks.popFirst() ?? changes.popFirst() { finish(item.command, outcome) }
    }

    private func finish(_ command: RedisCommand, _ outcome: RedisCommand.Outcome) {
        if command.bytes > 0 { loop.finished(bytes: command.bytes) }
        command.finish(outcome)
    }

    private func finish(_ sent: Sent, _ outcome: RedisCommand.Outcome) {
        if sent.bytes > 0 { loop.finished(bytes: sent.bytes) }
        sent.finish?(outcome)
    }

    // MARK: Sending and receiving

    private func send() {
        guard let connection else { return }
        do throws(RedisFault) {
            while let item = looks.popFirst() { try send(item, by: connection) }
            while connection.unsent < Self.mostUnsent, let item = changes.popFirst() { try send(item, by: connection) }
            if connection.unsent > 0 { try connection.send() }
        } catch {
            lost(error)
        }
    }

    private func send(_ item: RedisLoop.Item, by connection: RedisConnection) throws(RedisFault) {
        let command = item.command
        let now = monotonicTime()
        sent.append(Sent(finish: command.finish, deadline: item.deadline, time: now, bytes: command.bytes))
        nextDeadline = min(nextDeadline, now &+ stall)
        try connection.append(command.arguments + (command.last.map { [$0()] } ?? []))
    }

    private func wait() {
        var descriptors = [pollfd(fd: loop.event, events: Int16(POLLIN), revents: 0)]
        if let connection {
            let events = connection.unsent > 0 ? POLLIN | POLLOUT : POLLIN
            descriptors.append(pollfd(fd: connection.descriptor, events: Int16(events), revents: 0))
        }
        if let descriptor = subscription.descriptor {
            descriptors.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
        }
        let now = monotonicTime()
        let end = min(nextDeadline, connection == nil ? .max : subscription.nextTime ?? .max)
        // Rounded up, so that it is over when the thread is back.
        let time = end == .max ? -1 : Int32(clamping: end > now ? (end - now + 999_999) / 1_000_000 : 0)
        guard poll(&descriptors, nfds_t(descriptors.count), time) > 0 else { return }
        if descriptors[0].revents != 0 {
            var count: eventfd_t = 0
            _ = eventfd_read(loop.event, &count)
        }
        for descriptor in descriptors.dropFirst() where descriptor.revents & ~Int16(POLLOUT) != 0 {
            if descriptor.fd == connection?.descriptor { receive() } else { subscription.receive() }
        }
    }

    private func receive() {
        do throws(RedisFault) {
            try connection?.receive { reply throws(RedisFault) in
                // A reply to nothing.
                guard let next = sent.popFirst() else { throw RedisFault(.damaged) }
                // All that were asked for are here: none is missing.
                if sent.isEmpty { lateSince = nil }
                if next.isLogin {
                    if let fault = RedisFault(reply) { throw fault }
                    if reply.kind != .status { throw RedisFault(.damaged) }
                    return
                }
                if next.finish != nil {
                    loop.noted(success: true)
                    lateSince = nil
                }
                finish(next, .reply(reply))
            }
        } catch {
            lost(error)
        }
    }

    // MARK: Times

    /// A connection whose oldest command waits for so long is given up, and one on which no reply has come in time for
    /// so long: where a reply was left out, all that come are those of later commands.
    private var stall: UInt64 { max(configuration.writeTimeout.nanoseconds, 1_000_000) }

    /// Answers those that wait too long.
    private func expire() {
        let now = monotonicTime()
        if now < nextDeadline { return }
        if let oldest = [sent.first?.time, lateSince].compactMap({ $0 }).min(), oldest &+ stall <= now {
            lost(RedisFault(.timeout))
        }
        var next = closeTime ?? .max
        sent.forEach { one in
            guard one.finish != nil else { return }
            if one.deadline > now {
                next = min(next, one.deadline)
                return
            }
            loop.noted(success: false)
            finish(one, .failed(.timeout))
            (one.finish, one.bytes) = (nil, 0)
            lateSince = lateSince ?? now
        }
        if let lateSince { next = min(next, lateSince &+ stall) }
        if let first = sent.first { next = min(next, first.time &+ stall) }
        for line in [\RedisWorker.looks, \RedisWorker.changes] {
            var kept = RedisLine<RedisLoop.Item>()
            while let item = self[keyPath: line].popFirst() {
                if item.deadline > now {
                    next = min(next, item.deadline)
                    kept.append(item)
                } else {
                    loop.noted(success: false)
                    finish(item.command, .failed(.timeout))
                }
            }
            self[keyPath: line] = kept
        }
        nextDeadline = next
    }
}

extension RedisConfiguration {
    /// What every connection begins with.
    var login: [[[UInt8]]] {
        var commands: [[[UInt8]]] = []
        if let password {
            commands.append(["AUTH".bytes] + (user.map { [$0.bytes] } ?? []) + [password.bytes])
        }
        if database != 0 { commands.append(["SELECT".bytes, "\(database)".bytes]) }
        return commands
    }
}

extension String {
    var bytes: [UInt8] { Array(utf8) }
}
