internal import FerryCache

/// Iterates over all entries with the prefix (SCAN), and counts or removes them.
final class RedisScan: Sendable {
    private let loop: RedisLoop
    private let removes: Bool
    private let prefix: [UInt8]
    private let end: UInt64
    private let done: @Sendable (Result<Int, RedisFault>) -> Void

    /// The maximum number of names in one command.
    private static let batch = 64

    init(
        _ loop: RedisLoop, removes: Bool, patience: Duration,
        _ done: @escaping @Sendable (Result<Int, RedisFault>) -> Void
    ) {
        (self.loop, self.removes, self.done) = (loop, removes, done)
        prefix = loop.configuration.prefix.bytes
        end = monotonicTime() &+ patience.nanoseconds
    }

    /// Escapes the characters of a prefix that have a meaning in patterns.
    static func escaped(_ prefix: String) -> String {
        prefix.reduce(into: "") { text, character in
            if "*?[]\\^".contains(character) { text.append("\\") }
            text.append(character)
        }
    }

    /// The numbers of the formats that entries have had so far.
    private static let formats = ["1".bytes, "2".bytes]

    /// Whether a key is an entry: the prefix, the number of its format, and a digest in hexadecimal. Others may use a
    /// prefix that begins with the same letters.
    static func isEntry(_ name: [UInt8], under prefix: [UInt8]) -> Bool {
        guard name.starts(with: prefix) else { return false }
        let parts = name.dropFirst(prefix.count).split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        return parts.count == 2 && formats.contains(Array(parts[0])) && parts[1].count == 64
            && parts[1].allSatisfy { "0123456789abcdef".utf8.contains($0) }
    }

    func start() { scan(from: "0".bytes, count: 0) }

    private func scan(from cursor: [UInt8], count: Int) {
        let pattern = Self.escaped(loop.configuration.prefix).bytes + "[0-9]*:*".bytes
        submit(["SCAN".bytes, cursor, "MATCH".bytes, pattern, "COUNT".bytes, "1000".bytes]) { [self] reply in
            let parts = reply.elements
            guard reply.kind == .array, parts.count == 2, parts[0].kind == .bytes, parts[1].kind == .array else {
                return done(.failure(RedisFault(reply) ?? RedisFault(.damaged)))
            }
            let names = parts[1].elements.map(\.bytes).filter { Self.isEntry($0, under: prefix) }
            remove(names[...]) { [self] in
                // SCAN may return a name twice; it is then counted twice.
                let sum = count + names.count
                if parts[0].bytes == "0".bytes { return done(.success(sum)) }
                if monotonicTime() > end { return done(removes ? .failure(RedisFault(.timeout)) : .success(sum)) }
                scan(from: parts[0].bytes, count: sum)
            }
        }
    }

    private func remove(_ names: ArraySlice<[UInt8]>, _ next: @escaping @Sendable () -> Void) {
        if !removes || names.isEmpty { return next() }
        submit(["UNLINK".bytes] + names.prefix(Self.batch)) { [self] reply in
            guard reply.kind == .integer else { return done(.failure(RedisFault(reply) ?? RedisFault(.damaged))) }
            remove(names.dropFirst(Self.batch), next)
        }
    }

    /// Calls `next` with the reply; without a reply the scan ends.
    private func submit(_ arguments: [[UInt8]], _ next: @escaping @Sendable (RedisReply) -> Void) {
        loop.submit(
            RedisCommand(
                arguments: arguments, line: .change, patience: loop.configuration.writeTimeout.nanoseconds,
                finish: { [done] outcome in
                    switch outcome {
                    case .reply(let reply): next(reply)
                    case .failed(let kind): done(.failure(RedisFault(kind)))
                    case .refused, .full: done(.failure(RedisFault(.busy)))
                    }
                }))
    }
}
