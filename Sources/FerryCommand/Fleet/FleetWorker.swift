internal import Ferry
internal import FerryMeasurement
internal import FerrySynchronization
internal import FoundationEssentials
internal import Glibc

/// A process that carries one part of the load.
struct FleetWorker: Sendable {
    /// The worker's own command line.
    let own: ParsedArguments
    let joinTime: Duration
    let store: any FleetStore
    let keys: FleetKeys
    /// The machine and the process, for messages to people.
    var name = Self.ownName

    private static let ownName = "\(String(ProcessInfo.processInfo.hostName.prefix(100))):\(getpid())"

    /// How far ahead the start may be, in microseconds of the store's clock; below, how long ago.
    private static let farthestStart: Int64 = 60_000_000
    private static let latestStart: Int64 = 5_000_000

    /// The figures so far, while the load runs.
    private final class Progress: Sendable {
        private let latest = Mutex<(totals: BenchTotals, seconds: Double)?>(nil)

        func note(_ totals: BenchTotals, _ seconds: Double) { latest.withLock { $0 = (totals, seconds) } }

        var figures: FleetFigures? {
            guard let (totals, seconds) = latest.withLock({ $0 }) else { return nil }
            var figures = BenchFigures(totals, date: .now)
            figures.seconds = seconds
            return FleetFigures(figures)
        }
    }

    /// Carries the part. Throws if no fleet with this name is found in time, if its messages are invalid, or if its
    /// coordinator is gone. When its task is cancelled, it sends the figures so far.
    func perform() async throws -> BenchReport {
        let state = try await findFleet()
        guard let bytes = try await store.values(of: [keys.order(state.run)])[0] else {
            throw FleetError("the coordinator's order is missing")
        }
        let order = try FleetOrder.reading(bytes)
        var plan = try order.plan(with: own)
        if let obstacle = plan.obstacle(to: state.workers) { throw FleetError("the coordinator's order: \(obstacle)") }
        var beat = FleetBeat(token: FleetCoordinator.newRun(), name: name)
        let place = try await takePlace(state, beat)
        plan = plan.part(FleetShare(index: place - 1, count: state.workers))
        if Console.isLive { Console.live("worker \(place) of \(state.workers), waiting for the start") }
        let start: UInt64
        do {
            start = try await waitForStart(state, place, &beat)
        } catch {
            if Console.isLive { Console.endLive() }
            let isOwn = error as? FleetError != .placeTaken
            if isOwn { try? await store.remove([keys.worker(place, state.run)]) }
            throw error
        }
        if Console.isLive { Console.endLive() }
        return try await carry(plan, from: start, state, place, beat)
    }

    /// Waits for a coordinator whose fleet can be joined.
    private func findFleet() async throws -> FleetState {
        let end = monotonicNanoseconds() + UInt64(max(0, joinTime.microseconds)) * 1000
        while true {
            if let bytes = try await store.values(of: [keys.state])[0] {
                let state = try FleetState.reading(bytes)
                switch state.phase {
                case .joining: return state
                case .started: throw FleetError("the fleet has already started")
                case .stopped: break
                }
            }
            if Task.isCancelled { throw FleetError.interrupted }
            if monotonicNanoseconds() >= end {
                throw FleetError("no coordinator was found within \(FailureText.text(joinTime)): is --fleet running?")
            }
            await pause(milliseconds: 100)
        }
    }

    /// Takes the first free place. Places are counted from 1.
    private func takePlace(_ state: FleetState, _ beat: FleetBeat) async throws -> Int {
        let bytes = try FleetMessage.bytes(beat)
        for place in 1...state.workers {
            let key = keys.worker(place, state.run)
            if try await store.set(key, to: bytes, expiringAfter: FleetBeat.lifetime, onlyIfAbsent: true) {
                return place
            }
            // A repeated command may have set this worker's own message before.
            if let found = try await store.values(of: [key])[0], try FleetBeat.reading(found).token == beat.token {
                return place
            }
        }
        throw FleetError("all \(state.workers) places of the fleet are taken")
    }

    /// Waits for the start, and returns its time on the monotonic clock.
    private func waitForStart(_ state: FleetState, _ place: Int, _ beat: inout FleetBeat) async throws -> UInt64 {
        var said = monotonicNanoseconds()
        while true {
            let now = try await look(state)
            if now.phase == .started, let start = now.start { return try await monotonic(start) }
            if Task.isCancelled { throw FleetError.interrupted }
            if monotonicNanoseconds() - said >= 1_000_000_000 {
                said = monotonicNanoseconds()
                try await say(&beat, place, state)
            }
            await pause(milliseconds: 50)
        }
    }

