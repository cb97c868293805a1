import CAllocations
import CFerry
import FerryTesting
import Foundation
import Testing

extension CoreTests {
    /// Names and addresses, through the `lookup` hook.
    @Suite struct Names {
        private let lookups = LookupStub.shared

        private func withNames(
            engine: Int = testedEngine, _ body: (CoreLoop, LoopbackServer, (String) -> String) async throws -> Void
        ) async throws {
            var options = CoreLoop.Options()
            options.engine = engine
            options.usesLookupStub = true
            try await withCore(options) { core, server in
                try await body(core, server) { "http://\($0):\(server.port)/hello" }
            }
        }

        /// A busy machine may delay one of them; a request that waited for a timer would be late each time.
        @Test func refusedWithin100Milliseconds() async throws {
            var options = LoopbackServer.Options()
            options.accepting = .refused
            try await withCore(server: options, probes: false) { core, server in
                var quickest = UInt64.max
                for _ in 0..<20 {
                    let result = try await core.get(server.baseURL + "/")
                    #expect(result.fault == CoreFault(FERRY_E_CONNECT, FERRY_D_CONNECT_REFUSED))
                    #expect(
                        result.osErrno == ECONNREFUSED && result.phase == FERRY_PHASE_CONNECT && !result.isProcessed)
                    quickest = min(quickest, UInt64(result.metrics.total))
                }
                #expect(quickest < 100_000, "\(quickest) microseconds")
            }
        }

        @Test func invalidIsNotFoundAndLocalhostIsKnown() async throws {
            try await withCore { core, server in
                for name in ["x.invalid", "invalid", "X.INVALID", "x.invalid."] {
                    let result = try await core.get("http://\(name)/")
                    #expect(result.fault == CoreFault(FERRY_E_DNS, FERRY_D_DNS_NOT_FOUND), "\(name)")
                    #expect(result.phase == FERRY_PHASE_DNS)
                }
                for name in ["localhost", "a.localhost", "LOCALHOST", "localhost."] {
                    let result = try await core.get("http://\(name):\(server.port)/hello")
                    #expect(result.fault == .ok && result.peer == "127.0.0.1", "\(name)")
                }
            }
        }

        @Test func codesOfTheResolver() async throws {
            try await withNames { core, _, url in
                for (name, code, detail) in [
                    ("none.names.test", EAI_NONAME, FERRY_D_DNS_NOT_FOUND),
                    ("again.names.test", EAI_AGAIN, FERRY_D_DNS_TEMPORARY),
                    ("fail.names.test", EAI_FAIL, FERRY_D_DNS_FAILED),
                ] {
                    lookups.set(name, [], code: code)
                    let result = try await core.get(url(name))
                    #expect(result.fault == CoreFault(FERRY_E_DNS, detail), "\(name)")
                }
                lookups.set("again.names.test", ["127.0.0.1"])  // a failure is not cached
                let seen1 = try await core.get(url("again.names.test"))
                #expect(seen1.fault == .ok)
            }
        }

        @Test(.enabled(if: allocations_are_counted()))
        func withoutMemoryForTheAnswerAllWhoWaitForItEnd() async throws {
            try await withNames { core, _, url in
                lookups.set("starved.names.test", ["127.0.0.1"], isHeld: true)
                lookups.starve("starved.names.test")
                let ids = try (0..<10).map { _ in try core.submit(CoreRequest("GET", url("starved.names.test"))) }
                await core.untilStatistics { $0.resolving == 10 }
                lookups.release("starved.names.test")
                for result in await core.results(of: ids) {
                    #expect(result.fault == CoreFault(FERRY_E_MEMORY))
                    #expect(result.phase == FERRY_PHASE_DNS && !result.isProcessed)
                }
                // This is not remembered for the name.
                lookups.set("starved.names.test", ["127.0.0.1"])
                lookups.starve("starved.names.test", false)
                let again = try await core.get(url("starved.names.test"))
                #expect(again.fault == .ok)
            }
        }

