import Ferry
import FerryJSON
import FerryMeasurement
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryCommand

/// A store in memory, whose values expire.
private final class MemoryFleetStore: FleetStore {
    private let values = Mutex([String: (bytes: [UInt8], end: UInt64)]())

    func values(of keys: [String]) async throws(FleetError) -> [[UInt8]?] {
        let now = monotonicNanoseconds()
        return values.withLock { values in
            keys.map { key in values[key].flatMap { $0.end > now ? $0.bytes : nil } }
        }
    }

    func set(
        _ key: String, to value: [UInt8], expiringAfter time: Duration, onlyIfAbsent: Bool
    ) async throws(FleetError) -> Bool {
        let now = monotonicNanoseconds()
        return values.withLock { values in
            if onlyIfAbsent, let old = values[key], old.end > now { return false }
            values[key] = (value, now + UInt64(time.microseconds) * 1000)
            return true
        }
    }

    func remove(_ keys: [String]) async throws(FleetError) { values.withLock { for key in keys { $0[key] = nil } } }

    func time() async throws(FleetError) -> UInt64 { monotonicNanoseconds() / 1000 + 5_000_000_000 }

    var keys: [String] { values.withLock { $0.keys.sorted() } }
}

/// Coordinator and workers in one process, over a store in memory.
@Suite(.timeLimit(.minutes(2))) struct FleetRunTests {
    private let store = MemoryFleetStore()
    private let keys = FleetKeys("test")

    private func parsed(_ line: [String]) throws -> ParsedArguments {
        try ParsedArguments(line, of: BenchCommand.allOptions)
    }

    private func coordinator(_ line: [String], workers: Int, joinTime: Duration = .seconds(60)) throws
        -> FleetCoordinator
    {
        let arguments = try parsed(line)
        return FleetCoordinator(
            plan: try BenchPlan(arguments), order: try FleetOrder(arguments), workers: workers, joinTime: joinTime,
            store: store, keys: keys)
    }

    private func worker(joinTime: Duration = .seconds(60)) throws -> FleetWorker {
        FleetWorker(own: try parsed(["--join", "redis://r#test"]), joinTime: joinTime, store: store, keys: keys)
    }

    @Test(arguments: [["-c", "7"], ["-r", "600"]])
    func threeWorkersSendAllOfItTogetherAndTheReportIsOfAll(model: [String]) async throws {
        try await withLoopbackServer { server in
            let line = [server.baseURL + "/hello", "-n", "300", "-d", "x"] + model
            let coordinator = try coordinator(line, workers: 3)
            let workers = try (0..<3).map { _ in try worker() }
            async let merged = coordinator.perform()
            let parts = try await withThrowingTaskGroup { group in
                for worker in workers { group.addTask { try await worker.perform() } }
                return try await group.reduce(into: [BenchReport]()) { $0.append($1) }
            }
            let report = try await merged
            #expect(report.ok == 300 && report.failed == 0 && server.requestCount == 300)
            #expect(parts.map(\.ok) == [100, 100, 100] && report.fleet?.map(\.requests) == [100, 100, 100])
            #expect(report.fleet?.allSatisfy { $0.outcome == .finished && $0.late < 1 } == true)
            #expect(report.latency["max"] == parts.compactMap { $0.latency["max"] }.max())
            #expect(report.histogram.map(\.count).reduce(0, +) == 300)
            #expect(report.series.map { Double($0.failed) }.reduce(0, +) == 0)
            #expect(report.memory == parts.map(\.memory).reduce(0, +) && report.bytes == 300 * 12)
            #expect(report.connections == parts.map(\.connections).reduce(0, +) && report.method == "POST")
            // In the open model the last is due 299/600 s after the start, whoever sends it.
            if model[0] == "-r" { #expect(report.seconds >= 0.49 && report.seconds < 30) }
            #expect(store.keys.isEmpty, "nothing is left")
            let root = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
            let schema = try SchemaFile.schema(at: root + "/Sources/FerryCommand/Schemas/bench-report.schema.json")
            try schema.check(JSON(parsing: report.json))
        }
    }

    @Test(arguments: [[], ["--unpaced", "-c", "4"]])
    func threeWorkersReplayARecordingTogether(model: [String]) async throws {
        try await withLoopbackServer { server in
            let entries = (0..<7).map { index in
                #"""
                {"startedDateTime": "2026-01-01T12:00:00.\#(index < 6 ? index : 9)00Z", "time": 1, "cache": {},
                 "timings": {"send": 0, "wait": 1, "receive": 0},
                 "request": {"method": "PUT", "url": "\#(server.baseURL)/status/200?body=\#(index)",
                  "httpVersion": "HTTP/1.1", "headers": [], "postData": {"mimeType": "", "text": "\#(index)"}},
                 "response": {"status": 200, "statusText": "", "httpVersion": "HTTP/1.1", "headers": [],
                  "content": {"size": 0}}}
                """#
            }
            let file = try TemporaryFile(
                Array(#"{"log": {"version": "1.2", "entries": [\#(entries.joined(separator: ","))]}}"#.utf8))
            let arguments = try parsed(["--har", file.path] + model)
            let order = try FleetOrder(arguments)
            let coordinator = FleetCoordinator(
                plan: try order.plan(with: parsed([])), order: order, workers: 3, joinTime: .seconds(60), store: store,
                keys: keys)
            let workers = try (0..<3).map { _ in try worker() }
            async let merged = coordinator.perform()
            let parts = try await withThrowingTaskGroup { group in
                for worker in workers { group.addTask { try await worker.perform() } }
                return try await group.reduce(into: [BenchReport]()) { $0.append($1) }
            }
            let report = try await merged
            #expect(report.ok == 7 && report.failed == 0 && parts.map(\.ok).sorted() == [2, 2, 3])
            #expect(report.method == "HAR" && report.url == file.path)
            #expect(report.model.kind == (model.isEmpty ? "open" : "closed"))
            let bodies = server.requests.map(\.text)
            #expect(bodies.sorted() == (0..<7).map { "\($0)" } && server.requests.allSatisfy { $0.method == "PUT" })
            // The last is due 900 ms after the start, whoever sends it.
            if model.isEmpty { #expect(report.seconds >= 0.9 && bodies.last == "6") }
            #expect(report.fleet?.allSatisfy { $0.outcome == .finished } == true && store.keys.isEmpty)
        }
    }

    @Test func missingWorkersEndTheFleetForAll() async throws {
        let coordinator = try coordinator(["http://127.0.0.1:1/", "-n", "9"], workers: 2, joinTime: .seconds(3))
        let worker = try worker()
        let end = Task { try await worker.perform() }
        await #expect(throws: FleetError("1 of 2 workers joined within 3 s")) {
            try await coordinator.perform()
        }
        let fault = await #expect(throws: FleetStop.self) { try await end.value }
        #expect(fault?.description == "the coordinator has ended the run: 1 of 2 workers joined within 3 s")
        #expect(store.keys == [keys.state], "what says so expires")
    }

    @Test func withoutACoordinatorAWorkerEnds() async throws {
        await #expect(throws: FleetError("no coordinator was found within 200 ms: is --fleet running?")) {
            try await worker(joinTime: .milliseconds(200)).perform()
        }
        var state = FleetState(run: "a", phase: .started, workers: 2, start: 1)
        try await set(state)
        await #expect(throws: FleetError("the fleet has already started")) { try await worker().perform() }
        (state.phase, state.start) = (.joining, nil)
        try await set(state)
        await #expect(throws: FleetError("the coordinator's order is missing")) { try await worker().perform() }
        _ = try await store.set(
            keys.order("a"), to: Array("{}".utf8), expiringAfter: .seconds(60), onlyIfAbsent: false)
        await #expect(throws: FleetError("the coordinator's order is not valid")) { try await worker().perform() }
    }

    private func set(_ state: FleetState) async throws {
        _ = try await store.set(
            keys.state, to: try FleetMessage.bytes(state), expiringAfter: .seconds(60), onlyIfAbsent: false)
    }

    /// The times that a worker will not wait for, and those that are long over.
    @Test(arguments: [UInt64(0), 5_000_000_000_000, .max])
    func anImpossibleStartTimeIsAnError(start: UInt64) async throws {
        let order = try FleetOrder(parsed(["http://127.0.0.1:1/", "-n", "1"]))
        _ = try await store.set(
            keys.order("a"), to: try FleetMessage.bytes(order), expiringAfter: .seconds(60), onlyIfAbsent: false)
        try await set(FleetState(run: "a", workers: 1))
        let worker = try worker()
        let end = Task { try await worker.perform() }
        while try await store.values(of: [keys.worker(1, "a")])[0] == nil { await Task.yield() }
        try await set(FleetState(run: "a", phase: .started, workers: 1, start: start))
        let fault = await #expect(throws: FleetError.self) { try await end.value }
        #expect(fault?.description.hasSuffix("s away by the clock of Redis") == true)
        #expect(try await store.values(of: [keys.worker(1, "a")])[0] == nil, "its place is free")
    }

    @Test func aCancelBeforeTheStartFreesThePlace() async throws {
        let order = try FleetOrder(parsed(["http://127.0.0.1:1/", "-n", "1"]))
        _ = try await store.set(
            keys.order("a"), to: try FleetMessage.bytes(order), expiringAfter: .seconds(60), onlyIfAbsent: false)
        try await set(FleetState(run: "a", workers: 1))
        let worker = try worker()
        let end = Task { try await worker.perform() }
        while try await store.values(of: [keys.worker(1, "a")])[0] == nil { await Task.yield() }
        end.cancel()
        await #expect(throws: FleetError.interrupted) { try await end.value }
        #expect(try await store.values(of: [keys.worker(1, "a")])[0] == nil)
        let coordinator = try coordinator(["http://127.0.0.1:1/"], workers: 1)
        try await store.remove([keys.state])
        let merged = Task { try await coordinator.perform() }
        while try await store.values(of: [keys.state])[0] == nil { await Task.yield() }
        merged.cancel()
        await #expect(throws: FleetError.interrupted) { try await merged.value }
    }

    /// Ctrl-C between the last worker's joining and the start.
    @Test(arguments: [["-c", "3"], ["-r", "9"], ["-c", "3", "-w", "1"]])
    func aCancelBeforeTheAgreedTimeSendsNothing(line: [String]) async throws {
        let plan = try BenchPlan(parsed(["http://127.0.0.1:1/"] + line))
        let begin = FleetBegin(at: monotonicNanoseconds() + 600_000_000_000, warmUp: plan.warmUp)
        let load = Task { await BenchRun(plan).figures(at: begin) }
        load.cancel()
        let figures = await load.value
        #expect(figures.totals.ok + figures.totals.failed == 0 && figures.seconds == 0 && figures.late == 0)
    }

    /// A worker that slept for so long that another has its place.
    private func expectNothingIsTakenBack(_ state: FleetState, _ url: String, from worker: FleetWorker) async throws {
        let order = try FleetOrder(parsed([url, "-c", "1", "-z", "600"]))
        _ = try await store.set(
            keys.order("a"), to: try FleetMessage.bytes(order), expiringAfter: .seconds(60), onlyIfAbsent: false)
        try await set(FleetState(run: "a", workers: 1))
        let end = Task { try await worker.perform() }
        let place = keys.worker(1, "a")
        while try await store.values(of: [place])[0] == nil { await Task.yield() }
        if state.phase == .started {
            try await set(state)
            while try await store.values(of: [place])[0].map({ try FleetBeat.reading($0) })?.phase != .running {
                await Task.yield()
            }
        }
        let other = try FleetMessage.bytes(FleetBeat(token: "b", name: "another"))
        _ = try await store.set(place, to: other, expiringAfter: .seconds(60), onlyIfAbsent: false)
        let begin = ContinuousClock.now
        await #expect(throws: FleetError.placeTaken) { try await end.value }
        #expect(begin.duration(to: .now) < .nanoseconds(FleetMachine.patience), "it does not go on for so long")
        #expect(try await store.values(of: [place, keys.result(1, "a")]) == [other, nil])
    }

    @Test func aWorkerWhosePlaceIsTakenTakesNothingBack() async throws {
        try await expectNothingIsTakenBack(FleetState(run: "a", workers: 1), "http://127.0.0.1:1/", from: worker())
    }

    @Test func aWorkerWhosePlaceIsTakenEndsItsLoad() async throws {
        try await withLoopbackServer { server in
            let state = FleetState(run: "a", phase: .started, workers: 1, start: try await store.time())
            try await expectNothingIsTakenBack(state, server.baseURL + "/hello", from: worker())
        }
    }

    @Test func twoCoordinatorsDoNotShareAName() async throws {
        try await set(FleetState(run: "a", workers: 2))
        await #expect(throws: FleetError("another coordinator uses this name, or used it less than 10 s ago")) {
            try await coordinator(["http://127.0.0.1:1/"], workers: 2).perform()
        }
    }

    /// A coordinator that slept for so long that another uses its name.
    @Test func aCoordinatorWhoseNameIsTakenLeavesItToTheOther() async throws {
        let coordinator = try coordinator(["http://127.0.0.1:1/"], workers: 2)
        let end = Task { try await coordinator.perform() }
        while try await store.values(of: [keys.state])[0] == nil { await Task.yield() }
        let other = FleetState(run: "b", workers: 2)
        try await set(other)
        await #expect(throws: FleetError("another coordinator has taken this name")) { try await end.value }
        let left = try #require(try await store.values(of: [keys.state])[0])
        #expect(try FleetState.reading(left) == other && store.keys == [keys.state])
    }

    /// Ctrl-C at the coordinator: all end, and what they have measured is there.
    @Test func aCancelEndsTheLoadOfAll() async throws {
        try await withLoopbackServer { server in
            let coordinator = try coordinator([server.baseURL + "/hello", "-c", "2", "-z", "600"], workers: 2)
            let workers = try (0..<2).map { _ in try worker() }
            let merged = Task { try await coordinator.perform() }
            async let first = workers[0].perform()
            async let second = workers[1].perform()
            try await server.waitForRequests(20)
            merged.cancel()
            let report = try await merged.value
            let parts = try await [first, second]
            #expect(report.ok == parts.map(\.ok).reduce(0, +) && report.ok >= 18)
            #expect(report.fleet?.map(\.outcome) == [.finished, .finished])
        }
    }
}
