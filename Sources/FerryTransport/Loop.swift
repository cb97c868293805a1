internal import CFerry
import FerrySynchronization
internal import Glibc

/// Owns one `ferry_loop`: starts it, ends it, and passes calls to it.
///
/// The loop's thread holds the `LoopContext`, never this object. So dropping the last reference ends the loop, also on
/// its own thread.
final class Loop: Sendable {
    private let pointer: LoopPointer
    let context: LoopContext

    init(
        _ configuration: TransportConfiguration, maxTransfers: Int, maxPerHost: Int, jar: CookieJar?
    ) throws(TransferFailure) {
        let context = LoopContext()
        var options = ferry_options()
        options.context = context.retained()
        options.on_finished = onFinished
        options.on_started = onStarted
        options.on_head = onHead
        options.on_informational = onInformational
        options.on_answered = onAnswered
        options.on_body = onBody
        options.on_written = onWritten
        options.on_pull = onPull
        options.on_trailers = onTrailers
        options.on_call = onCall
        options.on_alarm = onAlarm
        options.on_trust = onTrust
        options.on_stopped = onStopped
        // The core allocates a table of connections for this number.
        options.max_transfers = UInt32(clamping: min(maxTransfers, 1 << 20))
        options.max_per_host = UInt32(clamping: maxPerHost)
        options.max_streams = configuration.maxStreamsPerConnection
        options.idle_ms = configuration.idleConnectionTime
        options.keep_alive_ms = configuration.keepAliveTime
        options.lifetime_ms = configuration.connectionLifetime
        options.insecure = configuration.isInsecure ? 1 : 0
        options.minimum_tls = configuration.minimumTLSVersion.rawValue
        options.http2 = configuration.http2.rawValue
        options.engine = configuration.engine.rawValue
        options.selection = configuration.addressSelection.rawValue
        options.minimum_idle = configuration.minimumIdle
        options.jar = jar?.raw
        var started: OpaquePointer?
        let code = configuration.withStrings(in: &options) { ferry_loop_start($0, &started) }
        guard let started else {
            context.released()
            throw TransferFailure(.init(rawValue: code) ?? .internalError)
        }
        pointer = LoopPointer(raw: started)
        self.context = context
        context.executor.connect(pointer)
        context.clock.connect(pointer)
    }

    deinit {
        context.executor.disconnect()
        ferry_loop_free(pointer.raw)
    }

    /// The event loop on whose thread this is called.
    static var currentContext: LoopContext? { LoopContext.of(ferry_current_context()) }

    func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure) {
        var detail: Int32 = 0
        let code = request.withCore(id: id) { ferry_submit(pointer.raw, $0, &detail) }
        if code != 0 {
            throw TransferFailure(.init(rawValue: code) ?? .internalError, .init(rawValue: detail) ?? .none)
        }
    }

    func cancel(_ id: TransferID) { ferry_cancel(pointer.raw, id) }
    func resume(_ id: TransferID) { ferry_resume(pointer.raw, id) }
    func resumeSending(_ id: TransferID) { ferry_resume_sending(pointer.raw, id) }
    func pause(_ id: TransferID) { ferry_pause(pointer.raw, id) }
    func write(_ id: TransferID, to sink: TransferSink) {
        ferry_write_to(pointer.raw, id, sink.descriptor, sink.offset, sink.most)
    }
    func setRing(_ ring: PriorityRing, of id: TransferID) {
        ferry_set_priority(pointer.raw, id, Int32(ring.rawValue))
    }
    func stop() { ferry_loop_stop(pointer.raw) }

    var statistics: TransportStatistics {
        var from = ferry_statistics()
        ferry_loop_statistics(pointer.raw, &from)
        var statistics = TransportStatistics()
        statistics.waiting = from.waiting
        statistics.resolving = from.resolving
        statistics.running = from.running
        statistics.sockets = from.sockets
        statistics.handles = from.handles
        statistics.submitted = from.submitted
        statistics.finished = from.finished
        statistics.connectionsOpened = from.connections
        statistics.lookups = from.lookups
        statistics.refreshFaults = from.refresh_faults
        statistics.guardedConnections = from.guarded
        statistics.turns = from.turns
        statistics.longestTurn = from.longest_turn_us
        statistics.trustRenewals = from.trust_renewals
        statistics.trustFaults = from.trust_faults
        readOrigins(into: &statistics)
        return statistics
    }

    private func readOrigins(into statistics: inout TransportStatistics) {
        var list: UnsafeMutablePointer<ferry_origin_figures>?
        var count = 0
        guard ferry_loop_origins(pointer.raw, &list, &count) == 0, let list else { return }
        defer { ferry_origins_free(list) }
        statistics.pastOrigins = OriginFigures(list[0])
        for one in UnsafeBufferPointer(start: list, count: count).dropFirst() {
            statistics.origins[String(cString: one.origin)] = OriginFigures(one)
        }
    }
}

