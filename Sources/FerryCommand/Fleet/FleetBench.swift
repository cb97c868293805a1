internal import Ferry
internal import FerryMeasurement
internal import FerrySynchronization
internal import FoundationEssentials
internal import Glibc

/// `ferry bench --fleet` and `--join`: several processes carry one load.
enum FleetBench {
    static func coordinate(_ arguments: ParsedArguments) async throws -> ExitCode {
        if arguments.has("compare") { throw UsageError("--fleet and --compare cannot be combined") }
        let address = try FleetAddress(arguments.last("fleet") ?? "", option: "fleet")
        guard let workers = try arguments.integer("workers", in: FleetShare.counts) else {
            throw UsageError("--fleet requires --workers N")
        }
        let joinTime = try arguments.seconds("join-timeout") ?? .seconds(60)
        let order = try FleetOrder(arguments)
        // The coordinator's own part: it sends nothing, but it judges and reports.
        var plan = try BenchPlan(arguments)
        if let recording = order.recording {
            let archive = try ArchiveLoad.archive(Array(recording.bytes), recording.name)
            try plan.replay(recording.name, archive, arguments)
        } else {
            try plan.order.check()
        }
        if let obstacle = plan.obstacle(to: workers) { throw UsageError(obstacle) }
        let coordinator = FleetCoordinator(
            plan: plan, order: order, workers: workers, joinTime: joinTime,
            store: RedisFleetStore(address.configuration), keys: FleetKeys(address.name))
        guard let (merged, wasInterrupted) = try await unlessInterrupted({ try await coordinator.perform() }) else {
            return .interrupted
        }
        var report = merged
        plan.verdict.judge(&report)
        let ruling = BenchRuling(
            report, plan.verdict, mustBeRight: plan.bodies != .likeFirst, wasInterrupted: wasInterrupted)
        let code = plan.output.write(report, ruling)
        // The table already has these among its warnings.
        for (index, member) in (report.fleet ?? []).enumerated() where plan.output.printsJSON {
            guard let complaint = member.complaint(number: index + 1) else { continue }
            Console.error("ferry bench: \(Main.oneLine(complaint))\n")
        }
        return code
    }

    /// `nil` if ctrl-C was pressed before anything was measured.
    private static func unlessInterrupted(
        _ body: @escaping @Sendable () async throws -> BenchReport
    ) async throws -> (report: BenchReport, wasInterrupted: Bool)? {
        do {
            let (report, wasInterrupted) = try await interruptible(body)
            return (report, wasInterrupted)
        } catch let error as FleetError where error == .interrupted {
            return nil
        }
    }

    static func join(_ arguments: ParsedArguments) async throws -> ExitCode {
        let address = try FleetAddress(arguments.last("join") ?? "", option: "join")
        try FleetOrder.check(ofWorker: arguments)
        let joinTime = try arguments.seconds("join-timeout") ?? .seconds(60)
        let output = try BenchOutput(arguments)
        raiseDescriptorLimit()
        let worker = FleetWorker(
            own: arguments, joinTime: joinTime, store: RedisFleetStore(address.configuration),
            keys: FleetKeys(address.name))
        guard let (report, wasInterrupted) = try await unlessInterrupted({ try await worker.perform() }) else {
            return .interrupted
        }
        // The coordinator judges the whole load. A worker has no conditions of its own.
        let ruling = BenchRuling(
            report, BenchVerdict([], baseline: nil), mustBeRight: false, wasInterrupted: wasInterrupted)
        return output.write(report, ruling, after: wasInterrupted ? .interrupted : .success)
    }
}

/// The process that divides the load among its workers, waits for them and merges their figures.
struct FleetCoordinator: Sendable {
    let plan: BenchPlan
    let order: FleetOrder
    let workers: Int
    let joinTime: Duration
    let store: any FleetStore
    let keys: FleetKeys

    /// From the moment when the last worker has joined to the start, in microseconds. By then every worker has read the
    /// start.
    private static let lead: UInt64 = 1_000_000
    /// How long after its planned end a load may still run, in nanoseconds.
    private static let slack: UInt64 = 300_000_000_000

    /// Runs the whole load. Throws if not all workers have joined in time, or if the store fails. When its task is
    /// cancelled, it stops the workers.
    func perform() async throws -> BenchReport {
        var state = FleetState(run: Self.newRun(), workers: workers)
        try await publish(order, state)
        let display = Console.isLive ? FleetDisplay(plan, workers: workers) : nil
        defer { display?.clear() }
        do {
            let machine = try await coordinate(&state, display)
            let isWhole = machine.members.allSatisfy { $0.outcome == .finished }
            // A lost worker may come back, and must then find out that the load is over.
            if !isWhole { try? await end(&state, "a worker was lost") }
            try? await store.remove(keys.all(state.run, workers: workers) + (isWhole ? [keys.state] : []))
            return report(machine)
        } catch {
            try? await end(&state, "\(error)")
            try? await store.remove(keys.all(state.run, workers: workers))
            throw error
        }
    }

    static func newRun() -> String {
        (0..<2).map { _ in String(UInt64.random(in: 0...(.max)), radix: 16) }.joined()
    }

