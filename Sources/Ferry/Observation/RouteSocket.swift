import Cnetlink
import Glibc

/// Where sockets to the kernel's routes come from.
struct RouteSource: Sendable {
    /// A descriptor, or a negative number when there is none to be had. One that listens hears of changes, too.
    var open: @Sendable (_ listens: Bool) -> Int32

    /// Of the network namespace of the calling thread.
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

/// One socket to the kernel's routes, closed when the last reference goes.
final class RouteSocket: Sendable {
    enum Arrival: Equatable {
        /// So many bytes of a datagram lie in the buffer.
        case datagram(Int)
        /// Messages were lost.
        case lost
        /// Nothing is there now.
        case nothing
        /// Nothing will come any more.
        case end
    }

    /// As large as the kernel makes a datagram of a dump.
    static let bufferSize = 32 * 1024

    let descriptor: Int32

    init?(_ source: RouteSource, listens: Bool) {
        let opened = source.open(listens)
        if opened < 0 { return nil }
        descriptor = opened
    }

    deinit { close(descriptor) }

    /// Asks for all routes of all families.
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

    /// Takes one datagram. Those of other processes than the kernel are thrown away.
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

    /// Bounds how long ``receive(into:waits:)`` waits.
    func setReceiveTimeout(seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }
}