extension OriginFigures {
    fileprivate init(_ from: ferry_origin_figures) {
        self.init()
        open = from.open
        idle = from.idle
        pending = from.pending
        opened = from.opened
        reused = from.reused
        failed = from.failed
        waited = from.waited_us
        withUnsafeBytes(of: from.closed) { closed = Array($0.bindMemory(to: UInt64.self)) }
    }
}

extension TransportConfiguration {
    /// Calls `body` with the options; their strings are valid until it returns.
    fileprivate func withStrings(
        in options: inout ferry_options, _ body: (UnsafePointer<ferry_options>) -> Int32
    ) -> Int32 {
        let pins = pinnedKeys.isEmpty ? nil : pinnedKeys.joined(separator: ";")
        let texts = [
            authorityFile, pins, userAgent, acceptedEncodings, clientCertificateFile, clientKeyFile, clientKeyPassword,
            unixSocket,
        ]
        let copies = texts.map { $0.flatMap { strdup($0) } }
        defer { for copy in copies { free(copy) } }
        options.ca_file = UnsafePointer(copies[0])
        options.pinned_keys = UnsafePointer(copies[1])
        options.user_agent = UnsafePointer(copies[2])
        options.encodings = UnsafePointer(copies[3])
        options.client_certificate = UnsafePointer(copies[4])
        options.client_key = UnsafePointer(copies[5])
        options.client_key_password = UnsafePointer(copies[6])
        options.unix_socket = UnsafePointer(copies[7])
        let overrides = hostOverrides.map { override in
            ferry_override(
                name: strdup(override.name), port: override.port,
                addresses: strdup(override.addresses.joined(separator: ",")))
        }
        defer {
            for override in overrides {
                free(UnsafeMutablePointer(mutating: override.name))
                free(UnsafeMutablePointer(mutating: override.addresses))
            }
        }
        return overrides.withUnsafeBufferPointer { overrides in
            options.overrides = overrides.baseAddress
            options.override_count = overrides.count
            return body(&options)
        }
    }
}

// The core's callbacks. They are file-scope functions: a closure would trap when C calls it if the compiler infers an
// actor for it. All run on the loop's thread.

func onFinished(_ context: UnsafeMutableRawPointer?, _ first: UnsafeMutablePointer<ferry_result>, _ count: Int) {
    var results: [TransferResult] = []
    results.reserveCapacity(count)
    var next: UnsafeMutablePointer<ferry_result>? = first
    while let raw = next {
        next = raw.pointee.next
        results.append(TransferResult(owning: raw))
    }
    LoopContext.of(context)?.receiver?.transfersFinished(results)
}

func onStarted(_ context: UnsafeMutableRawPointer?, _ id: UInt64) {
    LoopContext.of(context)?.receiver?.transferStarted(id)
}

func onHead(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ soFar: UnsafePointer<ferry_result>) -> Int32 {
    guard let receiver = LoopContext.of(context)?.receiver else { return Int32(FERRY_CONTINUE) }
    var copy: UnsafeMutablePointer<ferry_result>?
    ferry_result_copy_head(soFar, &copy)
    guard let copy else { return Int32(FERRY_ABORT) }
    receiver.transfer(id, receivedHead: TransferResult(owning: copy))
    return Int32(FERRY_CONTINUE)
}

func onBody(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ bytes: UnsafeRawPointer, _ length: Int) -> Int32 {
    let chunk = UnsafeRawBufferPointer(start: bytes, count: length)
    switch LoopContext.of(context)?.receiver?.transfer(id, receivedChunk: chunk) {
    case .pause: return Int32(FERRY_PAUSE)
    case .proceed, nil: return Int32(FERRY_CONTINUE)
    }
}

