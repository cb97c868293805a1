import CFerry
import FerrySynchronization
import FerryTesting
import Foundation
import Testing

extension CoreTests {
    /// Stopping, freeing, many threads at once: each id gets exactly one result.
    @Suite struct Life {
        @Test func stopAnswersWhatWaitsRunsPausesAndResolves() async throws {
            var options = CoreLoop.Options()
            options.maxTransfers = 4
            options.usesLookupStub = true
            LookupStub.shared.set("stop.life.test", ["127.0.0.1"], isHeld: true)
            defer { LookupStub.shared.release("stop.life.test") }
            try await withCore(options) { core, server in
                server.script(path: "/none", [.keepOpen])
                let running = try core.submit(CoreRequest("GET", server.baseURL + "/none"))
                let streaming = CoreRequest("GET", server.baseURL + "/bytes/5000000").with {
                    $0.answer = .stream
                    $0.onBody = { _ in FERRY_PAUSE }
                }
                let paused = try core.submit(streaming)
                let held = try core.submit(
                    streaming.with {
                        $0.url = Array((server.baseURL + "/gzip/500000?zeros=1").utf8)
                        $0.flags = .decode
                    })
                let resolving = try core.submit(CoreRequest("GET", "http://stop.life.test:\(server.port)/"))
                let waiting = try (0..<1_000).map { _ in try core.submit(CoreRequest("GET", server.baseURL + "/hello"))
                }
                await core.untilBody(paused)
                await core.untilBody(held)
                try await server.waitForRequests(3)
                await core.untilStatistics { $0.waiting == 1_000 && $0.running == 4 && $0.resolving == 1 }
                core.stop()
                core.stop()
                let all = await core.results(of: [running, paused, held, resolving] + waiting)
                #expect(all.allSatisfy { $0.fault == .shutdown })
                #expect(
                    all.prefix(4).map(\.phase) == [
                        FERRY_PHASE_WAIT_HEAD, FERRY_PHASE_BODY, FERRY_PHASE_BODY, FERRY_PHASE_DNS,
                    ])
                #expect(all[4].phase == FERRY_PHASE_QUEUED)
                #expect(throws: CoreFault.shutdown) { try core.submit(CoreRequest("GET", server.baseURL + "/hello")) }
                core.cancel(running)
                core.resume(paused)
                core.call()
            }
        }

        @Test func stopAndFreeOfALoopThatDidNothing() async throws {
            for _ in 0..<50 {
                let core = try CoreLoop()
                if Bool.random() { core.stop() }
                core.free()
                #expect(core.record.read { $0.isStopped })
            }
        }

