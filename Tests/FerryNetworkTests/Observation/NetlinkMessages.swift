import Glibc

@testable import FerryTestSupport

/// Messages of rtnetlink(7), written by hand, so that the numbers of the parser are checked independently.
enum Netlink {
    static let done: UInt16 = 3
    static let error: UInt16 = 2
    static let overrun: UInt16 = 4
    static let newLink: UInt16 = 16
    static let deleteLink: UInt16 = 17
    static let newAddress: UInt16 = 20
    static let deleteAddress: UInt16 = 21
    static let newRoute: UInt16 = 24
    static let deleteRoute: UInt16 = 25
    static let getRoute: UInt16 = 26

    static let multi: UInt16 = 2
    static let interrupted: UInt16 = 0x10
    static let requestAcknowledgeCreate: UInt16 = 1 | 4 | 0x400
    static let requestAcknowledge: UInt16 = 1 | 4

    /// A header and its payload, padded to four bytes.
    static func message(
        _ type: UInt16, flags: UInt16 = 0, sequence: UInt32 = 0, _ payload: [UInt8] = [], length: UInt32? = nil
    ) -> [UInt8] {
        let length = length ?? UInt32(16 + payload.count)
        let bytes = raw(length) + raw(type) + raw(flags) + raw(sequence) + raw(UInt32(0)) + payload
        return bytes + Array(repeating: 0, count: (4 - bytes.count % 4) % 4)
    }

    /// `struct rtmsg`, followed by attributes.
    static func route(
        family: Int32 = AF_INET, prefix: UInt8 = 0, table: UInt8 = 254, type: UInt8 = 1, flags: UInt32 = 0,
        _ attributes: [UInt8] = []
    ) -> [UInt8] {
        [UInt8(family), prefix, 0, 0, table, 3, 0, type] + raw(flags) + attributes
    }

    /// `struct rtattr` and its data, padded to four bytes.
    static func attribute(_ type: UInt16, _ data: [UInt8], length: UInt16? = nil) -> [UInt8] {
        let bytes = raw(length ?? UInt16(4 + data.count)) + raw(type) + data
        return bytes + Array(repeating: 0, count: (4 - bytes.count % 4) % 4)
    }

    /// `RTA_MULTIPATH` of `struct rtnexthop`s with these flags.
    static func multipath(_ hops: [UInt8], hopLength: UInt16 = 16) -> [UInt8] {
        let gateway = attribute(5, [10, 0, 0, 1])
        let (length, interface) = (raw(hopLength), raw(Int32(2)))
        return attribute(9, hops.flatMap { (flags: UInt8) -> [UInt8] in length + [flags, 0] + interface + gateway })
    }

    /// `struct ifinfomsg`.
    static func link(_ index: Int32, flags: UInt32, change: UInt32 = 0) -> [UInt8] {
        [0, 0, 1, 0] + raw(index) + raw(flags) + raw(change)
    }

    static func raw<Value: BitwiseCopyable>(_ value: Value) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }
}
