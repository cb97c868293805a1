import CFerry
import FerryTesting
import Testing

extension CoreTests {
    /// The order in which transfers start.
    @Suite struct Admission {
        /// A loop with one slot, taken until `release` is signalled.
        private func withHeldLoop(
            _ body: (CoreLoop, LoopbackServer, _ release: () async -> Void) async throws -> Void
        ) async throws {
            var options = CoreLoop.Options()
            options.maxTransfers = 1
            try await withCore(options) { core, server in
                server.script(path: "/hold", [.wait("release"), .send(answer("ok")), .serve])
                let hold = try core.submit(CoreRequest("GET", server.baseURL + "/hold"))
                try await server.waitForRequests(1)
                try await body(core, server) {
                    server.signal("release")
                    _ = await core.result(of: hold)
                }
            }
        }

        private func get(_ server: LoopbackServer, _ priority: Int) -> CoreRequest {
            CoreRequest("GET", server.baseURL + "/hello").with {
                $0.priority = priority
                $0.flags = .notifyStart
            }
        }

        @Test func higherGoFirstAndEqualsInTheirOrder() async throws {
            try await withHeldLoop { core, server, release in
                let low = try (0..<3).map { _ in try core.submit(get(server, FERRY_LOW)) }
                let normal = try (0..<3).map { _ in try core.submit(get(server, FERRY_NORMAL)) }
                let high = try (0..<3).map { _ in try core.submit(get(server, FERRY_HIGH)) }
                await core.untilStatistics { $0.waiting == 9 }
                #expect(core.statistics.running == 1)
                await release()
                _ = await core.results(of: low + normal + high)
                #expect(core.record.read { $0.startOrder } == high + normal + low)
            }
        }

