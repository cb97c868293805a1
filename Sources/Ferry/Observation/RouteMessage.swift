import Cnetlink
import Glibc

/// What matters of a message of a route (rtnetlink(7)).
struct RouteMessage {
    /// A way to everywhere; not necessarily one that can be used.
    let isDefault: Bool
    /// The family of a default route over which something can be sent.
    let usableFamily: Reachability.AddressFamilies?

    /// `nil` when the bytes are not a whole message.
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
        // Entries of the cache, and those that say unreachable, are no ways; nor are this machine's own addresses.
        let isWay =
            Int(route.rtm_type) == Int(RTN_UNICAST) && route.rtm_flags & UInt32(RTM_F_CLONED) == 0
            && Int(route.rtm_table) != Int(RT_TABLE_LOCAL.rawValue)
        usableFamily = isWay && Self.hasLink(route.rtm_flags, attributes) ? family : nil
    }

    /// Of several next hops one is enough; without them the flags are those of the only one.
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
