import CCoreParts
import CFerry
import FerryTesting
import Foundation
import Testing

extension CoreTests {
    /// Each limit, with its own detail and in its own time.
    @Suite struct Timeouts {
        /// Runs and expects a timeout with this detail, at `limit` or, on a busy machine, at most three seconds later.
        @discardableResult
        private func expect(
            _ detail: Int, after limit: Int, _ core: CoreLoop, _ request: CoreRequest,
            sourceLocation: SourceLocation = #_sourceLocation
        ) async throws -> CoreResult {
            let begin = ContinuousClock.now
            let result = try await core.run(request)
            let time = ContinuousClock.now - begin
            #expect(result.fault == .timeout(detail), sourceLocation: sourceLocation)
            #expect(
                time >= .milliseconds(limit - 5) && time < .milliseconds(limit + 3_000), "\(time)",
                sourceLocation: sourceLocation)
            return result
        }

        @Test func deadlineWhileWaiting() async throws {
            var options = CoreLoop.Options()
            options.maxTransfers = 1
            try await withCore(options) { core, server in
                server.script(path: "/hold", [.wait("release"), .send(answer("ok")), .serve])
                let first = try core.submit(CoreRequest("GET", server.baseURL + "/hold"))
                let request = CoreRequest("GET", server.baseURL + "/hello").with { $0.deadline = 100 }
                let result = try await expect(FERRY_D_TIMEOUT_QUEUE, after: 100, core, request)
                #expect(result.phase == FERRY_PHASE_QUEUED && !result.isProcessed && result.attempts == 0)
                server.signal("release")
                #expect(await core.result(of: first).fault == .ok)
                #expect(server.requestCount == 1)
            }
        }

