import CAllocations
import CResolver
import CWrites
import FaultTable
import FerryTesting
import FerryTransport
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Something slow that holds something else up: a name server, a disk, a job on the loop, a thousand runs that hang.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct HeldFaultTests {
    @Test("R118: a hundred names on a name server that hangs do not delay another name, even of another agent")
    func names() async throws {
        let server = try LoopbackServer()
        let (agent, other) = (NetworkAgent(), NetworkAgent())
        let outcomes = (0..<100).map { _ in Outcome<Response>() }
        let tasks = outcomes.enumerated().map { index, outcome in
            agent.start(.probe("http://r118-\(index).held.test/"), completion: outcome.take)
        }
        #expect(await eventually { agent.core.transport.statistics.resolving == 100 && resolver_held() >= 8 })
        var quickest = Duration.seconds(60)
        for index in 0..<5 {
            for (agent, name) in [(agent, "one"), (other, "two")] {
                let began = ContinuousClock.now
                let url = "http://r118-\(index)-\(name).inside.test:\(server.port)/hello"
                #expect(try await agent.send(.probe(url)).response.status == 200)
                quickest = min(quickest, ContinuousClock.now - began)
            }
        }
        #expect(quickest < .milliseconds(200), "\(quickest)")
        for task in tasks { task.cancel() }
        for outcome in outcomes { #expect(await outcome.code == .cancelled) }
        resolver_release()
        await agent.shutdown()
        await other.shutdown()
    }

    private enum Ending: CaseIterable { case cancel, deadline, shutdown }

    @Test("R119: a download whose disk hangs ends in time, and can be resumed", .enabled(if: writes_can_be_held()))
    func disk() async throws {
        for ending in Ending.allCases {
            let server = try LoopbackServer()
            let agent = NetworkAgent()
            var file = HTTPRequest(.get, server.baseURL + "/bytes/3000000")
            if ending == .deadline { file.deadline = .milliseconds(500) }
            writes_hold()
            let run = try FaultRun(file, Play(form: .download, way: .closure), agent)
            let place = run.place
            #expect(await eventually { writes_held() == 1 })
            let began = ContinuousClock.now
            switch ending {
            case .cancel: run.cancel()
            case .deadline: break
            case .shutdown: await agent.shutdown(grace: .zero)
            }
            let code = await run.outcome.error?.code
            let took = ContinuousClock.now - began
            switch ending {
            case .cancel: #expect(code == .cancelled)
            case .deadline: #expect(code == .timeout(.deadline))
            case .shutdown: #expect(code == .shutdown)
            }
            #expect(took < .seconds(2) && writes_held() == 1, "\(took)")
            // Nothing else writes to the part meanwhile: other runs wait for it.
            let next = NetworkAgent()
            file.deadline = .milliseconds(300)
            let second = await fault { [file] () throws(RequestError) in
                try await next.download(file, to: .file(place.target))
            }
            #expect(second?.code == .timeout(.deadline))
            let third = StartedDownload()
            next.download(Get(file.path), to: .file(place.target), completion: third.take)
            writes_release()
            _ = try await third.file()
            #expect(place.bytes == LoopbackServer.pattern(0..<3_000_000))
            await agent.shutdown()
            await next.shutdown()
        }
    }

    @Test("R120: no limit of a run expires because it waits behind a job on the loop")
    func job() async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration()
        configuration.timeouts.idle = .milliseconds(500)
        configuration.timeouts.connect = .milliseconds(500)
        configuration.timeouts.total = .milliseconds(500)
        configuration.deadline = .milliseconds(1_100)
        let agent = NetworkAgent(configuration: configuration)
        _ = try await agent.send(.probe(server.baseURL + "/hello"))
        for _ in 0..<2 {
            let isHeld = OneShot<Bool>()
            async let job: Void = held(on: agent.taskExecutor, isHeld)
            _ = await isHeld.value()
            let outcomes = (0..<20).map { _ in Outcome<Response>() }
            for outcome in outcomes {
                agent.start(.probe(server.baseURL + "/delay/20"), completion: outcome.take)
            }
            for outcome in outcomes { #expect(try await outcome.result.get().status == 200) }
            await job
        }
        await agent.shutdown()
    }

    private func held(on executor: any TaskExecutor, _ isHeld: OneShot<Bool>) async {
        await withTaskExecutorPreference(executor) {
            isHeld.finish(true)
            // Longer than each limit, and shorter than the deadline: it is not a wait, it blocks the loop's thread.
            usleep(600_000)
        }
    }

    @Test("R121: runs start at once although a thousand others wait for their names")
    func starts() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent()
        let hung = (0..<1_000).map { _ in Outcome<Response>() }
        let tasks = hung.enumerated().map { index, outcome in
            agent.start(.probe("http://r121-\(index).held.test/"), completion: outcome.take)
        }
        let began = ContinuousClock.now
        let outcomes = (0..<20).map { _ in Outcome<Response>() }
        for outcome in outcomes { agent.start(.probe(server.baseURL + "/hello"), completion: outcome.take) }
        for outcome in outcomes { #expect(try await outcome.result.get().status == 200) }
        #expect(ContinuousClock.now - began < .seconds(2))
        for task in tasks { task.cancel() }
        for outcome in hung { #expect(await outcome.code == .cancelled) }
        resolver_release()
        await agent.shutdown()
    }

    @Test("R122: many names and addresses in sequence leave less than a megabyte", arguments: [true, false])
    func hosts(areNames: Bool) async throws {
        var options = LoopbackServer.Options()
        options.recordedRequests = 10
        let server = try LoopbackServer(options)
        let agent = NetworkAgent()
        func send(_ index: Int) async throws {
            // None of these connections is kept: the server closes it, or does not listen there.
            let address = "127.1.\(index / 250).\(index % 250 + 1):\(server.port)"
            let host = areNames ? "r122-\(index).inside.test:\(server.port)" : address
            let outcome = await agent.result(.probe("http://\(host)/close"))
            #expect(outcome.error == nil || !areNames)
        }
        for index in 0..<50 { try await send(index) }
        let before = allocations_in_use()
        for index in 50..<3_050 { try await send(index) }
        #expect(allocations_in_use() < before + 1_048_576, "\(allocations_in_use() - before) bytes")
        await agent.shutdown()
    }
}
