internal import CLoopback

extension LoopbackServer {
    private var counters: loopback_counters {
        var counters = loopback_counters()
        loopback_count(handle.pointer, &counters)
        return counters
    }

    /// How many connections were accepted.
    public var connectionCount: Int { Int(counters.connections) }
    /// How many of them are not closed.
    public var openConnectionCount: Int { Int(counters.open) }
    /// How many request heads were read.
    public var requestCount: Int { Int(counters.requests) }
    /// How many bytes were received, as they came from the socket.
    public var receivedByteCount: Int { Int(counters.bytes) }
    /// How many TLS handshakes were finished.
    public var handshakeCount: Int { Int(counters.handshakes) }

    /// The latest requests, oldest first, at most ``Options/recordedRequests``.
    ///
    /// A request stands here as soon as its head was read; its body grows as it arrives.
    public var requests: [LoopbackRequest] {
        loopbackRequests(handle.pointer)
    }

    /// Waits until so many connections have been accepted since the start.
    ///
    /// This and the others here throw `CancellationError` when the task is cancelled, and
    /// ``LoopbackError/stopped`` when the server stops first.
    public func waitForConnections(_ count: Int) async throws {
        try await watch(LOOPBACK_WATCH_CONNECTIONS, count)
    }

    /// Waits until at most so many connections are open.
    public func waitForOpenConnections(atMost count: Int) async throws {
        try await watch(LOOPBACK_WATCH_OPEN, count)
    }

    /// Waits until so many request heads have been read since the start.
    public func waitForRequests(_ count: Int) async throws {
        try await watch(LOOPBACK_WATCH_REQUESTS, count)
    }

    /// Waits until so many bytes have been received since the start.
    public func waitForReceivedBytes(_ count: Int) async throws {
        try await watch(LOOPBACK_WATCH_BYTES, count)
    }

    /// Waits until so many TLS handshakes have been finished since the start.
    public func waitForHandshakes(_ count: Int) async throws {
        try await watch(LOOPBACK_WATCH_HANDSHAKES, count)
    }

    /// Waits until scripts have come to `.mark(name)` so many times since the start.
    public func waitForMark(_ name: String, count: Int = 1) async throws {
        try await watch(LOOPBACK_WATCH_MARK, count, name)
    }

    private func watch(_ kind: Int, _ value: Int, _ name: String = "") async throws {
        let id = callbacks.newWatch()
        // `onCancel` may run before the continuation is there: the table remembers it.
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                guard callbacks.begin(watch: id, continuation) else { return }
                loopback_watch(handle.pointer, id, Int32(kind), UInt64(clamping: value), name)
            }
        } onCancel: {
            callbacks.cancel(watch: id)
        }
    }
}
