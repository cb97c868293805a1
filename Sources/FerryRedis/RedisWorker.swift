internal import Chiredis
internal import FerryCache
internal import Glibc

/// The work of a loop's thread: sends commands, receives replies, and ends commands that wait too long. Used only on
/// that thread.
final class RedisWorker {
    /// A command that was sent and has no reply yet.
    private struct Sent {
        /// `nil` after the command has ended; its reply is late.
        var finish: (@Sendable (RedisCommand.Outcome) -> Void)?
        var deadline: UInt64
        var time: UInt64
        var bytes = 0
        /// Whether it belongs to the login, where any reply but OK ends the connection.
        var isLogin = false
    }

    private let loop: RedisLoop
    private var configuration: RedisConfiguration { loop.configuration }
    private var looks = RedisLine<RedisLoop.Item>()
    private var changes = RedisLine<RedisLoop.Item>()
    private var connection: RedisConnection?
    private var isConnecting = false
    private var sent = RedisLine<Sent>()
    /// The time since which every reply has been late.
    private var lateSince: UInt64?
    /// Nothing has to be checked before this time.
    private var nextDeadline = UInt64.max
    private var closeTime: UInt64?
    /// Unconfirmed removals are not repeated before this time, except over a new connection.
    private var nextMakeUp: UInt64 = 0
    /// They were repeated for the last time, before the end.
    private var hasMadeUp = false
    private var subscription: RedisSubscription

    /// The maximum number of bytes sent ahead, so that a lookup does not wait behind all queued writes.
    private static let mostUnsent = 256 << 10
    private static let makeUpPause: UInt64 = 1_000_000_000

    init(_ loop: RedisLoop) {
        self.loop = loop
        subscription = RedisSubscription(loop)
    }

    func run() {
        blockSignals()
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

    /// Whether the loop has been closed, and all work is done or takes too long.
    private func isOver() -> Bool {
        let now = monotonicTime()
        let end = closeTime ?? now &+ configuration.writeTimeout.nanoseconds
        closeTime = end
        nextDeadline = min(nextDeadline, end)
        if now >= end { return true }
        // Nobody waits for a late reply.
        var isAwaited = false
        sent.forEach { if $0.finish != nil { isAwaited = true } }
        guard looks.isEmpty && changes.isEmpty && !isAwaited else { return false }
        if !owesRemovals { return true }
        // The connection that is being made repeats them.
        if hasMadeUp { return !isConnecting }
        guard let pauseEnd = loop.pauseEnd, pauseEnd <= now else { return true }
        // Nobody repeats removals after the end.
        (hasMadeUp, nextMakeUp) = (true, 0)
        return false
    }

    private var owesRemovals: Bool { loop.owed.hasLeft(nothingWaits: nothingWaits) }
    /// The time from which unconfirmed removals are repeated. A pause of the circuit delays them, but no command has to
    /// test Redis before: in an idle process there may be none for long.
    private var makeUpTime: UInt64? { owesRemovals ? loop.pauseEnd.map { max($0, nextMakeUp) } : nil }
    private var mayMakeUp: Bool { makeUpTime.map { $0 <= monotonicTime() } ?? false }
    /// Whether no change waits to be sent.
    private var nothingWaits: Bool { changes.isEmpty && !loop.hasNewChanges }

    // MARK: Connections

    private func connect() {
        // It is renewed even if no command needs a connection: an agent that finds everything in its memory must hear
        // of removals, too.
        if connection != nil || subscription.nextTime != nil { subscription.connect() }
        if connection != nil || isConnecting { return }
        if looks.isEmpty && changes.isEmpty && !mayMakeUp { return }
        isConnecting = true
        loop.connect(.commands)
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
                try makeUp(by: made)
            } catch {
                lost(error)
            }
        }
    }

    /// Repeats the removals that Redis has not confirmed, and notifies the other processes, which may have the entries
    /// in memory.
    private func makeUp(by connection: RedisConnection) throws(RedisFault) {
        guard let debt = loop.owed.takeLeft(nothingWaits: nothingWaits) else { return }
        let now = monotonicTime()
        nextMakeUp = now &+ Self.makeUpPause
        // They have no deadlines, and perhaps nothing else is sent that would notice a stall.
        nextDeadline = min(nextDeadline, now &+ stall)
        // First register all of them, so that none is forgotten if a command cannot be appended.
        for (name, number) in debt.names {
            sent.append(Sent(finish: { debt.remove(name, number, $0) }, deadline: .max, time: now))
        }
        if debt.isUntold { sent.append(Sent(finish: { debt.tell($0) }, deadline: .max, time: now)) }
        for (name, _) in debt.names { try connection.append(["UNLINK".bytes, name.bytes]) }
        if !debt.isUntold { return }
        try connection.append(["PUBLISH".bytes, configuration.channel.bytes, loop.removals.sender.bytes])
    }

    /// The connection has been lost or could not be established; the commands that wait for it end.
    private func lost(_ fault: RedisFault) {
        connection = nil
        lateSince = nil
        nextMakeUp = monotonicTime() &+ Self.makeUpPause
        // Redis may close an idle connection.
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
            if mayMakeUp { try makeUp(by: connection) }
            while let item = looks.popFirst() { try send(item, by: connection) }
            while connection.unsent < Self.mostUnsent, let item = changes.popFirst() { try send(item, by: connection) }
            // Now nothing waits, perhaps for a moment only.
            if mayMakeUp { try makeUp(by: connection) }
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
            let events = connection.waitsForOutput ? POLLIN | POLLOUT : POLLIN
            descriptors.append(pollfd(fd: connection.descriptor, events: Int16(events), revents: 0))
        }
        if let descriptor = subscription.descriptor {
            descriptors.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
        }
        let now = monotonicTime()
        var end = min(nextDeadline, subscription.nextTime ?? .max)
        if !isConnecting, let makeUpTime { end = min(end, makeUpTime) }
        // Rounded up, so that the time has passed when the thread is back.
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
                // A reply without a command.
                guard let next = sent.popFirst() else { throw RedisFault(.damaged) }
                // All replies have arrived.
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

    /// The time after which a connection is closed: if its oldest command has waited so long, or if no reply has
    /// arrived in time for so long. If Redis left out a reply, all replies would belong to other commands.
    private var stall: UInt64 { max(configuration.writeTimeout.nanoseconds, 1_000_000) }

    /// Ends commands that have waited too long.
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
    /// The first commands of every connection.
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
