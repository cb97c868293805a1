internal import Ferry
internal import FerryMeasurement

/// The state machine of the coordinator: takes the messages of the workers and returns what to do next. Times are
/// nanoseconds of the monotonic clock.
struct FleetMachine: Sendable {
    /// What was found at a worker's key.
    enum Finding: Sendable {
        case nothing
        case beat(FleetBeat)
        /// A value that is not a valid message.
        case damaged(String)
    }

    enum Action: Sendable {
        /// Look again later.
        case wait
        /// Start the load, because all workers have joined.
        case start
        /// Read the results of these workers, counted from 0.
        case collect([Int])
        /// Tell all workers to stop, and look again.
        case stop
        /// Make the report, because all workers have ended.
        case end
        /// Tell all workers to stop, and fail with this message.
        case fail(String)
    }

    private struct Worker {
        var token: String?
        var name = ""
        var number: UInt64 = 0
        /// When `number` was first seen.
        var time: UInt64 = 0
        var last: FleetFigures?
        var end: FleetMember?
        var figures: FleetFigures?
    }

    private enum Phase { case joining, running, stopping(until: UInt64) }

    private var workers: [Worker]
    private var phase = Phase.joining
    private let joinBound: UInt64
    private let joinTime: Duration
    /// The longest time from the start to the end; `nil` if there is no limit.
    private let loadTime: UInt64?
    private var loadBound = UInt64.max

    /// A worker that has sent nothing new for this long is lost.
    static let patience: UInt64 = 10_000_000_000
    /// How long workers may take to stop. They cancel their requests at once, so more is not needed.
    static let stopTime: UInt64 = 10_000_000_000

    init(workers count: Int, joiningWithin time: Duration, loadTime: UInt64?, at now: UInt64) {
        workers = Array(repeating: Worker(), count: count)
        joinTime = time
        joinBound = now + UInt64(max(0, time.microseconds)) * 1000
        self.loadTime = loadTime
    }

    /// The number of workers that have joined.
    var joined: Int { workers.count { $0.token != nil } }

    /// The known figures of all workers: results, and the last messages of those that have not sent a result.
    var figures: [BenchFigures] {
        workers.compactMap { worker in (worker.figures ?? worker.last).map { BenchFigures($0) } }
    }

    var members: [FleetMember] { workers.compactMap(\.end) }

    /// Processes what was found at each worker's key.
    mutating func looked(_ findings: [Finding], at now: UInt64) -> Action {
        switch phase {
        case .joining: return join(findings, at: now)
        case .running, .stopping: return watch(findings, at: now)
        }
    }

    /// The load must end early.
    mutating func cancelled(at now: UInt64) -> Action {
        switch phase {
        case .joining: return .fail(FleetError.interrupted.description)
        case .running:
            phase = .stopping(until: now + Self.stopTime)
            return .stop
        case .stopping: return .wait
        }
    }

    /// Processes the result of a worker, or the reason why there is no valid result.
    mutating func received(_ result: Result<FleetResult, FleetError>, from index: Int) {
        switch result {
        case .success(let result) where !isPossible(result.figures, from: index):
            end(index, .lost, "its result is not valid")
        case .success(let result):
            workers[index].figures = result.figures
            end(index, result.wasInterrupted ? .interrupted : .finished)
        case .failure(let error): end(index, .lost, error.description)
        }
    }

    private mutating func join(_ findings: [Finding], at now: UInt64) -> Action {
        for (index, finding) in findings.enumerated() {
            switch finding {
            case .nothing: workers[index] = Worker()
            case .damaged(let text): return .fail("worker \(index + 1): \(text)")
            case .beat(let beat): workers[index] = Worker(token: beat.token, name: beat.name, time: now)
            }
        }
        if joined == workers.count {
            phase = .running
            loadBound = loadTime.map { now + $0 } ?? .max
            return .start
        }
        if now < joinBound { return .wait }
        return .fail("\(joined) of \(workers.count) workers joined within \(FailureText.text(joinTime))")
    }

    private mutating func watch(_ findings: [Finding], at now: UInt64) -> Action {
        var done: [Int] = []
        for (index, finding) in findings.enumerated() where workers[index].end == nil {
            switch finding {
            case .nothing: end(index, .lost, "it stopped sending messages")
            case .damaged(let text): end(index, .lost, text)
            case .beat(let beat) where beat.token != workers[index].token:
                end(index, .lost, "another process has taken its place")
            case .beat(let beat) where !isPossible(beat.figures, from: index):
                end(index, .lost, "its message is not valid")
            case .beat(let beat):
                if beat.number != workers[index].number {
                    (workers[index].number, workers[index].time) = (beat.number, now)
                }
                if let figures = beat.figures { workers[index].last = figures }
                if beat.phase == .done {
                    done.append(index)
                } else if now >= workers[index].time + Self.patience {
                    end(index, .lost, "it sent nothing new for \(Self.patience / 1_000_000_000) s")
                }
            }
        }
        if !done.isEmpty { return .collect(done) }
        if workers.allSatisfy({ $0.end != nil }) { return .end }
        switch phase {
        case .stopping(let bound) where now >= bound:
            for index in workers.indices where workers[index].end == nil {
                end(index, .lost, "it did not stop in time")
            }
            return .end
        case .running where now >= loadBound: return cancelled(at: now)
        default: return .wait
        }
    }

    /// Whether these figures can follow the last ones of the worker.
    private func isPossible(_ figures: FleetFigures?, from index: Int) -> Bool {
        guard let figures, let last = workers[index].last else { return true }
        return figures.follow(last)
    }

    private mutating func end(_ index: Int, _ outcome: FleetMember.Outcome, _ reason: String? = nil) {
        let known = workers[index].figures ?? workers[index].last
        workers[index].end = FleetMember(
            name: workers[index].name, outcome: outcome,
            requests: known.map { $0.totals.ok + $0.totals.failed } ?? 0, late: rounded(known?.late ?? 0, 3),
            reason: reason)
    }

    /// The token of a worker that has joined.
    func token(_ index: Int) -> String { workers[index].token ?? "" }
}
