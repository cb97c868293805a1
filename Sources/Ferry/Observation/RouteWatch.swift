import Dispatch

/// Listens to the kernel's routes, on a queue of its own, from ``start(_:)`` to ``stop()``.
///
/// Sendable because what changes is touched on the queue only.
final class RouteWatch: @unchecked Sendable {
    private let queue = DispatchQueue(label: "ferry.reachability")
    private let publish: @Sendable (RouteWatch, Reachability.Status) -> Void
    private var table = RouteTable()
    private var reads: (any DispatchSourceRead)?
    private var isStopped = false

    /// `publish` is called on the queue with every whole answer of the kernel, also one that is no news.
    init(publish: @escaping @Sendable (RouteWatch, Reachability.Status) -> Void) {
        self.publish = publish
    }

    /// Opens the socket here, as threads may be in different network namespaces.
    func start(_ source: RouteSource) {
        let socket = RouteSocket(source, listens: true)
        queue.async { self.begin(socket) }
    }

    func stop() { queue.async { self.end() } }

    // MARK: On the queue

    private func begin(_ socket: RouteSocket?) {
        if isStopped { return }
        guard let socket else { return publish(self, .online([])) }
        let reads = DispatchSource.makeReadSource(fileDescriptor: socket.descriptor, queue: queue)
        reads.setEventHandler { [weak self] in self?.drain(socket) }
        // The descriptor stays open until nobody polls it any more.
        reads.setCancelHandler { withExtendedLifetime(socket) {} }
        reads.activate()
        self.reads = reads
        drain(socket)
    }

    private func end() {
        isStopped = true
        reads.take()?.cancel()
    }

    /// Takes what is there, then asks again if it made what is known doubtful.
    private func drain(_ socket: RouteSocket) {
        dispatchPrecondition(condition: .onQueue(queue))
        if isStopped { return }
        let isOpen = withUnsafeTemporaryAllocation(byteCount: RouteSocket.bufferSize, alignment: 16) { buffer in
            while true {
                switch socket.receive(into: buffer, waits: false) {
                case .datagram(let count): table.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                case .lost: table.lostMessages()
                case .nothing: return true
                case .end: return false
                }
            }
        }
        if isOpen { askIfNeeded(socket) } else { end() }
        if let status = table.status {
            publish(self, status)
        } else if !isOpen || table.isGivenUp {
            publish(self, .online([]))
        }
    }

    private func askIfNeeded(_ socket: RouteSocket) {
        while let sequence = table.nextDump(), !socket.requestDump(sequence) { table.dumpFailed() }
    }
}
