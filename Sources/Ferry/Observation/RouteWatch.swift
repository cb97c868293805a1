import Cnetlink
import Dispatch
import Glibc

/// Watches the kernel's routes on a queue of its own, from ``start(_:)`` to ``stop()``.
///
/// Sendable because mutable state is accessed on the queue only.
final class RouteWatch: @unchecked Sendable {
    private let queue = DispatchQueue(label: "ferry.reachability")
    private let publish: @Sendable (RouteWatch, Reachability.Status) -> Void
    private var table = RouteTable()
    private var reads: (any DispatchSourceRead)?
    private var isStopped = false

    /// `publish` is called on the queue with every complete status, also an unchanged one.
    init(publish: @escaping @Sendable (RouteWatch, Reachability.Status) -> Void) {
        self.publish = publish
    }

    /// Opens the socket here, because threads may be in different network namespaces.
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
        // The descriptor stays open until nothing polls it any more.
        reads.setCancelHandler { withExtendedLifetime(socket) {} }
        reads.activate()
        self.reads = reads
        drain(socket)
    }

    private func end() {
        isStopped = true
        reads.take()?.cancel()
    }

    /// Reads what is there, then requests a new dump if the state has become doubtful.
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

/// Opens sockets to the kernel's routes.
struct RouteSource: Sendable {
    /// Returns a descriptor, or a negative number on failure. A listening one reports changes, too.
    var open: @Sendable (_ listens: Bool) -> Int32

    /// For the network namespace of the calling thread.
    static let system = RouteSource { listens in
        let descriptor = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), NETLINK_ROUTE)
        if descriptor < 0 || !listens { return descriptor }
        var address = sockaddr_nl()
        address.nl_family = sa_family_t(AF_NETLINK)
        address.nl_groups = UInt32(
            RTMGRP_LINK | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR)
        let result = withUnsafeBytes(of: &address) { bytes in
            bind(descriptor, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(bytes.count))
        }
        if result == 0 { return descriptor }
        close(descriptor)
        return -1
    }
}

/// One socket to the kernel's routes. It is closed when the last reference is released.
final class RouteSocket: Sendable {
    enum Arrival: Equatable {
        /// The buffer contains a datagram with this many bytes.
        case datagram(Int)
        /// Messages were lost.
        case lost
        /// There is no datagram now.
        case nothing
        /// Nothing more will arrive.
        case end
    }

    /// The size of the kernel's dump datagrams.
    static let bufferSize = 32 * 1024

    let descriptor: Int32

    init?(_ source: RouteSource, listens: Bool) {
        let opened = source.open(listens)
        if opened < 0 { return nil }
        descriptor = opened
    }

    deinit { close(descriptor) }

    /// Requests all routes of all families.
    func requestDump(_ sequence: UInt32) -> Bool {
        struct Request {
            var header = nlmsghdr()
            var route = rtmsg()
        }
        var request = Request()
        request.header.nlmsg_len = UInt32(MemoryLayout<Request>.size)
        request.header.nlmsg_type = UInt16(RTM_GETROUTE)
        request.header.nlmsg_flags = UInt16(NLM_F_REQUEST | NLM_F_DUMP)
        request.header.nlmsg_seq = sequence
        return withUnsafeBytes(of: &request) { bytes in
            var sent = 0
            repeat {
                sent = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            } while sent < 0
                && errno == EINTR
            return sent == bytes.count
        }
    }

    /// Receives one datagram. Those of other processes than the kernel are discarded.
    func receive(into buffer: UnsafeMutableRawBufferPointer, waits: Bool) -> Arrival {
        while true {
            var sender = sockaddr_nl()
            var part = iovec(iov_base: buffer.baseAddress, iov_len: buffer.count)
            var message = msghdr()
            let count = withUnsafeMutablePointer(to: &part) { part in
                withUnsafeMutablePointer(to: &sender) { sender in
                    message.msg_name = UnsafeMutableRawPointer(sender)
                    message.msg_namelen = socklen_t(MemoryLayout<sockaddr_nl>.size)
                    message.msg_iov = part
                    message.msg_iovlen = 1
                    return recvmsg(descriptor, &message, waits ? 0 : Int32(MSG_DONTWAIT))
                }
            }
            if count < 0 {
                switch errno {
                case EINTR: continue
                case EAGAIN: return .nothing
                case ENOBUFS: return .lost
                default: return .end
                }
            }
            if count == 0 { return .end }
            if Int32(sender.nl_family) == AF_NETLINK, sender.nl_pid != 0 { continue }
            return message.msg_flags & Int32(MSG_TRUNC) != 0 ? .lost : .datagram(count)
        }
    }

    /// Limits how long ``receive(into:waits:)`` waits.
    func setReceiveTimeout(seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }
}

/// Asks for the routes once, on the caller's thread.
enum RouteQuery {
    static func run(_ source: RouteSource) -> Reachability.Status {
        let unknown = Reachability.Status.online([])
        guard let socket = RouteSocket(source, listens: false) else { return unknown }
        // The kernel responds at once; a sandbox that emulates it may not.
        socket.setReceiveTimeout(seconds: 1)
        return withUnsafeTemporaryAllocation(byteCount: RouteSocket.bufferSize, alignment: 16) { buffer in
            var table = RouteTable()
            while table.status == nil {
                if let sequence = table.nextDump(), !socket.requestDump(sequence) { return unknown }
                if table.isGivenUp { return unknown }
                switch socket.receive(into: buffer, waits: true) {
                case .datagram(let count): table.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                case .lost: table.lostMessages()
                case .nothing, .end: return unknown
                }
            }
            return table.status ?? unknown
        }
    }
}