    /// The coordinator's current state. Throws if the coordinator is gone or has ended the run.
    private func look(_ state: FleetState) async throws -> FleetState {
        guard let bytes = try await store.values(of: [keys.state])[0] else {
            throw FleetError("the coordinator is gone")
        }
        let now = try FleetState.reading(bytes)
        if now.run != state.run { throw FleetError("the coordinator is gone, and another uses its name") }
        if now.phase == .stopped { throw FleetStop(reason: now.reason ?? "no reason given") }
        return now
    }

    /// Converts a time of the store's clock. Of five readings of that clock, the quickest is the most exact.
    private func monotonic(_ start: UInt64) async throws -> UInt64 {
        var best: (duration: UInt64, middle: UInt64, time: UInt64)?
        for _ in 0..<5 {
            let before = monotonicNanoseconds()
            let time = try await store.time()
            let duration = monotonicNanoseconds() - before
            if best.map({ duration < $0.duration }) ?? true { best = (duration, before + duration / 2, time) }
        }
        guard let best else { throw FleetError("the clock of Redis could not be read") }
        let (ahead, isTooFar) = Int64(clamping: start).subtractingReportingOverflow(Int64(clamping: best.time))
        guard !isTooFar, (-Self.latestStart...Self.farthestStart).contains(ahead) else {
            throw FleetError("the start is \(ahead / 1_000_000) s away by the clock of Redis")
        }
        return UInt64(max(0, Int64(best.middle) + ahead * 1000))
    }

    private func say(_ beat: inout FleetBeat, _ place: Int, _ state: FleetState) async throws(FleetError) {
        try await checkPlace(place, state, beat.token)
        beat.number += 1
        let lifetime = beat.phase == .done ? FleetResult.lifetime : FleetBeat.lifetime
        _ = try await store.set(
            keys.worker(place, state.run), to: try FleetMessage.bytes(beat), expiringAfter: lifetime,
            onlyIfAbsent: false)
    }

    private func checkPlace(_ place: Int, _ state: FleetState, _ token: String) async throws(FleetError) {
        let found = try await store.values(of: [keys.worker(place, state.run)])[0]
        if let found, try FleetBeat.reading(found).token != token { throw FleetError.placeTaken }
    }

    /// Carries the load and sends the result.
    private func carry(
        _ plan: BenchPlan, from start: UInt64, _ state: FleetState, _ place: Int, _ beat: FleetBeat
    ) async throws -> BenchReport {
        var beat = beat
        beat.phase = .running
        let progress = Progress()
        let load = Task {
            if plan.archive != nil { return await ArchiveBench.figures(plan, at: start) { progress.note($0, $1) } }
            return await BenchRun(plan).figures(at: FleetBegin(at: start, warmUp: plan.warmUp)) {
                progress.note($0, $1)
            }
        }
        let running = beat
        let watch = Task { await self.watch(running, progress, state, place, load) }
        let figures = await withTaskCancellationHandler {
            await load.value
        } onCancel: {
            load.cancel()
        }
        watch.cancel()
        let (number, fault) = await watch.value
        if let fault { throw fault }
        (beat.phase, beat.number) = (.done, number)
        // Do not overwrite the result of another worker.
        try await checkPlace(place, state, beat.token)
        let result = FleetResult(token: beat.token, figures: FleetFigures(figures), wasInterrupted: Task.isCancelled)
        _ = try await store.set(
            keys.result(place, state.run), to: try FleetMessage.bytes(result), expiringAfter: FleetResult.lifetime,
            onlyIfAbsent: false)
        try await say(&beat, place, state)
        return BenchReport(plan, figures)
    }

    /// Sends a message every second, and ends the load if the coordinator has ended the run. Returns the number of the
    /// last message, and the reason if the load had to be abandoned.
    private func watch(
        _ beat: FleetBeat, _ progress: Progress, _ state: FleetState, _ place: Int, _ load: Task<BenchFigures, Never>
    ) async -> (number: UInt64, fault: (any Error)?) {
        var beat = beat
        var lastGood = monotonicNanoseconds()
        while !Task.isCancelled {
            do {
                _ = try await look(state)
                beat.figures = progress.figures
                try await say(&beat, place, state)
                lastGood = monotonicNanoseconds()
            } catch is FleetStop {
                load.cancel()
                return (beat.number, nil)
            } catch {
                // The store or the coordinator may only be slow.
                if error as? FleetError == .placeTaken || monotonicNanoseconds() - lastGood > FleetMachine.patience {
                    load.cancel()
                    return (beat.number, error)
                }
            }
            for _ in 0..<10 where !Task.isCancelled { await pause(milliseconds: 100) }
        }
        return (beat.number, nil)
    }
}

/// Thrown when the coordinator has ended the run.
struct FleetStop: Error, CustomStringConvertible {
    let reason: String

    var description: String { "the coordinator has ended the run: \(reason)" }
}
