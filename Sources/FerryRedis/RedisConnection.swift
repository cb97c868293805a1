internal import Chiredis
internal import FerryCache
internal import Glibc

/// One connection to Redis. Commands are pipelined: the replies arrive in the order of the commands.
///
/// Used by one thread at a time, which makes it Sendable: the queue that connects passes it to the loop.
final class RedisConnection: @unchecked Sendable {
    private let context: UnsafeMutablePointer<redisContext>
    private let maxReply: Int
    private let tls: RedisTLS?
    /// What is still to be encrypted and sent. Without TLS hiredis keeps the bytes.
    private var outgoing = RedisBuffer()
    /// The size of the reply that is arriving.
    private var replyBytes = 0

    /// The maximum size of a reply in addition to that of an entry, for example for a list of names.
    private static let smallReply = 1 << 20

    /// Connects, and blocks until that is done. The login is left to the caller.
    init(_ configuration: RedisConfiguration) throws(RedisFault) {
        let start = monotonicTime()
        // hiredis accepts neither 0 nor centuries.
        let time: UInt64 = min(max(configuration.connectTimeout.nanoseconds, 1_000_000), 86_400_000_000_000)
        let wait = timeval(tv_sec: Int(time / 1_000_000_000), tv_usec: Int(time % 1_000_000_000 / 1000))
        let made: UnsafeMutablePointer<redisContext>? =
            switch configuration.address {
            case .host(let host, let port): redisConnectWithTimeout(host, Int32(clamping: port), wait)
            case .unixSocket(let path): redisConnectUnixWithTimeout(path, wait)
            }
        guard let made else { throw RedisFault(.other) }
        if made.pointee.err != 0 {
            let code = made.pointee.err == REDIS_ERR_IO ? errno : 0
            redisFree(made)
            throw RedisFault(code == ETIMEDOUT || code == EINPROGRESS ? .timeout : code == EACCES ? .noPermission : .io)
        }
        // From here on the loop waits.
        made.pointee.flags &= ~REDIS_BLOCK
        let flags = fcntl(made.pointee.fd, F_GETFL)
        _ = fcntl(made.pointee.fd, F_SETFL, flags | O_NONBLOCK)
        _ = fcntl(made.pointee.fd, F_SETFD, FD_CLOEXEC)
        if case .host = configuration.address { Self.keepAlive(made.pointee.fd) }
        made.pointee.reader.pointee.fn = RedisReply.functions.pointer
        do throws(RedisFault) {
            tls = try Self.tls(configuration, descriptor: made.pointee.fd, until: start &+ time)
        } catch {
            redisFree(made)
            throw error
        }
        context = made
        maxReply = max(configuration.mostEntryBytes, Self.smallReply) + 65_536
    }

    private static func tls(
        _ configuration: RedisConfiguration, descriptor: Int32, until end: UInt64
    ) throws(RedisFault) -> RedisTLS? {
        guard let options = configuration.tls, case .host(let host, _) = configuration.address else { return nil }
        return try withoutPipeSignal { () throws(RedisFault) in
            try RedisTLS(options, host: host, descriptor: descriptor, until: end)
        }
    }

    deinit { redisFree(context) }

    /// Makes the system probe the server. A connection that waits for removals sends nothing itself: without probes it
    /// would not notice that a firewall has dropped it, and would receive nothing any more.
    private static func keepAlive(_ descriptor: Int32) {
        func set(_ level: Int32, _ option: Int32, _ value: Int32) {
            withUnsafeBytes(of: value) {
                _ = setsockopt(descriptor, level, option, $0.baseAddress, socklen_t($0.count))
            }
        }
        set(SOL_SOCKET, SO_KEEPALIVE, 1)
        set(Int32(IPPROTO_TCP), TCP_KEEPIDLE, 15)
        set(Int32(IPPROTO_TCP), TCP_KEEPINTVL, 5)
        set(Int32(IPPROTO_TCP), TCP_KEEPCNT, 3)
    }

    var descriptor: Int32 { context.pointee.fd }

    /// The number of bytes still to send; without TLS, all of them until the last is sent.
    private(set) var unsent = 0

    /// Whether more can be sent as soon as the socket accepts it.
    var waitsForOutput: Bool { unsent > 0 && tls?.waitsForInput != true }

    /// Queues a command for sending.
    func append(_ arguments: [[UInt8]]) throws(RedisFault) {
        var pointers: [UnsafePointer<CChar>?] = []
        let lengths = arguments.map(\.count)
        let isDone = Self.withPointers(arguments[...], &pointers) { pointers in
            tls == nil
                ? redisAppendCommandArgv(context, Int32(pointers.count), &pointers, lengths) == REDIS_OK
                : outgoing.append(pointers, lengths)
        }
        guard isDone else { throw RedisFault(.other) }
        unsent = tls == nil ? unsent + lengths.reduce(0, +) : outgoing.count
    }