    private func publish(_ order: FleetOrder, _ state: FleetState) async throws(FleetError) {
        let lifetime = Duration.seconds(joinTime.components.seconds + 60)
        _ = try await store.set(
            keys.order(state.run), to: try FleetMessage.bytes(order), expiringAfter: lifetime, onlyIfAbsent: false)
        let bytes = try FleetMessage.bytes(state)
        if try await store.set(
            keys.state, to: bytes, expiringAfter: FleetState.lifetime, onlyIfAbsent: true)
        {
            return
        }
        // A fleet that is over does not block the name. The state may also be this one, set by a repeated command.
        let other = try await store.values(of: [keys.state])[0].flatMap { try? FleetState.reading($0) }
        if other?.phase != .stopped, other?.run != state.run {
            try await store.remove([keys.order(state.run)])
            throw FleetError("another coordinator uses this name, or used it less than 10 s ago")
        }
        _ = try await store.set(keys.state, to: bytes, expiringAfter: FleetState.lifetime, onlyIfAbsent: false)
    }

    private func say(_ state: FleetState) async throws(FleetError) {
        let other = try await store.values(of: [keys.state])[0].flatMap { try? FleetState.reading($0) }
        if let other, other.run != state.run, other.phase != .stopped {
            throw FleetError("another coordinator has taken this name")
        }
        _ = try await store.set(
            keys.state, to: try FleetMessage.bytes(state), expiringAfter: FleetState.lifetime, onlyIfAbsent: false)
    }

    private func end(_ state: inout FleetState, _ reason: String) async throws(FleetError) {
        (state.phase, state.start, state.reason) = (.stopped, nil, String(reason.prefix(300)))
        try await say(state)
    }

    /// Runs until all workers have ended.
    private func coordinate(_ state: inout FleetState, _ display: FleetDisplay?) async throws -> FleetMachine {
        let time = plan.duration.map { UInt64(($0 + plan.warmUp).microseconds) * 1000 + Self.slack }
        var machine = FleetMachine(
            workers: workers, joiningWithin: joinTime, loadTime: time, at: monotonicNanoseconds())
        let places = (1...workers).map { keys.worker($0, state.run) }
        var said = monotonicNanoseconds()
        while true {
            var action = FleetMachine.Action.wait
            if Task.isCancelled { action = machine.cancelled(at: monotonicNanoseconds()) }
            if case .wait = action {
                let findings = try await store.values(of: places).map(Self.finding)
                action = machine.looked(findings, at: monotonicNanoseconds())
            }
            switch action {
            case .wait: break
            case .start:
                (state.phase, state.start) = (.started, try await store.time() + Self.lead)
                try await say(state)
            case .collect(let indices):
                for index in indices {
                    machine.received(
                        await result(of: index, state.run, token: machine.token(index)), from: index)
                }
            case .stop:
                (state.phase, state.start) = (.stopped, nil)
                state.reason = Task.isCancelled ? "interrupted" : "the load did not end in time"
                try await say(state)
            case .end: return machine
            case .fail(let text): throw FleetError(text)
            }
            let now = monotonicNanoseconds()
            if now - said >= 1_000_000_000 {
                said = now
                try await say(state)
            }
            display?.show(machine, hasStarted: state.phase != .joining)
            await pause(milliseconds: state.phase == .joining ? 50 : 100)
        }
    }

    private static func finding(_ bytes: [UInt8]?) -> FleetMachine.Finding {
        guard let bytes else { return .nothing }
        do throws(FleetError) {
            return .beat(try FleetBeat.reading(bytes))
        } catch {
            return .damaged(error.description)
        }
    }

    private func result(of index: Int, _ run: String, token: String) async -> Result<FleetResult, FleetError> {
        do throws(FleetError) {
            guard let bytes = try await store.values(of: [keys.result(index + 1, run)])[0] else {
                throw FleetError("its result is missing")
            }
            return .success(try FleetResult.reading(bytes, token: token))
        } catch {
            return .failure(error)
        }
    }

    private func report(_ machine: FleetMachine) -> BenchReport {
        var report = BenchReport(plan, BenchFigures(merging: machine.figures))
        report.fleet = machine.members
        for (index, member) in machine.members.enumerated() {
            if let complaint = member.complaint(number: index + 1) { report.warnings.append(complaint) }
            if member.late > 0.1 {
                report.warnings.append(
                    "worker \(index + 1) (\(member.name)) started \(fixed(member.late, 1)) s after the agreed time")
            }
        }
        return report
    }
}

/// The live display on the coordinator's terminal.
final class FleetDisplay: Sendable {
    private let board: BenchDisplay
    private let workers: Int
    private let timeline: Mutex<BenchTimeline>

    init(_ plan: BenchPlan, workers: Int) {
        board = BenchDisplay(plan)
        self.workers = workers
        timeline = Mutex(BenchTimeline(seconds: plan.duration.map { Double($0.microseconds) / 1e6 }))
    }

    func show(_ machine: FleetMachine, hasStarted: Bool) {
        if !hasStarted { return Console.live("\(machine.joined) of \(workers) workers have joined") }
        Console.endLive()
        let figures = BenchFigures(merging: machine.figures)
        let windows = timeline.withLock { timeline in
            timeline.observe(figures.totals.latencies, failed: figures.totals.failed, at: figures.seconds)
            return timeline.windows
        }
        board.show(figures.totals, windows, seconds: figures.seconds, isWarmUp: false)
    }

    func clear() {
        Console.endLive()
        board.clear()
    }
}
