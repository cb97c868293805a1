import Ferry
import FerrySynchronization
import FerryTesting
import Testing

#if canImport(Glibc)
import Glibc

@testable import FerryTestSupport
#endif

/// Tasks on the agent's event loops.
@Suite(.timeLimit(.minutes(2))) struct NetworkExecutorTests {
    @Test func tasksStayOnOneThread() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let threads = try await Task(executorPreference: agent.taskExecutor) {
            var threads: Set<pthread_t> = [pthread_self()]
            for index in 0..<100 {
                let reply = try await agent.send(Get("/bytes/\(index)"))
                #expect(reply.bodyLength == index)
                threads.insert(pthread_self())
            }
            return threads
        }.value
        #expect(threads.count == 1)
        #expect(server.connectionCount == 1)
        await agent.shutdown()
    }

    @Test func structuredChildrenRunThereToo() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let isSame = try await Task(executorPreference: agent.taskExecutor) {
            let thread = pthread_self()
            async let first = onThread { try await agent.send(Get("/hello")).text }
            async let second = onThread { try await agent.send(Get("/bytes/7")).text }
            let group = await withTaskGroup(of: pthread_t.self) { group in
                for _ in 0..<50 {
                    group.addTask {
                        _ = try? await agent.send(Get("/hello"))
                        return pthread_self()
                    }
                }
                return await group.reduce(into: Set<pthread_t>()) { $0.insert($1) }
            }
            let (one, two) = try await (first, second)
            #expect(one.0 == "Hello, ferry")
            #expect(two.0 == "abcdefg")
            return group == [thread] && one.1 == thread && two.1 == thread
        }.value
        #expect(isSame)
        await agent.shutdown()
    }

    private func onThread(_ body: @Sendable () async throws -> String) async rethrows -> (String, pthread_t) {
        (try await body(), pthread_self())
    }

    @Test func twoLoopsAreNamedInTurn() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL, eventLoopCount: 2))
        var threads: [pthread_t] = []
        for _ in 0..<4 {
            threads.append(
                try await Task(executorPreference: agent.taskExecutor) {
                    let thread = pthread_self()
                    for _ in 0..<10 {
                        try await agent.send(Get("/hello"))
                        #expect(pthread_self() == thread)
                    }
                    return thread
                }.value)
        }
        #expect(threads[0] == threads[2])
        #expect(threads[1] == threads[3])
        #expect(threads[0] != threads[1])
        await agent.shutdown()
    }

    @Test func faultsAndCancelsComeThereToo() async throws {
        let server = try LoopbackServer()
        server.script(path: "/hold", [.expectHead, .mark("held"), .keepOpen])
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let task = Task(executorPreference: agent.taskExecutor) {
            let thread = pthread_self()
            #expect(
                await code { () throws(RequestError) in try await agent.send(Get("/status/404")) }
                    == .invalidStatusCode(404))
            #expect(pthread_self() == thread)
            #expect(await code { () throws(RequestError) in try await agent.send(Get("/hold")) } == .cancelled)
            #expect(pthread_self() == thread)
        }
        try await server.waitForMark("held")
        task.cancel()
        await task.value
        await agent.shutdown()
    }

    @Test func afterShutdownJobsStillRun() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let executor = agent.taskExecutor
        try await agent.send(Get("/hello"))
        await agent.shutdown()
        let sum = await Task(executorPreference: executor) {
            await withTaskGroup(of: Int.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        await Task.yield()
                        return number
                    }
                }
                return await group.reduce(0, +)
            }
        }.value
        #expect(sum == 4950)
        let after = await Task(executorPreference: agent.taskExecutor) {
            await code { () throws(RequestError) in try await agent.send(Get("/hello")) }
        }.value
        #expect(after == .shutdown)
    }

    @Test func shutdownFromThereEnds() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let text = try await Task(executorPreference: agent.taskExecutor) {
            let text = try await agent.send(Get("/hello")).text
            await agent.shutdown()
            await Task.yield()
            return text
        }.value
        #expect(text == "Hello, ferry")
        try await server.waitForOpenConnections(atMost: 0)
    }

    @Test func tasksThatHopAllTheTimeDuringShutdownAllEnd() async throws {
        for _ in 0..<20 {
            let agent = NetworkAgent()
            let executor = agent.taskExecutor
            let tasks = (0..<20).map { _ in
                Task(executorPreference: executor) {
                    for _ in 0..<200 { await Task.yield() }
                }
            }
            await agent.shutdown(grace: .zero)
            for task in tasks { await task.value }
        }
    }
}
