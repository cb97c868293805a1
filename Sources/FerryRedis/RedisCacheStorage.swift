public import FerryCache
import FerrySynchronization

/// Stores the entries of a cache in a Redis server, so that several processes and machines share them.
///
///     configuration.cache = CacheConfiguration { RedisCacheStorage(RedisConfiguration(host: "cache.internal")) }
///
/// The agent keeps frequently used entries in its memory (`CacheConfiguration.memoryBytes`), and looks up the others in
/// Redis. One thread carries all commands over one pipelined connection; another connection receives the removals of
/// other processes. Nothing is connected before the first lookup.
///
/// If Redis is down, slow, full or returns wrong data, lookups are misses and no request fails. A lookup takes at most
/// ``RedisConfiguration/timeout``. After some failures Redis is not used for a ``RedisConfiguration/pause``. A value is
/// used only if its digest matches its content and its key. `AgentCache.statistics` counts the misses, the failed
/// writes and the errors: `io` (no connection), `timeout`, `noPermission` (the login), `noSpace` (Redis's `maxmemory`),
/// `busy` (Redis is loading), `damaged` (an invalid reply) and `other`.
///
/// The names of the keys are digests; the values hold what a directory would hold: header fields and bodies, without
/// the credentials of requests. Redis needs no more than `GETRANGE`, `PSETEX`, `UNLINK`, `SCAN`, `PUBLISH` and
/// `SUBSCRIBE`; `AUTH` for a login, `SELECT` for another database than 0, and `SET`, `GET` and `EVAL` for a
/// ``RedisConfiguration/lease``.
/// Redis's `maxmemory-policy` decides which entries are evicted when its memory is full.
public final class RedisCacheStorage: CacheStorage {
    private let loop: RedisLoop
    private let counter: CacheCounter
    private var configuration: RedisConfiguration { loop.configuration }

    /// Counts for all closures that outlive a call.
    private final class CacheCounter: Sendable {
        let value = Mutex(CacheCounts())

        func count(_ change: (inout CacheCounts) -> Void) { value.withLock { change(&$0) } }
        func count(_ kind: CacheFaultKind) { count { $0.faults[kind, default: 0] += 1 } }
    }

    /// Creates a storage in this server. It connects with the first lookup.
    public init(_ configuration: RedisConfiguration) {
        loop = RedisLoop(configuration)
        counter = CacheCounter()
    }

    deinit { loop.close {} }

    /// The Redis key of an entry. The number is that of the record's format, so records in another format are not
    /// found.
    private func name(_ key: CacheKey) -> String { configuration.prefix + "2:" + key.name }

    // MARK: Leases

    /// The ``RedisConfiguration/lease``.
    public var leaseTime: Duration? { configuration.lease }

    /// Acquires a lease with a key of its own, which expires. If Redis does not reply, every process fetches.
    public func lease(_ key: CacheKey, of holder: UInt64, _ answer: @escaping @Sendable (Bool) -> Void) {
        let time = (configuration.lease ?? .zero).milliseconds
        loop.submit(
            RedisCommand(
                arguments: [
                    "SET".bytes, leaseName(key).bytes, leaseToken(holder).bytes, "NX".bytes, "PX".bytes,
                    "\(time)".bytes,
                ], line: .look, patience: configuration.timeout.nanoseconds,
                finish: { [counter] outcome in
                    if case .reply(let reply) = outcome {
                        if let fault = RedisFault(reply) { counter.count(fault.kind) }
                        // Another run has the lease.
                        return answer(reply.kind != .null)
                    }
                    if let kind = outcome.fault { counter.count(kind) }
                    answer(true)
                }))
    }

    /// Ends a lease, if it belongs to this holder and has not expired.
    public func endLease(_ key: CacheKey, of holder: UInt64) {
        loop.submit(
            RedisCommand(
                arguments: [
                    "EVAL".bytes, Self.ending.bytes, "1".bytes, leaseName(key).bytes, leaseToken(holder).bytes,
                ], line: .change, patience: configuration.writeTimeout.nanoseconds, finish: { _ in }))
    }

    private func leaseName(_ key: CacheKey) -> String { configuration.prefix + "lease:" + key.name }

    /// The value of a lease's key. It distinguishes a lease from a later one of the same storage.
    private func leaseToken(_ holder: UInt64) -> String { loop.removals.sender + ":" + String(holder) }

    private static let ending =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('UNLINK', KEYS[1]) end return 0"

