import Cnetlink
import Glibc

/// Derives the default routes from the kernel's messages: takes bytes, and returns a status and requests for dumps.
///
/// It keeps no copy of the routes. A message that may affect a default route leads to a new dump, because the kernel
/// does not report every route that disappears with a link or an address, and messages may be lost.
struct RouteTable: Sendable {
    private struct Dump {
        let sequence: UInt32
        var families: Reachability.AddressFamilies = []
        /// No message was lost, and the routes did not change in the meantime.
        var isSound = true
    }

    /// After this many unsound dumps in a row it waits for the next message.
    static let mostUnsound = 16

    /// The latest complete status; `nil` before the first.
    private(set) var status: Reachability.Status?
    private(set) var isGivenUp = false

    private var dump: Dump?
    private var isStale = true
    private var unsound = 0
    private var lastSequence: UInt32 = 0
    /// The flags of known links.
    private var links: [Int32: UInt32] = [:]

    /// The number of a dump to request now, if one is needed.
    mutating func nextDump() -> UInt32? {
        if dump != nil || !isStale { return nil }
        isStale = false
        if unsound >= Self.mostUnsound {
            unsound = 0
            isGivenUp = true
            return nil
        }
        isGivenUp = false
        lastSequence = lastSequence == .max ? 1 : lastSequence + 1
        dump = Dump(sequence: lastSequence)
        return lastSequence
    }

    /// The kernel had more messages than fit (`ENOBUFS`), or a datagram exceeded its buffer.
    mutating func lostMessages() {
        dump?.isSound = false
        isStale = true
    }

    /// The dump failed.
    mutating func dumpFailed() {
        if dump == nil { return }
        dump = nil
        unsound += 1
        isStale = true
    }

    /// Handles one datagram, which contains consecutive messages (netlink(7)).
    mutating func receive(_ datagram: UnsafeRawBufferPointer) {
        var rest = datagram[...]
        while !rest.isEmpty {
            let bytes = UnsafeRawBufferPointer(rebasing: rest)
            guard let header = bytes.value(at: 0, as: nlmsghdr.self) else { return lostMessages() }
            let length = Int(header.nlmsg_len)
            guard length >= MemoryLayout<nlmsghdr>.size, length <= bytes.count else { return lostMessages() }
            receive(
                header, UnsafeRawBufferPointer(rebasing: bytes[MemoryLayout<nlmsghdr>.size..<length]))
            rest = rest.dropFirst(aligned(length))
        }
    }

    private mutating func receive(_ header: nlmsghdr, _ payload: UnsafeRawBufferPointer) {
        let isOfDump = header.nlmsg_flags & UInt16(NLM_F_MULTI) != 0 || header.nlmsg_type < UInt16(NLMSG_MIN_TYPE)
        if isOfDump, header.nlmsg_seq == dump?.sequence, header.nlmsg_flags & UInt16(NLM_F_DUMP_INTR) != 0 {
            dump?.isSound = false
        }
        switch Int32(header.nlmsg_type) {
        case NLMSG_DONE: if header.nlmsg_seq == dump?.sequence { finishDump() }
        case NLMSG_ERROR: if header.nlmsg_seq == dump?.sequence { dumpFailed() }
        case NLMSG_OVERRUN: lostMessages()
        case Int32(RTM_NEWROUTE), Int32(RTM_DELROUTE):
            guard let route = RouteMessage(payload) else { return lostMessages() }
            if !route.isDefault { return }
            if !isOfDump {
                isStale = true
            } else if header.nlmsg_seq == dump?.sequence, let family = route.usableFamily {
                dump?.families.insert(family)
            }
        case Int32(RTM_NEWLINK): linkChanged(payload)
        // Routes disappear with their link, and with their source address.
        case Int32(RTM_DELLINK), Int32(RTM_DELADDR): isStale = true
        default: break
        }
    }

