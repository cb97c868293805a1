import Dispatch
import FaultTable
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Row R117: code of the application blocks the agent's processing queue, or a report, and other runs end in time all
/// the same. It is released only afterwards: a run that waits for it ends at the suite's limit.
@Suite(.timeLimit(.minutes(1)), .faultTable) struct BlockedQueueFaultTests {
    /// Blocks the processing queue from the end of its run on.
    private struct Blocking: Request {
        let entered: OneShot<Void>
        let gate: DispatchSemaphore
        var path: String { "/hello" }
        func completionPreprocessor(_ reply: Reply<Response>) {
            entered.finish(())
            gate.wait()
        }
    }

    enum Kind: CaseIterable {
        case plain, upload, download, stream, batch, chain
    }

    /// One run without a response, with a report if possible.
    private func run(
        _ kind: Kind, by agent: NetworkAgent, _ folder: String, deadline: Duration?,
        report: @escaping @Sendable () -> Void = {}
    ) async -> RequestError? {
        var call = HTTPRequest(kind == .upload ? .put : .get, "/silent")
        if kind == .upload { call.body = .string("abc") }
        if kind != .batch && kind != .chain { call.deadline = deadline }
        do throws(RequestError) {
            switch kind {
            case .plain: _ = try await agent.send(call)
            case .upload: _ = try await agent.send(call, uploadProgress: { _ in report() })
            case .download: _ = try await agent.download(call, to: .directory(folder)) { _ in report() }
            case .stream: _ = try await agent.stream(call)
            case .batch:
                let batch = BatchRequest([HTTPRequest(.get, "/hello"), call], atMost: 1)
                _ = try await agent.send(deadline.map { batch.deadline($0) } ?? batch) { _ in report() }
            case .chain:
                let chain = ChainRequest(Get("/hello")).then { [call] _ in call }
                _ = try await agent.send(deadline.map { chain.deadline($0) } ?? chain) { _ in report() }
            }
            return nil
        } catch {
            return error
        }
    }

    private func withBlockedQueue(_ body: (LoopbackServer, NetworkAgent) async throws -> Void) async throws {
        let server = try LoopbackServer()
        server.script(path: "/silent", [.expectHead, .mark("asked"), .keepOpen])
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let (entered, gate) = (OneShot<Void>(), DispatchSemaphore(value: 0))
        let blocked = Outcome<Response>()
        agent.start(Blocking(entered: entered, gate: gate), completion: blocked.take)
        await entered.value()
        do {
            try await body(server, agent)
            gate.signal()
        } catch {
            gate.signal()
            throw error
        }
        _ = try await blocked.result.get()
        await agent.shutdown()
        server.stop()
    }

    @Test("R117: deadlines take effect while the processing queue is blocked", arguments: Kind.allCases)
    func deadlines(kind: Kind) async throws {
        let folder = try Folder()
        try await withBlockedQueue { _, agent in
            let began = ContinuousClock.now
            let error = await run(kind, by: agent, folder.path, deadline: .milliseconds(300))
            let took = ContinuousClock.now - began
            // The loop counts in whole milliseconds, and may start within one.
            #expect(error?.code == .timeout(.deadline) && took > .milliseconds(298), "\(took) \(error as Any)")
            #expect(took < FaultSetup().bound || !ProcessHoldings.isAlone, "\(took)")
        }
    }

    @Test("R117: cancels take effect while the processing queue is blocked", arguments: Kind.allCases)
    func cancels(kind: Kind) async throws {
        let folder = try Folder()
        let path = folder.path
        try await withBlockedQueue { server, agent in
            let task = Task { await run(kind, by: agent, path, deadline: nil) }
            try await server.waitForMark("asked")
            task.cancel()
            #expect(await task.value?.code == .cancelled)
        }
    }

    @Test("R117: a success is fully reported before it returns")
    func reports() async throws {
        let folder = try Folder()
        try await withBlockedQueue { server, agent in
            let sent = Mutex(UInt64(0))
            let received = Mutex(Int64(0))
            let members = Mutex(0)
            let call = HTTPRequest(.put, "/upload", body: .bytes([UInt8](repeating: 0, count: 100_000)))
            _ = try await agent.send(call, uploadProgress: { progress in sent.withLock { $0 = progress.bytesSent } })
            #expect(sent.withLock { $0 } == 100_000)
            _ = try await agent.download(Get("/bytes/100000"), to: .directory(folder.path)) { progress in
                received.withLock { $0 = progress.received }
            }
            #expect(received.withLock { $0 } == 100_000)
            _ = try await agent.send(BatchRequest([Get("/hello"), Get("/hello")])) { progress in
                members.withLock { $0 = progress.finished }
            }
            #expect(members.withLock { $0 } == 2)
        }
    }

    @Test(
        "R117: a progress report that blocks delays neither the run's deadline nor its cancel", arguments: Kind.allCases
    )
    func ownReport(kind: Kind) async throws {
        // These report nothing before their end.
        if [.plain, .stream, .download].contains(kind) { return }
        let folder = try Folder()
        let path = folder.path
        for isCancelled in [true, false] {
            let server = try LoopbackServer()
            server.script(path: "/silent", [.expectHead, .mark("asked"), .keepOpen])
            let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
            let (entered, gate) = (OneShot<Void>(), DispatchSemaphore(value: 0))
            let count = Mutex(0)
            let task = Task {
                await run(kind, by: agent, path, deadline: isCancelled ? nil : .milliseconds(300)) {
                    count.withLock { $0 += 1 }
                    entered.finish(())
                    gate.wait()
                }
            }
            await entered.value()
            try await server.waitForMark("asked")
            if isCancelled { task.cancel() }
            #expect(await task.value?.code == (isCancelled ? .cancelled : .timeout(.deadline)))
            let told = count.withLock { $0 }
            for _ in 0..<100 { gate.signal() }
            await agent.shutdown()
            #expect(told == 1 && count.withLock { $0 } == 1, "no report begins after the run has returned")
            server.stop()
        }
    }
}