        @Test func loopsLeaveNoDescriptors() async throws {
            func descriptors() throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            }
            let server = try LoopbackServer()
            defer { server.stop() }
            let before = try descriptors()
            for _ in 0..<40 {
                let core = try CoreLoop()
                let ids = try (0..<10).map { _ in try core.submit(CoreRequest("GET", server.baseURL + "/hello")) }
                _ = await core.results(of: ids)
                core.free()
            }
            try await server.waitForOpenConnections(atMost: 0)
            // Four descriptors a loop and ten connections would be 500; other targets' tests may run beside this one.
            #expect(try descriptors() < before + 50)
        }

        @Test func submitWhileStopping() async throws {
            for round in 0..<20 {
                let server = try LoopbackServer()
                let core = try CoreLoop()
                let accepted = await withTaskGroup(of: [UInt64].self) { group in
                    for _ in 0..<3 {
                        group.addTask {
                            var accepted: [UInt64] = []
                            while true {
                                do {
                                    accepted.append(try core.submit(CoreRequest("GET", server.baseURL + "/hello")))
                                    if accepted.count % 3 == 0 { core.cancel(accepted.last!) }
                                } catch {
                                    #expect(error as? CoreFault == .shutdown)
                                    return accepted
                                }
                                if accepted.count % 16 == 0 { await Task.yield() }
                                if accepted.count > 500 { core.stop() }
                            }
                        }
                    }
                    group.addTask {
                        for _ in 0..<round { await core.turn() }
                        core.stop()
                        return []
                    }
                    return await group.reduce(into: []) { $0 += $1 }
                }
                let results = await core.results(of: accepted)
                #expect(results.count == accepted.count)
                await expectCleanStop(core)
                server.stop()
            }
        }

        @Test func thousandsOfSubmitsAndCancelsFromSeveralThreads() async throws {
            var options = CoreLoop.Options()
            options.maxTransfers = 200
            options.maxPerHost = 150
            try await withCore(options) { core, server in
                server.script(path: "/none", [.keepOpen])
                let paths = ["/hello", "/none", "/bytes/70000", "/gzip/100000", "/delay/2", "/chunked/3000"]
                let all = await withTaskGroup(of: [UInt64].self) { group in
                    for thread in 0..<4 {
                        group.addTask {
                            var random = SystemRandomNumberGenerator()
                            var mine: [UInt64] = []
                            for i in 0..<2_500 {
                                var request = CoreRequest("GET", server.baseURL + paths[(i + thread) % paths.count])
                                request.priority = i % 3
                                request.flags = [.decode, .idempotent]
                                if i % 5 == 0 {
                                    request.answer = .stream
                                    request.onBody = { _ in Bool.random() ? FERRY_PAUSE : FERRY_CONTINUE }
                                }
                                if i % 7 == 0 { request.total = 30 }
                                guard let id = try? core.submit(request) else { break }
                                mine.append(id)
                                let victim = mine[Int.random(in: max(0, mine.count - 60)..<mine.count, using: &random)]
                                switch Int.random(in: 0..<6, using: &random) {
                                case 0, 1: core.cancel(victim)
                                case 2: core.resume(victim)
                                case 3: core.setPriority(victim, Int.random(in: 0..<3, using: &random))
                                case 4 where i % 16 == 0: await Task.yield()
                                default: break
                                }
                            }
                            return mine
                        }
                    }
                    return await group.reduce(into: []) { $0 += $1 }
                }
                #expect(all.count == 10_000)
                for id in all.shuffled() {
                    core.cancel(id)
                    core.resume(id)
                }
                let results = await core.results(of: all)
                #expect(results.allSatisfy { [FERRY_OK, FERRY_E_CANCELLED, FERRY_E_TIMEOUT].contains($0.code) })
                for result in results where result.code == FERRY_OK && result.body != nil {
                    #expect([12, 70_000, 100_000, 3_000].contains(result.bodyLength))
                }
            }
        }

        @Test func tenThousandCancelledAtOnceDoNotBlockTheLoop() async throws {
            var options = CoreLoop.Options()
            options.maxTransfers = 1_000
            options.maxPerHost = 1_000
            // 20 ms on an idle machine. A busy one may take the processor from a turn, but not each time.
            var shortest = UInt64.max
            for _ in 0..<3 where shortest >= 500_000 {
                try await withCore(options) { core, server in
                    server.script(path: "/none", [.keepOpen])
                    let ids = try (0..<5_000).map { _ in
                        try core.submit(CoreRequest("GET", server.baseURL + "/none"))
                    }
                    try await server.waitForRequests(1_000)
                    for id in ids { core.cancel(id) }
                    let results = await core.results(of: ids)
                    #expect(results.allSatisfy { $0.fault == .cancelled })
                    shortest = min(shortest, core.statistics.longest_turn_us)
                }
            }
            #expect(shortest < 500_000, "\(shortest) microseconds")
        }

        @Test func freeOnTheLoopsOwnThread() async throws {
            let server = try LoopbackServer()
            defer { server.stop() }
            for _ in 0..<20 {
                let core = try CoreLoop()
                core.isFreedElsewhere()
                var request = CoreRequest("GET", server.baseURL + "/hello")
                request.onFinished = { _ in
                    #expect(ferry_loop_is_current(core.pointer.raw) == 1)
                    ferry_loop_free(core.pointer.raw)
                }
                let other = try core.submit(CoreRequest("GET", server.baseURL + "/delay/10000"))
                let id = try core.submit(request)
                let first = await core.result(of: id)
                #expect(first.fault == .ok)
                let second = await core.result(of: other)
                #expect(second.fault == .shutdown)
                await core.record.until { $0.isStopped }
                #expect(core.record.read { $0.results.values.allSatisfy { $0.count == 1 } })
            }
            try await server.waitForOpenConnections(atMost: 0)
        }

        @Test func theLoopsOwnThreadMaySubmitCancelAndStop() async throws {
            try await withCore { core, server in
                let next = CoreRequest("GET", server.baseURL + "/hello")
                let left = Atomic(100)
                var request = next
                request.onFinished = { _ in
                    #expect(ferry_current_context() != nil)
                    if left.subtract(1, ordering: .relaxed).newValue > 0 {
                        let id = try? core.submit(
                            next.with { $0.onFinished = core.record.read { $0.requests[1]?.onFinished } })
                        if left.load(ordering: .relaxed) % 10 == 0, let id { core.cancel(id) }
                    }
                }
                let first = try core.submit(request)
                #expect(first == 1)
                await core.record.until { $0.results.count == 100 }
                #expect(ferry_loop_is_current(core.pointer.raw) == 0 && ferry_current_context() == nil)
                _ = try await core.run(next.with { $0.onFinished = { _ in core.stop() } })
            }
        }

        @Test func callsRunTogether() async throws {
            try await withCore { core, _ in
                await core.turn()
                let before = core.record.read { $0.calls }
                for _ in 0..<1_000 { core.call() }
                await core.turn()
                let calls = core.record.read { $0.calls } - before
                #expect(calls >= 1 && calls <= 1_001)
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<4 { group.addTask { for _ in 0..<1_000 { core.call() } } }
                }
                await core.turn()
            }
        }

        @Test func aSleepingLoopSpendsNoTurns() async throws {
            try await withCore { core, server in
                _ = try await core.get(server.baseURL + "/hello")
                let paused = try core.submit(
                    CoreRequest("GET", server.baseURL + "/bytes/5000000").with {
                        $0.answer = .stream
                        $0.onBody = { _ in FERRY_PAUSE }
                        $0.deadline = 60_000
                    })
                await core.untilBody(paused)
                let before = core.statistics.turns
                // A loop that did not sleep would have taken thousands of turns by then.
                try await core.pass(milliseconds: 500, server)
                #expect(core.statistics.turns - before < 100)
                core.cancel(paused)
            }
        }
    }
}