    /// Many messages about a link do not matter: statistics, scans of a radio.
    private mutating func linkChanged(_ payload: UnsafeRawBufferPointer) {
        guard let link = payload.value(at: 0, as: ifinfomsg.self) else { return lostMessages() }
        // IFF_UP, IFF_RUNNING, IFF_LOWER_UP
        let flags = link.ifi_flags & (0x1 | 0x40 | 0x1_0000)
        if links.count > 4096 { links.removeAll() }
        if links.updateValue(flags, forKey: link.ifi_index) != flags { isStale = true }
    }

    private mutating func finishDump() {
        guard let done = dump.take() else { return }
        if done.isSound {
            unsound = 0
            status = done.families.isEmpty ? .offline : .online(done.families)
        } else {
            unsound += 1
            isStale = true
        }
    }
}

/// Lengths in netlink are rounded up to four bytes between parts.
func aligned(_ length: Int) -> Int { (length + 3) & ~3 }

extension UnsafeRawBufferPointer {
    /// A C structure at this offset; `nil` if it is incomplete.
    func value<Value: BitwiseCopyable>(at offset: Int, as type: Value.Type) -> Value? {
        if offset < 0 || count - offset < MemoryLayout<Value>.size { return nil }
        return loadUnaligned(fromByteOffset: offset, as: type)
    }
}

/// The relevant parts of a route message (rtnetlink(7)).
struct RouteMessage {
    /// A route to all destinations, not necessarily a usable one.
    let isDefault: Bool
    /// The address family of a usable default route.
    let usableFamily: Reachability.AddressFamilies?

    /// `nil` if the bytes are not a complete message.
    init?(_ payload: UnsafeRawBufferPointer) {
        guard let route = payload.value(at: 0, as: rtmsg.self) else { return nil }
        let family: Reachability.AddressFamilies? =
            switch Int32(route.rtm_family) {
            case AF_INET: .ipv4
            case AF_INET6: .ipv6
            default: nil
            }
        isDefault = family != nil && route.rtm_dst_len == 0
        guard isDefault else {
            usableFamily = nil
            return
        }
        let attributes = UnsafeRawBufferPointer(
            rebasing: payload[min(aligned(MemoryLayout<rtmsg>.size), payload.count)...])
        // Cache entries and unreachable routes are not usable, and neither are routes to this machine's own addresses.
        let isWay =
            Int(route.rtm_type) == Int(RTN_UNICAST) && route.rtm_flags & UInt32(RTM_F_CLONED) == 0
            && Int(route.rtm_table) != Int(RT_TABLE_LOCAL.rawValue)
        usableFamily = isWay && Self.hasLink(route.rtm_flags, attributes) ? family : nil
    }

    /// One of several next hops is enough; without a list the flags are those of the only one.
    private static func hasLink(_ flags: UInt32, _ attributes: UnsafeRawBufferPointer) -> Bool {
        var rest = attributes[...]
        while let attribute = UnsafeRawBufferPointer(rebasing: rest).value(at: 0, as: rtattr.self) {
            let length = Int(attribute.rta_len)
            if length < MemoryLayout<rtattr>.size || length > rest.count { break }
            if Int(attribute.rta_type) & 0x3FFF == Int(RTA_MULTIPATH.rawValue) {
                return hasLiveHop(rest.prefix(length).dropFirst(MemoryLayout<rtattr>.size))
            }
            rest = rest.dropFirst(aligned(length))
        }
        return isLive(flags)
    }

    private static func hasLiveHop(_ hops: Slice<UnsafeRawBufferPointer>) -> Bool {
        var rest = hops
        while let hop = UnsafeRawBufferPointer(rebasing: rest).value(at: 0, as: rtnexthop.self) {
            if isLive(UInt32(hop.rtnh_flags)) { return true }
            let length = Int(hop.rtnh_len)
            if length < MemoryLayout<rtnexthop>.size || length > rest.count { return false }
            rest = rest.dropFirst(aligned(length))
        }
        return false
    }

    private static func isLive(_ flags: UInt32) -> Bool { flags & UInt32(RTNH_F_DEAD | RTNH_F_LINKDOWN) == 0 }
}
