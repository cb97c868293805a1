import Dispatch
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Where the members of a group end: like a run that is started or awaited in the same way as the group.
@Suite struct GroupCallbackTests {
    enum Kind: CaseIterable, Sendable { case batch, chain, chainOfBatches, failures, exchanged, cached }

    private let book = Logbook()
    private let queue = DispatchQueue(label: "test.callbacks")

    @Test func theLastReportIsMadeAlsoIfTheGroupEndsFirst() {
        let queue = DispatchQueue(label: "test.reports", attributes: .concurrent)
        queue.suspend()
        let told = Mutex<[GroupProgress]>([])
        let reporter = ProgressReporter(on: queue) { progress in told.withLock { $0.append(progress) } }
        reporter.report { GroupProgress(finished: 2, total: 2) }
        reporter.forget()
        queue.resume()
        queue.sync(flags: .barrier) {}
        #expect(told.withLock { $0 } == [GroupProgress(finished: 2, total: 2)])
    }

    private struct PassOn: RequestInterceptor {
        func intercept(_ request: OutgoingRequest, of run: RunInfo) async throws -> InterceptedResponse? { nil }
    }

    private func agent(_ kind: Kind) -> NetworkAgent {
        var configuration = NetworkConfiguration.test
        configuration.observers = [LoggingObserver("common", book)]
        configuration.callbackQueue = queue
        if kind == .exchanged { configuration.interceptors = [PassOn()] }
        let stub = StubTransport(always: kind == .failures ? .response(status: 500) : .response(body: "{}"))
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        book.know(processing: agent.core.processingQueue, callbacks: queue)
        return agent
    }

    private struct Shared: Request {
        typealias Value = Response
        let logged: LoggedRequest
        var path: String { logged.path }
        var coalesces: Bool { true }
        func value(from response: Response) throws -> Response { try logged.value(from: response) }
        func completionPreprocessor(_ reply: Reply<Response>) { logged.completionPreprocessor(reply) }
        func willDeliver(_ result: Result<Reply<Response>, RequestError>) { logged.willDeliver(result) }
    }

    private func group(_ kind: Kind) -> ChainRequest<Int> {
        let requests = (0..<6).map { LoggedRequest(book, path: "/\($0)") }
        let batch = BatchRequest(requests, .collectAll, atMost: 3)
        return switch kind {
        case .batch, .failures, .exchanged: ChainRequest(batch).map { $0.count }
        case .cached: ChainRequest(BatchRequest(requests.map { Shared(logged: $0) })).map { $0.count }
        case .chain: ChainRequest(requests[0]).then { _ in requests[1] }.then { _ in requests[2] }.map { _ in 6 }
        case .chainOfBatches: ChainRequest(requests[0]).then { _ in batch }.map { $0.count }
        }
    }

    private func isProcessing(_ event: String) -> Bool { event == "value" || event.contains("Preprocessor") }

    @Test(arguments: Kind.allCases)
    func membersOfAStartedGroupEndOnTheQueuesOfAStartedRun(_ kind: Kind) async throws {
        let agent = agent(kind)
        let count = await withCheckedContinuation { continuation in
            _ = agent.start(group(kind)) { continuation.resume(returning: try? $0.get()) }
        }
        await agent.shutdown(grace: .seconds(3600))
        #expect(count == 6)
        let ends = book.entries.filter { !$0.event.contains("willStart") }
        let members = kind == .chain ? 3 : kind == .chainOfBatches ? 7 : 6
        #expect(ends.count { $0.event.contains("willDeliver") } == members)
        for entry in ends { #expect(entry.place == (isProcessing(entry.event) ? .processing : .callbacks), "\(entry)") }
        // For each member its end follows `willDeliver`, with no other member in between.
        for (index, event) in ends.map(\.event).filter({ !isProcessing($0) }).enumerated()
        where event.contains("willDeliver") {
            let shown = ends.map(\.event).filter { !isProcessing($0) }
            #expect(shown[index - 1].hasPrefix("common willStop") && shown[index + 1].hasPrefix("common didStop"))
        }
    }

    @Test(arguments: Kind.allCases)
    func membersOfAnAwaitedGroupEndInItsTask(_ kind: Kind) async throws {
        let agent = agent(kind)
        #expect(try await agent.send(group(kind)) == 6)
        await agent.shutdown()
        #expect(!book.entries.contains { $0.place == .processing || $0.place == .callbacks })
    }

    @Test func aGroupThatIsCancelledEndsAlthoughItsQueueIsBusy() async {
        let agent = agent(.batch)
        let task: RequestTask<Int> = agent.start(group(.batch), on: queue) { [book] result in
            book.note("result \((try? result.get()) ?? -1)")
        }
        queue.suspend()
        task.cancel()
        queue.resume()
        await agent.shutdown(grace: .seconds(3600))
        #expect(book.events.count { $0.hasPrefix("result") } == 1)
    }
}
