internal import CLoopback
internal import FerrySynchronization

/// Owns the C server: created once, freed once.
///
/// `@unchecked Sendable` is true because the pointer never changes, and every function of CLoopback.h except
/// `loopback_free` may be called from any thread. Only `deinit` calls that one, when no other call can be in progress.
final class LoopbackHandle: @unchecked Sendable {
    let pointer: OpaquePointer
    private let callbacks: LoopbackCallbacks

    init(_ options: LoopbackServer.Options, _ callbacks: LoopbackCallbacks) throws(LoopbackError) {
        var made: OpaquePointer?
        let result = options.address.withCString { address in
            options.applicationProtocols.joined(separator: ",").withCString { protocols in
                var c = loopback_options(
                    context: retainedContext(callbacks),
                    on_request: loopbackOnRequest, on_reached: loopbackOnReached, on_stopped: loopbackOnStopped,
                    address: address, port: options.port, accept: options.accepting.code,
                    certificate: options.certificate?.pointer, protocols: protocols,
                    demands_certificate: options.demandsClientCertificate ? 1 : 0,
                    minimum_tls: Int32(options.tlsVersions.lowerBound),
                    maximum_tls: Int32(options.tlsVersions.upperBound),
                    record_limit: UInt32(clamping: options.recordedRequests),
                    record_body_limit: UInt32(clamping: options.recordedBodyBytes),
                    max_body: UInt64(clamping: options.maximumBodyBytes))
                let result = loopback_start(&c, &made)
                // A server that did not start makes no callbacks, so it does not release the context.
                if result != 0 { releaseContext(c.context) }
                return result
            }
        }
        guard let made else { throw .start(result) }
        pointer = made
        self.callbacks = callbacks
        callbacks.attach(UInt(bitPattern: made))
    }

    deinit {
        // Handlers may still be running; their responses are ignored from here on.
        callbacks.attach(0)
        loopback_free(pointer)
    }
}

/// The state behind the C callbacks: handlers by number, waiters by watch. It outlives the server's thread.
final class LoopbackCallbacks: Sendable {
    typealias Continuation = CheckedContinuation<Void, any Error>

    private enum Watch {
        case new
        case cancelled
        case waiting(Continuation)
    }

    private struct State {
        var handlers: [UInt64: LoopbackServer.Handler] = [:]
        var watches: [UInt64: Watch] = [:]
        var next: UInt64 = 1
        var isStopped = false
    }

    private let state = Mutex(State())
    /// The address of the C server, 0 before it is made and once it is about to be freed. The lock is held while a
    /// response is passed on, so that no response meets a freed server.
    private let server = Mutex<UInt>(0)

    func attach(_ address: UInt) {
        server.withLock { $0 = address }
    }

    // MARK: Handlers

    func add(_ handler: @escaping LoopbackServer.Handler) -> UInt64 {
        state.withLock { state in
            defer { state.next += 1 }
            if !state.isStopped { state.handlers[state.next] = handler }
            return state.next
        }
    }

    func handler(_ number: UInt64) -> LoopbackServer.Handler? {
        state.withLock { $0.handlers[number] }
    }

    func answer(_ id: UInt64, _ response: LoopbackResponse) {
        let head = response.headers.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        let status = Int32(clamping: response.status)
        server.withLock { address in
            guard let pointer = OpaquePointer(bitPattern: address) else { return }
            let length = head.utf8.count
            response.body.withUnsafeBytes { body in
                if let reason = response.reason {
                    loopback_answer(pointer, id, status, reason, head, length, body.baseAddress, body.count)
                } else {
                    loopback_answer(pointer, id, status, nil, head, length, body.baseAddress, body.count)
                }
            }
        }
    }

    // MARK: Watches

    func newWatch() -> UInt64 {
        state.withLock { state in
            defer { state.next += 1 }
            state.watches[state.next] = .new
            return state.next
        }
    }

    /// Returns `false` if the watch has ended already; the continuation is resumed then.
    func begin(watch: UInt64, _ continuation: Continuation) -> Bool {
        let failure: (any Error)? = state.withLock { state in
            if case .cancelled = state.watches[watch] {
                state.watches[watch] = nil
                return CancellationError()
            }
            if state.isStopped {
                state.watches[watch] = nil
                return LoopbackError.stopped
            }
            state.watches[watch] = .waiting(continuation)
            return nil
        }
        if let failure { continuation.resume(throwing: failure) }
        return failure == nil
    }

    func reached(watch: UInt64) {
        let ended = state.withLock { $0.watches.removeValue(forKey: watch) }
        if case .waiting(let continuation) = ended { continuation.resume() }
    }

    func cancel(watch: UInt64) {
        let ended = state.withLock { state in
            let found = state.watches.removeValue(forKey: watch)
            if case .new = found { state.watches[watch] = .cancelled }
            return found
        }
        if case .waiting(let continuation) = ended { continuation.resume(throwing: CancellationError()) }
    }

    /// The server's thread ends: no waiter will be resumed by it any more, and handlers are released. This happens
    /// outside the lock, as a handler may hold the server itself.
    func stop() {
        let old = state.withLock { state in
            let old = state
            state.isStopped = true
            state.handlers = [:]
            state.watches = [:]
            return old
        }
        for case .waiting(let continuation) in old.watches.values {
            continuation.resume(throwing: LoopbackError.stopped)
        }
    }
}