    private static func withPointers(
        _ arguments: ArraySlice<[UInt8]>, _ pointers: inout [UnsafePointer<CChar>?],
        _ body: (inout [UnsafePointer<CChar>?]) -> Bool
    ) -> Bool {
        guard let first = arguments.first else { return body(&pointers) }
        return first.withUnsafeBufferPointer { bytes in
            // hiredis copies nothing from an empty argument, but does not accept a null pointer.
            let start = bytes.baseAddress.map { UnsafeRawPointer($0) } ?? UnsafeRawPointer(Self.nothing)
            pointers.append(start.assumingMemoryBound(to: CChar.self))
            return withPointers(arguments.dropFirst(), &pointers, body)
        }
    }

    nonisolated(unsafe) private static let nothing = UnsafePointer(UnsafeMutablePointer<CChar>.allocate(capacity: 1))

    /// Sends as much as the socket accepts.
    func send() throws(RedisFault) {
        if let tls {
            try outgoing.send { bytes throws(RedisFault) in try tls.write(bytes) }
            unsent = outgoing.count
            return
        }
        var isDone: Int32 = 0
        guard redisBufferWrite(context, &isDone) == REDIS_OK else { throw RedisFault(.io) }
        if isDone != 0 { unsent = 0 }
    }

    /// Reads the available bytes, at most a few KB, and calls `handle` with each complete reply, in order.
    func receive(_ handle: (RedisReply) throws(RedisFault) -> Void) throws(RedisFault) {
        let before = context.pointee.reader.pointee.len
        if let tls {
            try tls.read { _ = redisReaderFeed(context.pointee.reader, $0.baseAddress, $0.count) }
        } else if redisBufferRead(context) != REDIS_OK {
            throw RedisFault(.io)
        }
        replyBytes += Int(clamping: context.pointee.reader.pointee.len) - Int(clamping: before)
        while true {
            var pointer: UnsafeMutableRawPointer?
            guard redisGetReplyFromReader(context, &pointer) == REDIS_OK else { throw RedisFault(.damaged) }
            guard let pointer else { break }
            replyBytes = 0
            try handle(RedisReply.take(pointer))
        }
        // A reply that announces more than the limit could fill the memory.
        if replyBytes > maxReply { throw RedisFault(.damaged) }
    }
}

/// Commands that wait to be sent.
private struct RedisBuffer {
    private var bytes: [UInt8] = []
    private var start = 0

    var count: Int { bytes.count - start }

    /// Appends a command; `false` if there is no memory for it.
    mutating func append(_ arguments: [UnsafePointer<CChar>?], _ lengths: [Int]) -> Bool {
        var arguments = arguments
        var command: UnsafeMutablePointer<CChar>?
        let length = redisFormatCommandArgv(&command, Int32(arguments.count), &arguments, lengths)
        guard length > 0, let command else { return false }
        bytes.append(contentsOf: UnsafeRawBufferPointer(start: command, count: Int(length)))
        redisFreeCommand(command)
        return true
    }

    /// Passes the bytes to a function that returns how many of them it has sent.
    mutating func send(_ body: (UnsafeRawBufferPointer) throws(RedisFault) -> Int) throws(RedisFault) {
        let sent = bytes.withUnsafeBytes { bytes in
            Result { () throws(RedisFault) in try body(UnsafeRawBufferPointer(rebasing: bytes[start...])) }
        }
        start += try sent.get()
        if start == bytes.count {
            bytes = []
            start = 0
        } else if start > Self.mostSent && start > bytes.count / 2 {
            bytes.removeFirst(start)
            start = 0
        }
    }

    /// The number of sent bytes that are worth a move of the others.
    private static let mostSent = 256 << 10
}

/// The reason why Redis cannot be used.
struct RedisFault: Error {
    let kind: CacheFaultKind
    /// Why TLS is not possible; otherwise empty.
    var reason = ""

    init(_ kind: CacheFaultKind, _ reason: String = "") { (self.kind, self.reason) = (kind, reason) }

    /// The fault of an error reply; `nil` if the reply is not an error.
    init?(_ reply: RedisReply) {
        switch reply.errorWord {
        case nil: return nil
        case "OOM"?: kind = .noSpace
        case "NOAUTH"?, "WRONGPASS"?, "NOPERM"?: kind = .noPermission
        case "LOADING"?, "BUSY"?, "MASTERDOWN"?, "CLUSTERDOWN"?, "TRYAGAIN"?: kind = .busy
        case "READONLY"?, "MISCONF"?: kind = .io
        case .some: kind = .other
        }
    }
}

func monotonicTime() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