    // MARK: Entries

    /// Looks an entry up. `answer` is called on the thread of the storage, or at once if Redis is not used.
    public func read(_ key: CacheKey, _ answer: @escaping @Sendable (CacheFinding) -> Void) {
        let name = name(key)
        if loop.owed.isRemoved(name) { return answer(.missing(.notFound)) }
        let most = configuration.mostEntryBytes
        loop.submit(
            RedisCommand(
                // A byte more than this process reads. A whole larger value, of a process with another limit, would end
                // the connection.
                arguments: ["GETRANGE".bytes, name.bytes, "0".bytes, "\(most)".bytes], line: .look,
                patience: configuration.timeout.nanoseconds,
                finish: { [counter, loop] outcome in
                    guard case .reply(let reply) = outcome else {
                        if case .failed(let kind) = outcome { counter.count(kind) }
                        return answer(.missing(.unavailable))
                    }
                    switch reply.kind {
                    case .null: answer(.missing(.notFound))
                    // The reply if there is no such key.
                    case .bytes where reply.bytes.isEmpty: answer(.missing(.notFound))
                    case .bytes:
                        if let record = RedisValue.record(reply.bytes, most: most),
                            let entry = CacheEntry(record: record, for: key)
                        {
                            // It may have been removed during the lookup.
                            return answer(loop.owed.number(name) != 0 ? .missing(.notFound) : .found(entry))
                        }
                        // Others may have a larger limit: for them it is an entry.
                        if RedisValue.isTooLarge(reply.bytes, most: most) { return answer(.missing(.notFound)) }
                        counter.count { $0.corrupt += 1 }
                        loop.unlink(name) { _ in }
                        answer(.missing(.corrupt))
                    case .error where reply.errorWord == "WRONGTYPE":
                        // The record is not one of Ferry's.
                        counter.count { $0.corrupt += 1 }
                        answer(.missing(.corrupt))
                    case .status, .error, .integer, .array:
                        counter.count(RedisFault(reply)?.kind ?? .damaged)
                        answer(.missing(.unavailable))
                    }
                }))
    }

    /// Stores an entry. `done` is called on the thread of the storage, or at once if the entry is not accepted. Then an
    /// older entry is removed, because it must not be found in its place.
    public func write(_ entry: CacheEntry, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) {
        let name = name(key)
        if entry.count > configuration.mostEntryBytes {
            counter.count { $0.refused += 1 }
            loop.outdate(name)
            done?(false)
            return
        }
        let owed = loop.owed.number(name)
        let time = min(entry.usefulTime ?? configuration.timeToLive, configuration.timeToLive).milliseconds
        loop.submit(
            RedisCommand(
                // Sealed and compressed when it is sent: the caller has other things to do.
                arguments: ["PSETEX".bytes, name.bytes, "\(time)".bytes],
                last: { [least = configuration.minCompressedBytes] in
                    RedisValue.of(entry.record(for: key), from: least)
                }, line: .change, patience: configuration.writeTimeout.nanoseconds, bytes: max(entry.count, 1),
                finish: { [counter, loop] outcome in
                    switch outcome {
                    case .reply(let reply) where reply.kind == .status:
                        loop.owed.pay(name, owed)
                        counter.count { $0.written += 1 }
                        done?(true)
                        return
                    case .reply(let reply):
                        let kind = RedisFault(reply)?.kind ?? .damaged
                        counter.count {
                            $0.failed += 1
                            $0.faults[kind, default: 0] += 1
                        }
                    case .failed(let kind):
                        counter.count {
                            $0.failed += 1
                            $0.faults[kind, default: 0] += 1
                        }
                    case .refused: counter.count { $0.failed += 1 }
                    case .full: counter.count { $0.dropped += 1 }
                    }
                    loop.outdate(name, after: outcome)
                    done?(false)
                }))
    }

    /// Removes an entry, and notifies the other processes. If Redis cannot be reached, this storage no longer finds the
    /// entry, and removes it when Redis is available again.
    public func remove(_ key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) {
        let (name, keyName) = (name(key), key.name)
        // Before Redis knows, nobody may find it.
        let owed = loop.owed.add(name)
        loop.unlink(name) { [loop, counter] outcome in
            guard case .reply(let reply) = outcome, reply.kind == .integer else {
                if let kind = outcome.fault { counter.count(kind) }
                loop.leave(name, owed)
                done?(false)
                return
            }
            loop.publishRemoval(of: keyName) { outcome in
                if let kind = outcome.fault { counter.count(kind) }
                if case .reply = outcome { loop.owed.pay(name, owed) } else { loop.leave(name, owed) }
                done?(outcome.isCount)
            }
        }
    }