func onInformational(
    _ context: UnsafeMutableRawPointer?, _ id: UInt64, _ head: UnsafePointer<CChar>, _ length: Int
) {
    LoopContext.of(context)?.receiver?.transfer(
        id, receivedInformational: UnsafeRawBufferPointer(start: head, count: length))
}

func onAnswered(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ soFar: UnsafePointer<ferry_result>) {
    var copy: UnsafeMutablePointer<ferry_result>?
    ferry_result_copy_head(soFar, &copy)
    // If memory is short, the receiver hears of the end when the request has ended, too.
    guard let copy else { return }
    LoopContext.of(context)?.receiver?.transfer(id, answered: TransferResult(owning: copy))
}

func onTrailers(
    _ context: UnsafeMutableRawPointer?, _ id: UInt64, _ space: UnsafeMutablePointer<CChar>, _ size: Int
) -> Int64 {
    let space = UnsafeMutableRawBufferPointer(start: space, count: size)
    guard let count = LoopContext.of(context)?.receiver?.transfer(id, fillTrailers: space) else {
        return Int64(FERRY_ABORT)
    }
    return Int64(count)
}

func onWritten(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ bytes: UInt64) {
    LoopContext.of(context)?.receiver?.transfer(id, written: bytes)
}

func onPull(_ context: UnsafeMutableRawPointer?, _ id: UInt64, _ space: UnsafeMutableRawPointer, _ size: Int) -> Int64 {
    let space = UnsafeMutableRawBufferPointer(start: space, count: size)
    switch LoopContext.of(context)?.receiver?.transfer(id, fill: space) {
    case .bytes(let count): return Int64(count)
    case .piece(let piece):
        let raw = ferry_piece(offset: piece.offset, length: piece.length, fd: piece.descriptor)
        space.storeBytes(of: raw, as: ferry_piece.self)
        return Int64(FERRY_PIECE)
    case .end: return 0
    case .later: return Int64(FERRY_PAUSE)
    case .failed, nil: return Int64(FERRY_ABORT)
    }
}

func onCall(_ context: UnsafeMutableRawPointer?) {
    LoopContext.of(context)?.executor.run()
}

func onAlarm(_ context: UnsafeMutableRawPointer?) {
    LoopContext.of(context)?.clock.ring()
}

func onTrust(_ context: UnsafeMutableRawPointer?, _ fault: UnsafePointer<CChar>?) {
    LoopContext.of(context)?.receiver?.trustChanged(fault: fault.map { String(cString: $0) })
}

func onStopped(_ context: UnsafeMutableRawPointer?) {
    guard let context = LoopContext.of(context) else { return }
    context.executor.disconnect()
    context.clock.disconnect()
    context.released()
}

/// What the callbacks of one loop receive: the receiver, the executor and the clock.
///
/// The loop retains it until its thread has ended, so no callback can meet a context that was freed.
package final class LoopContext: Sendable {
    private let receiverBox = Mutex(WeakReceiver())
    let executor: LoopExecutor
    let clock: LoopClock

    init() {
        executor = LoopExecutor()
        clock = LoopClock(executor: executor)
    }

    func attach(_ receiver: any TransferReceiver) {
        receiverBox.withLock { $0.receiver = receiver }
    }

    var receiver: (any TransferReceiver)? {
        receiverBox.withLock { $0.receiver }
    }
}

private struct WeakReceiver {
    weak var receiver: (any TransferReceiver)?
}

// The context is passed to C as a raw pointer. It is retained when the loop starts, borrowed in every callback, and
// released once: by `on_stopped`, the last callback, or when the loop could not be started.

extension LoopContext {
    func retained() -> UnsafeMutableRawPointer {
        Unmanaged.passRetained(self).toOpaque()
    }

    func released() {
        Unmanaged.passUnretained(self).release()
    }

    static func of(_ pointer: UnsafeMutableRawPointer?) -> LoopContext? {
        pointer.map { Unmanaged<LoopContext>.fromOpaque($0).takeUnretainedValue() }
    }
}

/// The address of a `ferry_loop`.
///
/// It is Sendable because the core accepts these calls from any thread, and because the address is valid until its
/// owner, `Loop`, is gone. Other holders must have been told to let go before (`LoopExecutor.disconnect`).
struct LoopPointer: @unchecked Sendable {
    let raw: OpaquePointer
}