        @Test func aNameThatDoesNotCome() async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            LookupStub.shared.set("hangs.timeout.test", ["127.0.0.1"], isHeld: true)
            defer { LookupStub.shared.release("hangs.timeout.test") }
            try await withCore(options) { core, server in
                let url = "http://hangs.timeout.test:\(server.port)/"
                let result = try await expect(
                    FERRY_D_TIMEOUT_DNS, after: 100, core, CoreRequest("GET", url).with { $0.connect = 100 })
                #expect(result.phase == FERRY_PHASE_DNS && !result.isProcessed)
                try await expect(
                    FERRY_D_TIMEOUT_DEADLINE, after: 100, core, CoreRequest("GET", url).with { $0.deadline = 100 })
                try await expect(
                    FERRY_D_TIMEOUT_TOTAL, after: 100, core, CoreRequest("GET", url).with { $0.total = 100 })
                let idle = try await expect(
                    FERRY_D_TIMEOUT_DNS, after: 100, core, CoreRequest("GET", url).with { $0.idle = 100 })
                #expect(idle.phase == FERRY_PHASE_DNS)
            }
        }

        @Test func theIdleLimitHoldsAfterALookup() async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            LookupStub.shared.set("idle.timeout.test", ["127.0.0.1"])
            try await withCore(options) { core, server in
                let request = CoreRequest("GET", "http://idle.timeout.test:\(server.port)/delay/5000").with {
                    $0.idle = 150
                }
                try await expect(FERRY_D_TIMEOUT_RESPONSE_HEAD, after: 150, core, request)
            }
        }

        @Test func aConnectThatHangs() async throws {
            var options = LoopbackServer.Options()
            options.accepting = .none
            try await withCore(server: options, probes: false) { core, server in
                let request = CoreRequest("GET", server.baseURL + "/").with { $0.connect = 200 }
                let result = try await expect(FERRY_D_TIMEOUT_CONNECT, after: 200, core, request)
                #expect(result.phase == FERRY_PHASE_CONNECT && !result.isProcessed && result.attempts == 0)
                try await expect(
                    FERRY_D_TIMEOUT_CONNECT, after: 200, core,
                    CoreRequest("GET", server.baseURL + "/").with { $0.idle = 200 })
            }
        }

        @Test func aHandshakeThatStalls() async throws {
            let certificate = try ServerCertificate()
            var options = CoreLoop.Options()
            options.caFile = certificate.authorityFile
            try await withCore(options, server: .init(certificate: certificate), probes: false) { core, server in
                server.script([.stallHandshake])
                let request = CoreRequest("GET", server.baseURL + "/").with { $0.connect = 300 }
                let result = try await expect(FERRY_D_TIMEOUT_TLS, after: 300, core, request)
                #expect(result.phase == FERRY_PHASE_TLS && !result.isProcessed)
            }
        }

        @Test(arguments: [false, true])
        func aPeerThatStopsReading(isPulled: Bool) async throws {
            try await withCore(seesClose: false) { core, server in
                server.script(path: "/stop", [.stopReading, .keepOpen])
                var request = CoreRequest("PUT", server.baseURL + "/stop")
                request.idle = 200
                if isPulled {
                    request.body = .pull(nil)
                    request.onPull = { space in
                        space.initializeMemory(as: UInt8.self, repeating: 0)
                        return space.count
                    }
                } else {
                    request.body = .bytes(Array(repeating: 0, count: 50_000_000))
                }
                let result = try await core.run(request)
                #expect(result.fault == .timeout(FERRY_D_TIMEOUT_WRITE))
                #expect(result.phase == FERRY_PHASE_SEND && result.isProcessed)
            }
        }

        @Test func noHeadOrHalfOfIt() async throws {
            try await withCore { core, server in
                server.script(path: "/none", [.keepOpen])
                server.script(path: "/half", [.send("HTTP/1.1 200"), .keepOpen])
                server.script(path: "/line", [.send("HTTP/1.1 200 OK\r\nX-A: 1\r\n"), .keepOpen])
                for (path, phase) in [
                    ("/none", FERRY_PHASE_WAIT_HEAD), ("/half", FERRY_PHASE_WAIT_HEAD), ("/line", FERRY_PHASE_HEAD),
                ] {
                    let result = try await expect(
                        FERRY_D_TIMEOUT_RESPONSE_HEAD, after: 500, core,
                        CoreRequest("GET", server.baseURL + path).with { $0.idle = 500 })
                    #expect(result.phase == phase, "\(path)")
                }
            }
        }

        @Test(arguments: [FERRY_BODY_BYTES, FERRY_BODY_PULL])
        func noHeadAfterAWholeBody(kind: Int) async throws {
            try await withCore { core, server in
                server.script(path: "/none", [.expectBody, .keepOpen])
                for length: UInt64? in [5, nil] where kind == FERRY_BODY_PULL || length != nil {
                    let source = PullSource(Array("hello".utf8))
                    let request = CoreRequest("POST", server.baseURL + "/none").with {
                        $0.idle = 150
                        $0.body = kind == FERRY_BODY_BYTES ? .bytes(Array("hello".utf8)) : .pull(length)
                        $0.onPull = { source.fill($0) }
                    }
                    let result = try await expect(FERRY_D_TIMEOUT_RESPONSE_HEAD, after: 150, core, request)
                    #expect(result.phase == FERRY_PHASE_WAIT_HEAD)
                }
            }
        }

        @Test func aBodyThatStops() async throws {
            try await withCore { core, server in
                server.script(path: "/stop", [.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), .keepOpen])
                let result = try await expect(
                    FERRY_D_TIMEOUT_READ, after: 500, core,
                    CoreRequest("GET", server.baseURL + "/stop").with { $0.idle = 500 })
                #expect(result.phase == FERRY_PHASE_BODY && result.bodyReceived == 3 && result.status == 200)
            }
        }

        @Test func aSlowPeerThatLivesIsFineWithoutALowSpeed() async throws {
            try await withCore { core, server in
                let url = server.baseURL + "/drip?interval=20&bytes="
                let fine = try await core.run(CoreRequest("GET", url + "20").with { $0.idle = 1_500 })
                #expect(fine.fault == .ok && fine.bodyLength == 20)
                try await expect(
                    FERRY_D_TIMEOUT_LOW_SPEED, after: 200, core,
                    CoreRequest("GET", url + "1000").with {
                        $0.lowSpeedBytes = 1_000
                        $0.lowSpeedTime = 200
                    })
            }
        }

        @Test func aLongUploadFromMemoryIsNotSlow() async throws {
            try await withCore { core, server in
                // Reads 1 MB every 150 ms, so that the upload lasts for three windows of the limit. The last 20 MB are
                // read at once: as much may be in the sockets' buffers when the client has sent everything, and while
                // the server reads that, no byte moves at the client.
                var steps: [LoopbackScript.Step] = []
                for _ in 0..<20 { steps += [.expectBytes(1_000_000), .pause(.milliseconds(150))] }
                steps.append(.expectBytes(20_000_000))
                server.script(path: "/slow", LoopbackScript(steps + [.send(answer("ok")), .serve]))
                let request = CoreRequest("PUT", server.baseURL + "/slow").with {
                    $0.body = .bytes(Array(repeating: 0, count: 40_000_000))
                    $0.lowSpeedBytes = 1_000
                    $0.lowSpeedTime = 1_000
                }
                let result = try await core.run(request)
                #expect(result.fault == .ok)
            }
        }

        @Test func totalAndDeadlineEndALivingTransfer() async throws {
            try await withCore { core, server in
                let url = server.baseURL + "/drip?bytes=1000&interval=10"
                try await expect(
                    FERRY_D_TIMEOUT_TOTAL, after: 200, core, CoreRequest("GET", url).with { $0.total = 200 })
                try await expect(
                    FERRY_D_TIMEOUT_DEADLINE, after: 200, core, CoreRequest("GET", url).with { $0.deadline = 200 })
            }
        }

        @Test func theDeadlineHoldsWhileWePause() async throws {
            try await withCore { core, server in
                let request = CoreRequest("GET", server.baseURL + "/bytes/5000000").with {
                    $0.answer = .stream
                    $0.onBody = { _ in FERRY_PAUSE }
                    $0.deadline = 200
                }
                try await expect(FERRY_D_TIMEOUT_DEADLINE, after: 200, core, request)
            }
        }

        @Test func limitsBeyondTheWheelAndManyAtOnce() async throws {
            try await withCore { core, server in
                server.script(path: "/none", [.keepOpen])
                var ids: [UInt64] = []
                for i in 0..<300 {
                    ids.append(
                        try core.submit(CoreRequest("GET", server.baseURL + "/none").with { $0.deadline = 50 + i }))
                }
                let far = try core.submit(
                    CoreRequest("GET", server.baseURL + "/delay/100").with { $0.deadline = 4_294_967_295 })
                // The deadlines expire in order, within the wheel's 8 ms. Those whose time came while the loop had no
                // processor end together, in any order.
                var late: [Int] = []
                for (i, result) in await core.results(of: ids).enumerated() {
                    #expect(result.code == FERRY_E_TIMEOUT)
                    late.append(Int(result.metrics.total) / 1_000 - 50 - i)
                }
                #expect(late.allSatisfy { $0 >= -5 && $0 < 3_000 }, "\(late)")
                let order = core.record.read { state in state.finishOrder.filter { $0 != far } }
                let early = zip(order, order.dropFirst()).count { Int($1) <= Int($0) - 32 }
                #expect(early < 30, "\(order)")
                core.cancel(far)
                _ = await core.result(of: far)
            }
        }

        /// A transfer alone on a loop, with a limit beyond the wheel's range, is put off as far as the wheel reaches. A
        /// loop that was late by one slot once found the transfer again in the slot it was emptying, and never left it.
        /// Whether a loop is late by just that is chance, so there are several.
        @Test(.timeLimit(.minutes(1))) func aLoopThatComesLateToADistantLimitGoesOn() async throws {
            let server = try LoopbackServer()
            defer { server.stop() }
            let url = server.baseURL + "/drip?bytes=240&chunk=1&interval=19"
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<12 {
                    group.addTask {
                        let core = try CoreLoop(CoreLoop.Options())
                        let request = CoreRequest("GET", url).with {
                            $0.answer = .stream
                            $0.idle = 60_000
                            $0.onBody = { _ in
                                usleep(15_000)
                                return FERRY_CONTINUE
                            }
                        }
                        let result = try await core.run(request)
                        #expect(result.fault == .ok && result.bodyLength == 240)
                        await expectCleanStop(core)
                    }
                }
                try await group.waitForAll()
            }
        }

        /// Each limit.
        enum Limit: CaseIterable {
            case connect, idle, total, lowSpeed, deadline

            func set(_ request: inout CoreRequest, milliseconds: Int) {
                switch self {
                case .connect: request.connect = milliseconds
                case .idle: request.idle = milliseconds
                case .total: request.total = milliseconds
                case .lowSpeed: (request.lowSpeedBytes, request.lowSpeedTime) = (100, milliseconds)
                case .deadline: request.deadline = milliseconds
                }
            }
        }

        /// A job blocks the loop's thread for longer than the limit. Transfers that are submitted meanwhile, or have
        /// just started, have not had their time.
        @Test(arguments: Limit.allCases, [true, false])
        func noLimitPassesWhileTheLoopIsHeld(limit: Limit, isBegun: Bool) async throws {
            try await withCore { core, server in
                let job = CoreRequest("GET", server.baseURL + "/hello").with {
                    $0.onFinished = { _ in usleep(600_000) }
                }
                var request = CoreRequest("GET", server.baseURL + "/delay/20")
                // No shorter: a busy machine may also delay the server.
                limit.set(&request, milliseconds: 500)
                var ids: [UInt64] = []
                let first = try core.submit(job)
                if isBegun { ids = try (0..<20).map { _ in try core.submit(request) } }
                // The result is there right before the loop's thread goes to the job.
                _ = await core.result(of: first)
                if !isBegun { ids = try (0..<20).map { _ in try core.submit(request) } }
                for result in await core.results(of: ids) {
                    #expect(result.fault == .ok, "\(limit): \(result.fault)")
                }
            }
        }

        /// A timeout that the server causes is reported, however long the loop was held before.
        @Test(arguments: Limit.allCases.filter { $0 != .connect })
        func aServerThatIsSilentIsFoundOutBehindAHeldLoop(limit: Limit) async throws {
            try await withCore { core, server in
                server.script(path: "/none", [.keepOpen])
                var request = CoreRequest("GET", server.baseURL + "/none")
                limit.set(&request, milliseconds: 200)
                let id = try core.submit(request)
                let job = CoreRequest("GET", server.baseURL + "/hello").with {
                    $0.onFinished = { _ in usleep(300_000) }
                }
                _ = try await core.run(job)
                let result = await core.result(of: id)
                #expect(result.code == FERRY_E_TIMEOUT && result.metrics.total < 10_000_000, "\(result.fault)")
            }
        }
    }
}