// The functions that C calls, all on the server's thread, and the context they are called with.
//
// The context is a `LoopbackCallbacks` that `Unmanaged` has retained before the server started. It is released once: by
// `loopbackOnStopped`, the last callback, or by `releaseContext` if the server did not start and so makes no callbacks.

func retainedContext(_ callbacks: LoopbackCallbacks) -> UnsafeMutableRawPointer {
    Unmanaged.passRetained(callbacks).toOpaque()
}

func releaseContext(_ context: UnsafeMutableRawPointer?) {
    guard let context else { return }
    Unmanaged<LoopbackCallbacks>.fromOpaque(context).release()
}

private func callbacks(_ context: UnsafeMutableRawPointer?) -> LoopbackCallbacks {
    guard let context else { preconditionFailure("the loopback server was started without its context") }
    return Unmanaged<LoopbackCallbacks>.fromOpaque(context).takeUnretainedValue()
}

/// Never blocks the server: the handler runs in a task of its own, and responds from there.
func loopbackOnRequest(
    _ context: UnsafeMutableRawPointer?, _ id: UInt64, _ number: UInt64, _ request: UnsafePointer<loopback_request>
) {
    let callbacks = callbacks(context)
    guard let handler = callbacks.handler(number) else {
        callbacks.answer(id, LoopbackResponse(status: 503))
        return
    }
    let request = LoopbackRequest(request.pointee)
    Task { callbacks.answer(id, await handler(request)) }
}

func loopbackOnReached(_ context: UnsafeMutableRawPointer?, _ watch: UInt64) {
    callbacks(context).reached(watch: watch)
}

func loopbackOnStopped(_ context: UnsafeMutableRawPointer?) {
    callbacks(context).stop()
    releaseContext(context)
}

/// Copies the recorded requests; the visitor is called on this thread, before this returns.
func loopbackRequests(_ server: OpaquePointer) -> [LoopbackRequest] {
    var found: [LoopbackRequest] = []
    withUnsafeMutablePointer(to: &found) { list in
        loopback_requests(server, list, loopbackOnVisit)
    }
    return found
}

private func loopbackOnVisit(_ context: UnsafeMutableRawPointer?, _ request: UnsafePointer<loopback_request>) {
    context?.assumingMemoryBound(to: [LoopbackRequest].self).pointee.append(LoopbackRequest(request.pointee))
}

/// Prepares the steps of a script for C: all their bytes are in one array, so that pointers into it stay valid
/// together.
struct LoopbackStepArena {
    private var bytes: [UInt8] = []
    private var steps: [(step: loopback_step, offset: Int)] = []

    mutating func add(_ step: LoopbackScript.Step) {
        switch step {
        case .expectHead: add(LOOPBACK_EXPECT_HEAD)
        case .expectBody: add(LOOPBACK_EXPECT_BODY)
        case .expectBytes(let count): add(LOOPBACK_EXPECT_BYTES, count: count)
        case .expectClose: add(LOOPBACK_EXPECT_CLOSE)
        case .send(let text): add(LOOPBACK_SEND, Array(text.utf8), count: 1)
        case .sendBytes(let bytes): add(LOOPBACK_SEND, bytes, count: 1)
        case .repeating(let text, let times): add(LOOPBACK_SEND, Array(text.utf8), count: times)
        case .repeatingBytes(let bytes, let times): add(LOOPBACK_SEND, bytes, count: times)
        case .pattern(let count): add(LOOPBACK_PATTERN, count: count)
        case .drip(let text, let interval, let chunk):
            add(LOOPBACK_DRIP, Array(text.utf8), count: chunk, time: interval)
        case .pause(let time): add(LOOPBACK_PAUSE, time: time)
        case .wait(let name): add(LOOPBACK_WAIT, Array(name.utf8))
        case .mark(let name): add(LOOPBACK_MARK, Array(name.utf8))
        case .close: add(LOOPBACK_CLOSE)
        case .drop: add(LOOPBACK_DROP)
        case .reset: add(LOOPBACK_RESET)
        case .halfClose: add(LOOPBACK_HALF_CLOSE)
        case .stopReading: add(LOOPBACK_STOP_READING)
        case .keepOpen: add(LOOPBACK_KEEP_OPEN)
        case .serve: add(LOOPBACK_SERVE)
        case .restart: add(LOOPBACK_RESTART)
        case .startTLS: add(LOOPBACK_START_TLS)
        case .plain: add(LOOPBACK_PLAIN)
        case .stallHandshake: add(LOOPBACK_STALL_HANDSHAKE)
        case .closeHandshake: add(LOOPBACK_CLOSE_HANDSHAKE)
        case .keyUpdates(let count): add(LOOPBACK_KEY_UPDATES, count: min(count, 1_000_000))
        }
    }

    private mutating func add(_ kind: Int, _ content: [UInt8] = [], count: Int = 0, time: Duration = .zero) {
        var step = loopback_step()
        step.kind = Int32(kind)
        step.length = content.count
        step.count = UInt64(clamping: count)
        step.milliseconds = time.wholeMilliseconds
        steps.append((step, bytes.count))
        bytes += content
    }

    /// Calls `body` with the steps; their pointers are valid until it returns.
    func withSteps(_ body: (UnsafeBufferPointer<loopback_step>) -> Void) {
        bytes.withUnsafeBytes { all in
            let laid = steps.map { item in
                var step = item.step
                step.bytes = all.baseAddress.map { $0 + item.offset }
                return step
            }
            laid.withUnsafeBufferPointer(body)
        }
    }
}