        @Test func oneLookupANameForAllWhoAsk() async throws {
            try await withNames { core, server, url in
                lookups.set("one.names.test", ["127.0.0.1"], isHeld: true)
                let ids = try (0..<50).map { _ in try core.submit(CoreRequest("GET", url("one.names.test"))) }
                await lookups.until("one.names.test", lookups: 1)
                await core.untilStatistics { $0.resolving == 50 }
                lookups.release("one.names.test")
                for result in await core.results(of: ids) { #expect(result.fault == .ok) }
                _ = try await core.get(url("one.names.test"))
                #expect(lookups.lookups("one.names.test") == 1)
                #expect(core.statistics.lookups == 1 && core.statistics.resolving == 0)
            }
        }

        @Test func aNameThatHangsDoesNotHoldUpAnother() async throws {
            try await withNames { core, _, url in
                for i in 0..<6 {
                    // An idle lookup thread is left from the last round; both lookups come in one turn.
                    let (fine, hanging) = ("fine\(i).names.test", "hang\(i).names.test")
                    lookups.set(fine, ["127.0.0.1"])
                    lookups.set(hanging, ["127.0.0.1"], isHeld: true)
                    let first = try core.submit(CoreRequest("GET", url(fine)))
                    let second = try core.submit(CoreRequest("GET", url(hanging)))
                    let result = await core.result(of: first)
                    #expect(result.fault == .ok)
                    core.cancel(second)
                    let cancelled = await core.result(of: second)
                    #expect(cancelled.fault == .cancelled)
                    lookups.release(hanging)
                    let again = try await core.get(url(fine))
                    #expect(again.fault == .ok)
                }
            }
        }

        @Test func cancelAndStopWhileALookupHangsAreAnsweredAtOnce() async throws {
            lookups.set("stop.names.test", ["127.0.0.1"], isHeld: true)
            defer { lookups.release("stop.names.test") }
            try await withNames { core, _, url in
                let ids = try (0..<3).map { _ in try core.submit(CoreRequest("GET", url("stop.names.test"))) }
                await lookups.until("stop.names.test", lookups: 1)
                core.cancel(ids[0])
                let cancelled = await core.result(of: ids[0])
                #expect(cancelled.fault == .cancelled && cancelled.phase == FERRY_PHASE_DNS)
                core.stop()
                for result in await core.results(of: Array(ids.dropFirst())) { #expect(result.fault == .shutdown) }
            }
            // None of the waiting transfers remains: the lookup still hangs.
            #expect(lookups.isAtWork("stop.names.test"))
        }

        @Test func fallsBackFromARefusedAddressToTheNext() async throws {
            try await withNames { core, _, url in
                lookups.set("two.names.test", ["::1", "127.0.0.1"])  // the server listens on 127.0.0.1 only
                let result = try await core.get(url("two.names.test"))
                #expect(result.fault == .ok && result.peer == "127.0.0.1")
                lookups.set("three.names.test", ["127.0.0.9", "127.0.0.1"])
                let same = try await core.get(url("three.names.test"))
                #expect(same.fault == .ok && same.peer == "127.0.0.1")
            }
        }

        @Test func allAddressesAreTriedAlsoWhenEachFailsAtOnce() async throws {
            try await withNames { core, server, url in
                lookups.set("many.names.test", (9..<21).map { "127.0.0.\($0)" } + ["127.0.0.1"])
                let found = try await core.get(url("many.names.test"))
                #expect(found.fault == .ok && found.peer == "127.0.0.1")
                lookups.set("dead.names.test", (9..<21).map { "127.0.0.\($0)" } + ["::1"])
                let dead = try await core.get(url("dead.names.test"))
                #expect(dead.fault == CoreFault(FERRY_E_CONNECT, FERRY_D_CONNECT_REFUSED))
                #expect(server.connectionCount == 1)
            }
        }

        @Test func aTrailingDotAndUpperCase() async throws {
            try await withNames { core, server, url in
                lookups.set("dot.names.test.", ["127.0.0.1"])
                lookups.set("dot.names.test", ["127.0.0.1"])
                let seen3 = try await core.get(url("dot.names.test."))
                #expect(seen3.fault == .ok)
                lookups.set("upper.names.test", ["127.0.0.1"])
                let seen4 = try await core.get(url("UPPER.Names.Test"))
                #expect(seen4.fault == .ok)
                #expect(server.requests.last?.headers["Host"] == "upper.names.test:\(server.port)")
            }
        }

        /// The native engine closes the connections of an origin that it forgets.
        @Test func anAnswerThatChangedIsFollowed() async throws {
            try await withNames(engine: FERRY_ENGINE_LIBCURL) { core, server, url in
                lookups.set("moves.names.test", ["127.0.0.1"])
                _ = try await core.get(url("moves.names.test"))
                // 1,200 other origins evict it from the table of hosts; they refuse, as nobody listens there.
                let others = try (1...1_200).map { try core.submit(CoreRequest("GET", "http://127.0.0.1:\($0)/")) }
                for id in others { core.cancel(id) }
                _ = await core.results(of: others)
                lookups.set("moves.names.test", ["127.0.0.9"])
                let old = try await core.get(url("moves.names.test"))
                #expect(old.isReused)  // the connection still exists, for the same origin
                server.script(path: "/bye", [.send(answer("bye", "Connection: close")), .close])
                _ = try await core.get("http://moves.names.test:\(server.port)/bye")
                let new = try await core.get(url("moves.names.test"))
                #expect(new.fault == CoreFault(FERRY_E_CONNECT, FERRY_D_CONNECT_REFUSED))
                #expect(lookups.lookups("moves.names.test") == 2)
            }
        }

        @Test func anAddressOfVersion6() async throws {
            var options = LoopbackServer.Options()
            options.address = "::1"
            try await withCore(server: options) { core, server in
                let result = try await core.get(server.baseURL + "/hello")
                #expect(result.fault == .ok && result.peer == "::1")
                let seen5 = try await core.get(server.baseURL + "/hello")
                #expect(seen5.isReused)
            }
        }

        /// The interface of an address is for the system, not for the server (RFC 6874, 4).
        @Test(arguments: ["lo", "1"])
        func anAddressWithAZone(zone: String) async throws {
            var options = LoopbackServer.Options()
            options.address = "::1"
            try await withCore(server: options) { core, server in
                let result = try await core.get("http://[::1%25\(zone)]:\(server.port)/hello")
                #expect(result.fault == .ok && result.peer == "::1")
                #expect(server.requests.last?.headers["Host"] == "[::1]:\(server.port)")
            }
        }

        /// A name server that hangs occupies the threads that wait for it, and no others.
        @Test func manyNamesThatHangDoNotHoldUpOthersOfAnyLoop() async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            let names = (0..<100).map { "name\($0).hung-server.test" }
            for name in names { lookups.set(name, ["127.0.0.1"], isHeld: true) }
            try await withCore(options) { core, server in
                let other = try CoreLoop(options)
                let ids = try names.map { try core.submit(CoreRequest("GET", "http://\($0):\(server.port)/hello")) }
                await core.untilStatistics { $0.resolving == 100 }
                var quickest = UInt64.max
                for i in 0..<5 {
                    for loop in [core, other] {
                        let name = "fine\(i)-\(loop === core).healthy-server.test"
                        lookups.set(name, ["127.0.0.1"])
                        let result = try await loop.get("http://\(name):\(server.port)/hello")
                        #expect(result.fault == .ok && result.metrics.total < 5_000_000)
                        quickest = min(quickest, UInt64(result.metrics.total))
                    }
                }
                #expect(quickest < 200_000, "\(quickest) microseconds")
                for id in ids { core.cancel(id) }
                for result in await core.results(of: ids) { #expect(result.fault == .cancelled) }
                for name in names { lookups.release(name) }
                other.free()
            }
        }

        /// All of one domain, or each of its own: nothing shows that they share a name server. The healthy name is
        /// requested after all of them.
        @Test(arguments: [true, false]) func aThousandNamesThatHangHoldUpNoOther(areOfOneDomain: Bool) async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            options.maxTransfers = 1_200
            for round in 0..<3 {
                let names = (0..<1_000).map {
                    areOfOneDomain ? "name\($0).silent-server\(round).test" : "www.silent\($0)-\(round).test"
                }
                for name in names { lookups.set(name, ["127.0.0.1"], isHeld: true) }
                let fine = "www.answered-\(areOfOneDomain)-\(round).test"
                lookups.set(fine, ["127.0.0.1"])
                var took = UInt64.max
                try await withCore(options) { core, server in
                    let ids = try names.map { try core.submit(CoreRequest("GET", "http://\($0):\(server.port)/hello")) }
                    let result = try await core.get("http://\(fine):\(server.port)/hello")
                    #expect(result.fault == .ok)
                    took = UInt64(result.metrics.total)
                    for id in ids { core.cancel(id) }
                    _ = await core.results(of: ids)
                }
                for name in names { lookups.release(name) }
                while names.contains(where: lookups.isAtWork) { await Task.yield() }
                // A busy machine may be late once. Eight lookups at once, for 30 ms each, would take four seconds.
                if took < 1_000_000 { return }
                #expect(round < 2, "\(took) microseconds")
            }
        }

        /// 128 threads are the share of one domain.
        @Test func lookupsThatNobodyWaitsForNeverBegin() async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            let names = (0..<300).map { "name\($0).left-server.test" }
            for name in names { lookups.set(name, ["127.0.0.1"], isHeld: true) }
            lookups.set("last.left-server.test", ["127.0.0.1"])
            try await withCore(options) { core, server in
                let ids = try names.map { try core.submit(CoreRequest("GET", "http://\($0):\(server.port)/hello")) }
                await core.untilStatistics { $0.resolving == 300 }
                for id in ids { core.cancel(id) }
                _ = await core.results(of: ids)
                await core.turn()
                for name in names { lookups.release(name) }
                // It comes after all that are left.
                let last = try await core.get("http://last.left-server.test:\(server.port)/hello")
                #expect(last.fault == .ok)
                // The threads of lookups that had begun return at different times.
                while names.contains(where: lookups.isAtWork) { await Task.yield() }
                let begun = names.reduce(0) { $0 + lookups.lookups($1) }
                #expect(begun <= 128, "\(begun)")
            }
        }
    }
}
