import Glibc
import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct RouteTableTests {
    private func give(_ table: inout RouteTable, _ bytes: [UInt8]) { bytes.withUnsafeBytes { table.receive($0) } }

    /// The result of a dump of these routes.
    private func status(of routes: [[UInt8]], _ setUp: (inout RouteTable) -> Void = { _ in }) -> Reachability.Status? {
        var table = RouteTable()
        setUp(&table)
        guard let sequence = table.nextDump() else { return nil }
        for route in routes {
            give(&table, Netlink.message(Netlink.newRoute, flags: Netlink.multi, sequence: sequence, route))
        }
        give(&table, Netlink.message(Netlink.done, flags: Netlink.multi, sequence: sequence, Netlink.raw(Int32(0))))
        return table.status
    }

    /// A table after a dump with these messages.
    private func settled(_ routes: [[UInt8]] = []) -> RouteTable {
        var table = RouteTable()
        let sequence = table.nextDump() ?? 0
        let messages = routes.map {
            Netlink.message(Netlink.newRoute, flags: Netlink.multi, sequence: sequence, $0)
        }
        give(&table, messages.flatMap { $0 })
        give(&table, Netlink.message(Netlink.done, flags: Netlink.multi, sequence: sequence))
        return table
    }

    @Test func aTableBeginsWithOneDump() {
        var table = RouteTable()
        #expect(table.status == nil)
        #expect(table.nextDump() == 1)
        #expect(table.nextDump() == nil, "one at a time")
        give(&table, Netlink.message(Netlink.done, flags: Netlink.multi, sequence: 1))
        #expect(table.status == .offline)
        #expect(table.nextDump() == nil, "nothing has changed")
    }

    @Test func whichRoutesMakeOnline() {
        let gateway = Netlink.attribute(5, [10, 0, 0, 1]) + Netlink.attribute(4, Netlink.raw(Int32(2)))
        #expect(status(of: [Netlink.route(gateway)]) == .online(.ipv4))
        #expect(status(of: [Netlink.route(family: AF_INET6)]) == .online(.ipv6))
        #expect(status(of: [Netlink.route(), Netlink.route(family: AF_INET6)]) == .online([.ipv4, .ipv6]))
        #expect(status(of: [Netlink.route(table: 100)]) == .online(.ipv4), "a table of a policy")
        #expect(status(of: [Netlink.route(prefix: 24)]) == .offline, "the own network")
        #expect(status(of: [Netlink.route(table: 255)]) == .offline, "the table of own addresses")
        #expect(status(of: [Netlink.route(type: 7)]) == .offline, "unreachable")
        #expect(status(of: [Netlink.route(type: 6)]) == .offline, "a black hole")
        #expect(status(of: [Netlink.route(flags: 1)]) == .offline, "dead")
        #expect(status(of: [Netlink.route(flags: 16)]) == .offline, "a link without a carrier")
        #expect(status(of: [Netlink.route(flags: 0x200)]) == .offline, "from the cache")
        #expect(status(of: [Netlink.route(flags: 4)]) == .online(.ipv4), "onlink")
        #expect(status(of: [Netlink.route(family: 128)]) == .offline, "of multicast")
        #expect(status(of: []) == .offline)
    }

    @Test func ofSeveralNextHopsOneIsEnough() {
        #expect(status(of: [Netlink.route(Netlink.multipath([0, 0]))]) == .online(.ipv4))
        #expect(status(of: [Netlink.route(Netlink.multipath([1, 16, 0]))]) == .online(.ipv4))
        #expect(status(of: [Netlink.route(Netlink.multipath([1, 16]))]) == .offline)
        #expect(status(of: [Netlink.route(flags: 16, Netlink.multipath([0]))]) == .online(.ipv4))
        #expect(status(of: [Netlink.route(Netlink.multipath([]))]) == .offline)
        for length: UInt16 in [0, 1, 7, 40, .max] {
            #expect(status(of: [Netlink.route(Netlink.multipath([1, 0], hopLength: length))]) == .offline)
        }
    }

    @Test func damagedAttributesAreAsNone() {
        for length: UInt16 in [0, 1, 3, 9, 4096, .max] {
            let damaged = Netlink.attribute(9, Netlink.raw(UInt32(1)), length: length)
            #expect(status(of: [Netlink.route(damaged)]) == .online(.ipv4))
            #expect(status(of: [Netlink.route(flags: 1, damaged)]) == .offline)
        }
    }

    @Test(arguments: [
        (Netlink.newRoute, Netlink.route(), true), (Netlink.deleteRoute, Netlink.route(), true),
        (Netlink.deleteRoute, Netlink.route(family: AF_INET6), true),
        (Netlink.newRoute, Netlink.route(prefix: 24), false), (Netlink.deleteRoute, Netlink.route(prefix: 32), false),
        (Netlink.newLink, Netlink.link(2, flags: 0x1_0043), true),
        (Netlink.deleteLink, Netlink.link(2, flags: 0), true),
        (Netlink.deleteAddress, [2, 24, 0, 0, 1, 0, 0, 0], true),
        (Netlink.newAddress, [2, 24, 0, 0, 1, 0, 0, 0], false), (99, [], false),
    ])
    func whatAsksForAnotherDump(_ type: UInt16, _ payload: [UInt8], _ asks: Bool) {
        var table = settled([Netlink.route()])
        give(&table, Netlink.message(type, payload))
        #expect((table.nextDump() != nil) == asks)
        #expect(table.status == .online(.ipv4), "until it is answered")
    }

    @Test func aLinkThatSaysTheSameAgainIsNoNews() {
        var table = settled()
        give(&table, Netlink.message(Netlink.newLink, Netlink.link(2, flags: 0x1_0043)))
        let sequence = table.nextDump()
        give(&table, Netlink.message(Netlink.done, sequence: sequence ?? 0))
        // Promiscuous mode is not a change, either.
        give(&table, Netlink.message(Netlink.newLink, Netlink.link(2, flags: 0x1_0143)))
        #expect(table.nextDump() == nil)
        give(&table, Netlink.message(Netlink.newLink, Netlink.link(2, flags: 0x1003)))
        #expect(table.nextDump() != nil, "the carrier has gone")
    }

    @Test func changesDuringADumpLeadToAnother() {
        var table = RouteTable()
        let first = table.nextDump() ?? 0
        give(&table, Netlink.message(Netlink.deleteRoute, Netlink.route()))
        #expect(table.nextDump() == nil)
        give(&table, Netlink.message(Netlink.newRoute, flags: Netlink.multi, sequence: first, Netlink.route()))
        give(&table, Netlink.message(Netlink.done, sequence: first))
        #expect(table.nextDump() == first + 1)
    }

    @Test func aNoteIsNotTakenForAPartOfADump() {
        var table = RouteTable()
        let sequence = table.nextDump() ?? 0
        // Another sender of changes may have counted up to the same number.
        give(&table, Netlink.message(Netlink.newRoute, sequence: sequence, Netlink.route()))
        give(&table, Netlink.message(Netlink.done, sequence: sequence))
        #expect(table.status == .offline)
        #expect(table.nextDump() != nil)
    }

    @Test func partsOfAnotherDumpAreNotOfThisOne() {
        var table = RouteTable()
        let sequence = table.nextDump() ?? 0
        give(&table, Netlink.message(Netlink.newRoute, flags: Netlink.multi, sequence: sequence + 7, Netlink.route()))
        give(&table, Netlink.message(Netlink.done, sequence: sequence + 7))
        #expect(table.status == nil)
        give(&table, Netlink.message(Netlink.error, sequence: sequence + 7, Netlink.raw(Int32(-16))))
        give(&table, Netlink.message(Netlink.done, sequence: sequence))
        #expect(table.status == .offline)
    }

    @Test func aDumpThatLostSomethingDoesNotCount() {
        for damage in 0..<4 {
            var table = RouteTable()
            let sequence = table.nextDump() ?? 0
            switch damage {
            case 0: table.lostMessages()
            case 1: give(&table, Netlink.message(Netlink.overrun))
            case 2:
                let flags = Netlink.multi | Netlink.interrupted
                give(&table, Netlink.message(Netlink.newRoute, flags: flags, sequence: sequence, Netlink.route()))
            default: give(&table, Netlink.message(Netlink.newRoute, sequence: sequence, [1, 2, 3]))
            }
            give(&table, Netlink.message(Netlink.done, sequence: sequence))
            #expect(table.status == nil)
            let again = table.nextDump() ?? 0
            #expect(again != 0)
            give(&table, Netlink.message(Netlink.done, sequence: again))
            #expect(table.status == .offline)
            #expect(table.nextDump() == nil)
        }
    }

    @Test func messagesLostBetweenDumpsLeadToAnother() {
        var table = settled()
        table.lostMessages()
        #expect(table.nextDump() != nil)
    }

    @Test func aKernelThatRefusesIsNotAskedForever() {
        var table = RouteTable()
        var asked = 0
        while let sequence = table.nextDump() {
            asked += 1
            give(&table, Netlink.message(Netlink.error, sequence: sequence, Netlink.raw(Int32(-1))))
        }
        #expect(asked == RouteTable.mostUnsound)
        #expect(table.isGivenUp && table.status == nil)
        give(&table, Netlink.message(Netlink.newRoute, Netlink.route()))
        let sequence = table.nextDump() ?? 0
        give(&table, Netlink.message(Netlink.done, sequence: sequence))
        #expect(!table.isGivenUp && table.status == .offline)
    }

    @Test(arguments: [0, 1, 15, 17, 4096, UInt32.max - 3, UInt32.max])
    func hostileLengthsEndTheDatagramAndNothingElse(_ length: UInt32) {
        var table = settled([Netlink.route()])
        give(&table, Netlink.message(Netlink.newRoute, Netlink.route(prefix: 24), length: length))
        // 17 is the length of a message with a route of one byte.
        #expect(table.nextDump() != nil)
        #expect(table.status == .online(.ipv4))
    }

    @Test func everyCutOfADatagramIsSurvived() {
        let whole =
            Netlink.message(Netlink.newRoute, Netlink.route(Netlink.multipath([1, 0])))
            + Netlink.message(Netlink.newLink, Netlink.link(2, flags: 0x1043))
            + Netlink.message(Netlink.done, Netlink.raw(Int32(0)))
        for length in 0...whole.count {
            var table = settled([Netlink.route()])
            give(&table, Array(whole[..<length]))
            #expect(table.status == .online(.ipv4))
            #expect((table.nextDump() != nil) == (length > 0))
        }
    }

    @Test func bytesOfAnyKindAreSurvived() {
        var random = SystemRandomNumberGenerator()
        let whole = Netlink.message(
            Netlink.newRoute, flags: Netlink.multi, sequence: 1, Netlink.route(Netlink.multipath([1, 16, 0])))
        for _ in 0..<20_000 {
            var table = RouteTable()
            _ = table.nextDump()
            var bytes = whole + whole
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: .min ... .max, using: &random)
            }
            give(&table, bytes)
            give(&table, (0..<64).map { _ in UInt8.random(in: .min ... .max, using: &random) })
            give(&table, Netlink.message(Netlink.done, sequence: 1))
            while let sequence = table.nextDump() { give(&table, Netlink.message(Netlink.done, sequence: sequence)) }
            #expect(table.status != nil, "it still works")
        }
    }
}