    /// Removes all entries with the prefix, in small steps that take at most a minute together, and notifies the other
    /// processes. `done` gets `false` if the minute was not enough, or Redis failed.
    public func removeAll(_ done: (@Sendable (Bool) -> Void)?) {
        let scan = RedisScan(loop, removes: true, patience: .seconds(60)) { [loop, counter] result in
            switch result {
            case .success:
                loop.publishRemoval { outcome in
                    if let kind = outcome.fault { counter.count(kind) }
                    if case .reply = outcome {} else { loop.leaveUntold() }
                    done?(outcome.isCount)
                }
            case .failure(let fault):
                counter.count(fault.kind)
                done?(false)
            }
        }
        scan.start()
    }

    /// Calls `forget` with the name of each entry that another process has removed since the last call, and with `nil`
    /// if others have removed all, or may have removed some while there was no connection.
    public func hearRemovals(_ forget: (_ name: String?) -> Void) { loop.removals.hear(forget) }

    /// The number of messages of other processes about removals of all entries, and of new subscriptions, before which
    /// messages may have been missed.
    public var removalsHeard: UInt64 { loop.removals.messages }

    /// Counts the entries with the prefix, for at most a second. Their size in bytes is unknown: 0.
    public func measure(_ answer: @escaping @Sendable (CacheSize) -> Void) {
        let scan = RedisScan(loop, removes: false, patience: .seconds(1)) { result in
            answer(CacheSize(entries: (try? result.get()) ?? 0))
        }
        scan.start()
    }

    /// What has happened since the storage was created. `CacheCounts.isDisabled` means that Redis is not used after
    /// failures.
    public var counts: CacheCounts {
        var counts = counter.value.withLock { $0 }
        counts.queuedBytes = loop.queuedBytes
        counts.isDisabled = loop.isPaused
        return counts
    }

    /// Writes what is queued, repeats unconfirmed removals once, for at most ``RedisConfiguration/writeTimeout``, and
    /// ends the connections and the thread.
    public func close(_ done: @escaping @Sendable () -> Void) { loop.close(done) }
}

extension RedisLoop {
    func unlink(_ name: String, _ finish: @escaping @Sendable (RedisCommand.Outcome) -> Void) {
        submit(
            RedisCommand(
                arguments: ["UNLINK".bytes, name.bytes], line: .change,
                patience: configuration.writeTimeout.nanoseconds, finish: finish))
    }

    /// Removes an entry whose replacement was not stored, without the other processes: they keep what they have in
    /// memory, as after any replacement. If Redis does not take commands at the moment, it is removed later.
    func outdate(_ name: String, after outcome: RedisCommand.Outcome? = nil) {
        let owed = owed.add(name, isOutdated: true)
        switch outcome {
        case .failed, .refused, .full: return leave(name, owed, isUntold: false)
        case .reply, nil: break
        }
        unlink(name) { [self] outcome in
            if case .reply(let reply) = outcome, reply.kind == .integer {
                self.owed.pay(name, owed)
            } else {
                leave(name, owed, isUntold: false)
            }
        }
    }

    /// Notifies the other processes that the entry with the key of this name, or any entry, was removed.
    func publishRemoval(of key: String? = nil, _ finish: @escaping @Sendable (RedisCommand.Outcome) -> Void) {
        let message = key.map { removals.sender + " " + $0 } ?? removals.sender
        submit(
            RedisCommand(
                arguments: ["PUBLISH".bytes, configuration.channel.bytes, message.bytes], line: .change,
                patience: configuration.writeTimeout.nanoseconds, finish: finish))
    }
}

extension RedisCommand.Outcome {
    /// Whether the reply is a number, as it is for removals and messages.
    fileprivate var isCount: Bool { if case .reply(let reply) = self { reply.kind == .integer } else { false } }

    /// The kind of error; `nil` if the reply is a number, or the command was not sent.
    fileprivate var fault: CacheFaultKind? {
        switch self {
        case .reply(let reply): reply.kind == .integer ? nil : RedisFault(reply)?.kind ?? .damaged
        case .failed(let kind): kind
        case .refused, .full: nil
        }
    }
}