        /// libcurl's part of the loop is made for 64 at once.
        @Test func whatOthersWaitForStartsAlsoIfAllHandlesAreTaken() async throws {
            var options = CoreLoop.Options()
            (options.maxTransfers, options.maxPerHost) = (64, 64)
            try await withCore(options) { core, server in
                server.script(path: "/hold", [.expectHead, .wait("release"), .send(answer("ok")), .serve])
                let held = try (0..<64).map { _ in try core.submit(CoreRequest("GET", server.baseURL + "/hold")) }
                try await server.waitForRequests(64)
                let awaited = try core.submit(get(server, FERRY_LOW).with { $0.flags.insert(.unlimited) })
                #expect(await core.result(of: awaited).fault == .ok)
                server.signal("release")
                for result in await core.results(of: held) { #expect(result.fault == .ok) }
            }
        }

        @Test func whatOthersWaitForStartsBeyondTheLimits() async throws {
            try await withHeldLoop { core, server, release in
                let high = try core.submit(get(server, FERRY_HIGH))
                let awaited = try core.submit(get(server, FERRY_LOW).with { $0.flags.insert(.unlimited) })
                #expect(await core.result(of: awaited).fault == .ok)
                await core.untilStatistics { $0.running == 1 && $0.waiting == 1 }
                await release()
                #expect(await core.result(of: high).fault == .ok)
            }
        }

        @Test func lowIsServedUnderAStreamOfHigh() async throws {
            try await withHeldLoop { core, server, release in
                let low = try core.submit(get(server, FERRY_LOW))
                let normal = try core.submit(get(server, FERRY_NORMAL))
                let high = try (0..<200).map { _ in try core.submit(get(server, FERRY_HIGH)) }
                await release()
                _ = await core.results(of: high + [low, normal])
                let order = core.record.read { $0.startOrder }
                #expect(order.firstIndex(of: low)! < 40)
                #expect(order.firstIndex(of: normal)! < 40)
            }
        }

        @Test func setPriorityMovesAWaitingOne() async throws {
            try await withHeldLoop { core, server, release in
                let ids = try (0..<4).map { _ in try core.submit(get(server, FERRY_NORMAL)) }
                core.setPriority(ids[3], FERRY_HIGH)
                core.setPriority(ids[0], FERRY_LOW)
                core.setPriority(ids[1], 99)  // clamped
                core.setPriority(424242, FERRY_HIGH)  // unknown: no effect
                await core.turn()
                await release()
                _ = await core.results(of: ids)
                #expect(core.record.read { $0.startOrder } == [ids[3], ids[1], ids[2], ids[0]])
            }
        }

        @Test func aFullHostParksItsOwnAndOthersPass() async throws {
            var options = CoreLoop.Options()
            options.maxPerHost = 2
            try await withCore(options) { core, server in
                let other = try LoopbackServer()
                defer { other.stop() }
                server.script(path: "/hold", [.wait("release"), .send(answer("ok")), .serve])
                let held = try (0..<10).map { _ in
                    try core.submit(CoreRequest("GET", server.baseURL + "/hold").with { $0.flags = .notifyStart })
                }
                let passes = try await core.get(other.baseURL + "/hello")
                #expect(passes.fault == .ok)
                try await server.waitForRequests(2)
                await core.untilStatistics { $0.running == 2 && $0.waiting == 8 }
                #expect(server.connectionCount == 2)
                // A parked transfer is cancelled, another moves to the front.
                core.cancel(held[5])
                let cancelled = await core.result(of: held[5])
                #expect(cancelled.fault == .cancelled && cancelled.phase == FERRY_PHASE_QUEUED)
                core.setPriority(held[9], FERRY_HIGH)
                await core.turn()
                server.signal("release")
                _ = await core.results(of: held)
                let order = core.record.read { $0.startOrder }
                #expect(order == [held[0], held[1], held[9], held[2], held[3], held[4], held[6], held[7], held[8]])
                #expect(server.connectionCount == 2)
            }
        }

        /// Two places are left for two hosts that may have three each.
        @Test func hostsWithParkedTransfersTakeTurns() async throws {
            var options = CoreLoop.Options()
            (options.maxTransfers, options.maxPerHost) = (7, 3)
            try await withCore(options) { core, server in
                let others = try (0..<3).map { _ in try LoopbackServer() }
                defer { for other in others { other.stop() } }
                for one in [server] + others {
                    one.script(path: "/hold", [.wait("release"), .send(answer("ok")), .serve])
                }
                func submit(_ count: Int, _ path: String, to one: LoopbackServer, _ priority: Int) throws -> [UInt64] {
                    try (0..<count).map { _ in
                        try core.submit(get(one, priority).with { $0.url = Array((one.baseURL + path).utf8) })
                    }
                }
                let hosts = [server, others[0]]
                let held = try hosts.map { try submit(3, "/hold", to: $0, FERRY_NORMAL) }
                let parked = try hosts.map { try submit(6, "/hello", to: $0, FERRY_NORMAL) }
                await core.untilStatistics { $0.running == 6 && $0.waiting == 12 }
                let long =
                    try submit(3, "/hold", to: others[1], FERRY_HIGH) + submit(2, "/hold", to: others[2], FERRY_HIGH)
                await core.untilStatistics { $0.running == 7 && $0.waiting == 16 }
                for (host, ids) in zip(hosts, held) {
                    host.signal("release")
                    _ = await core.results(of: ids)
                }
                for result in await core.results(of: parked[0] + parked[1]) { #expect(result.fault == .ok) }
                let order = core.record.read { $0.startOrder }.filter {
                    parked[0].contains($0) || parked[1].contains($0)
                }
                #expect(order.prefix(4).count { parked[1].contains($0) } == 2, "\(order)")
                for other in others[1...] { other.signal("release") }
                _ = await core.results(of: long)
            }
        }

        /// It counts as running while it waits for its name, and needs its place only later.
        @Test func whatOthersWaitForTakesNobodysPlace() async throws {
            var options = CoreLoop.Options()
            (options.maxTransfers, options.maxPerHost, options.usesLookupStub) = (64, 64, true)
            let name = "late.admission.test"
            LookupStub.shared.set(name, ["127.0.0.1"], isHeld: true)
            try await withCore(options) { core, server in
                server.script(path: "/hold", [.expectHead, .wait("release"), .send(answer("ok")), .serve])
                let hold = CoreRequest("GET", server.baseURL + "/hold")
                var held = try (0..<63).map { _ in try core.submit(hold) }
                let late = try core.submit(CoreRequest("GET", "http://\(name):\(server.port)/hello"))
                await core.untilStatistics { $0.running == 64 }
                held.append(try core.submit(hold.with { $0.flags.insert(.unlimited) }))
                try await server.waitForRequests(64)
                LookupStub.shared.release(name)
                #expect(await core.result(of: late).fault == .ok)
                server.signal("release")
                for result in await core.results(of: held) { #expect(result.fault == .ok) }
            }
        }

        @Test func theLimitInTotalHoldsOverManyHosts() async throws {
            var options = CoreLoop.Options()
            options.maxTransfers = 3
            try await withCore(options) { core, server in
                let others = try (0..<4).map { _ in try LoopbackServer() }
                defer { for other in others { other.stop() } }
                let ids = try (0..<40).map { try core.submit(CoreRequest("GET", others[$0 % 4].baseURL + "/delay/5")) }
                for result in await core.results(of: ids) { #expect(result.fault == .ok) }
                #expect(others.map(\.requestCount) == [10, 10, 10, 10])
            }
        }

        @Test func moreThanOneShard() async throws {
            var options = CoreLoop.Options()
            options.maxTransfers = 300
            options.maxPerHost = 300
            try await withCore(options) { core, server in
                // None gets a response before all have arrived.
                func sendTogether(_ path: String, total: Int) async throws -> [CoreResult] {
                    server.script(path: path, [.wait(path), .send(answer("ok")), .serve])
                    let ids = try (0..<300).map { _ in try core.submit(CoreRequest("GET", server.baseURL + path)) }
                    try await server.waitForRequests(total)
                    server.signal(path)
                    return await core.results(of: ids)
                }
                for result in try await sendTogether("/first", total: 300) { #expect(result.fault == .ok) }
                #expect(server.connectionCount == 300)
                let reused = try await sendTogether("/again", total: 600).filter(\.isReused).count
                #expect(reused > 250)  // the host moves to its last shard, and fills that one first
            }
        }

        @Test func cancelInEveryPlace() async throws {
            try await withHeldLoop { core, server, release in
                let waiting = try core.submit(get(server, FERRY_NORMAL))
                core.cancel(waiting)
                let first = await core.result(of: waiting)
                #expect(first.fault == .cancelled && first.phase == FERRY_PHASE_QUEUED && first.attempts == 0)
                core.cancel(waiting)  // too late: no effect
                core.resume(waiting)
                core.cancel(987_654)
                #expect(server.requestCount == 1)
                await release()
            }
        }

        /// More starts than one turn allows: the loop continues with them without waiting for anything.
        @Test func othersStartAtOnceBehindAThousandThatHang() async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            let names = (0..<1_000).map { "name\($0).admission.test" }
            for name in names { LookupStub.shared.set(name, [], isHeld: true) }
            try await withCore(options) { core, server in
                let hung = try names.map { try core.submit(CoreRequest("GET", "http://\($0):\(server.port)/hello")) }
                let ids = try (0..<20).map { _ in try core.submit(CoreRequest("GET", server.baseURL + "/hello")) }
                for result in await core.results(of: ids) {
                    #expect(result.fault == .ok && result.metrics.total < 10_000_000, "\(result.metrics.total)")
                }
                for id in hung { core.cancel(id) }
                _ = await core.results(of: hung)
                for name in names { LookupStub.shared.release(name) }
            }
        }
    }
}
