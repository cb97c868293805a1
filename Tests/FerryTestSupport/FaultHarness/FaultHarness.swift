import FaultTable
import FerryTesting
import FerryTransport
import Testing

@testable import Ferry

/// Plays a case that must fail, in every form and way, and checks every invariant of the fault table.
func expectFault(
    _ script: LoopbackScript = [], _ code: RequestError.Code, _ phases: RequestPhase..., processed: Bool = true,
    untouched: Bool = false, attempts: Int = 1, received: Int? = nil,
    sourceLocation: SourceLocation = #_sourceLocation,
    setUp: (inout FaultSetup) throws -> Void = { _ in },
    after: (LoopbackServer) throws -> Void = { _ in }, error look: (RequestError) -> Void = { _ in }
) async throws {
    var setup = FaultSetup()
    try setUp(&setup)
    let expected = ExpectedFault(
        code: code, phases: Set(phases), processed: processed, attempts: attempts, isUntouched: untouched,
        received: received.map(UInt64.init))
    try await forEachPlay(script, setup, sourceLocation) { play, outcome, stage in
        switch outcome {
        case .success(let answer):
            Issue.record("\(play): \(answer.status), \(answer.bodyLength) bytes", sourceLocation: sourceLocation)
        case .failure(let error):
            check(error, expected, url: setup.checksURL ? stage.shownURL : nil, sourceLocation)
            look(error)
        }
        try after(stage.server)
        return expected.summary
    }
}

/// Plays a case that must succeed, in every form and way, and checks every invariant.
func expectAnswer(
    _ script: LoopbackScript = [], sourceLocation: SourceLocation = #_sourceLocation,
    setUp: (inout FaultSetup) throws -> Void = { _ in }, check: (FaultAnswer, LoopbackServer) throws -> Void
) async throws {
    var setup = FaultSetup()
    try setUp(&setup)
    try await forEachPlay(script, setup, sourceLocation) { play, outcome, stage in
        switch outcome {
        case .success(let answer): try check(answer, stage.server)
        case .failure(let error): Issue.record("\(play): \(error)", sourceLocation: sourceLocation)
        }
        return FaultNote.answered
    }
}

/// Plays a case in each of its forms and ways, with a new server and agent each time. `meanwhile` may act on the run;
/// `check` returns the outcome for the table. If the case has to end at some time and the median of the plays was late,
/// everything is repeated, a few times.
func forEachPlay(
    _ script: LoopbackScript, _ setup: FaultSetup, uses: Int? = nil, _ sourceLocation: SourceLocation,
    meanwhile: (FaultRun, FaultStage, NetworkAgent) async throws -> Void = { _, _, _ in },
    check: (Play, FaultOutcome, FaultStage) throws -> String
) async throws {
    MachinePauses.beginWatch()
    await FaultBaseline.isWarm.value
    for round in 1...FaultDue.rounds {
        var times: [Duration] = []
        for play in setup.plays {
            let baseline = FaultBaseline()
            let stage = FaultStage(script, setup, uses: uses, server: try LoopbackServer(setup.server))
            let outcome = try await stage.play(play, sourceLocation, meanwhile)
            let summary = try check(play, outcome, stage)
            stage.server.stop()
            await baseline.expectNoDescriptorsLeft("\(play)", sourceLocation)
            baseline.expectBoundedMemory(setup.memoryBound, "\(play)", sourceLocation)
            FaultNote.add(form: play.form.rawValue, outcome: summary, took: stage.elapsed)
            times.append(stage.elapsed)
        }
        if setup.due?.isMet(by: times) ?? true || !ProcessHoldings.isAlone { break }
        if round == FaultDue.rounds { Issue.record("I5: late, \(times)", sourceLocation: sourceLocation) }
    }
    for (form, reason) in setup.omitted { FaultNote.omit(form: form.rawValue, because: reason) }
}

extension Result where Failure == RequestError {
    var error: RequestError? { if case .failure(let error) = self { error } else { nil } }
}

/// The error that `body` throws.
func fault<T>(_ body: () async throws(RequestError) -> T) async -> RequestError? {
    do throws(RequestError) {
        _ = try await body()
        return nil
    } catch {
        return error
    }
}

extension Transporting {
    /// Nothing runs, nothing is open, and every accepted run has its result.
    var isAtRest: Bool {
        let now = statistics
        return now.waiting == 0 && now.resolving == 0 && now.running == 0 && now.sockets == 0 && now.handles == 0
            && now.submitted == now.finished
    }
}

/// Whether it becomes true, checked repeatedly; false after a time for which no machine is busy.
func eventually(within bound: Duration = .seconds(60), _ isTrue: () -> Bool) async -> Bool {
    let end = ContinuousClock.now + bound
    while !isTrue() {
        if ContinuousClock.now > end { return false }
        // Only so that checking does not take the processor from the work.
        try? await Task.sleep(for: .milliseconds(1))
    }
    return true
}
