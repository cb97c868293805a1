import FaultTable
import Testing

@testable import Ferry

/// A run of a case, started in one form and way.
struct FaultRun: Sendable {
    let play: Play
    /// The place of a download.
    let place: DownloadPlace
    /// How the result is delivered: to the closure, or to the awaiting task.
    let callback = TimedOutcome()
    private let handle: Handle

    private enum Handle: Sendable {
        case awaited(Task<FaultOutcome, Never>)
        case run(RequestTask<Response>)
        case download(DownloadTask)
    }

    /// Starts it.
    init<R: Request>(_ request: R, _ play: Play, _ agent: NetworkAgent) throws where R.Value == Response {
        let (place, callback) = (try DownloadPlace(), callback)
        self.play = play
        self.place = place
        switch (play.way, play.form) {
        case (.awaited, let form):
            handle = .awaited(
                Task {
                    let outcome = await agent.outcome(of: request, form, place)
                    callback.take(outcome)
                    return outcome
                })
        case (.closure, .download):
            handle = .download(
                agent.download(request, to: .file(place.target)) {
                    callback.take($0.map { FaultAnswer(head: $0.response, body: place.bytes) })
                })
        case (.closure, .buffered), (.closure, .streamed):
            handle = .run(
                agent.start(request) { callback.take($0.map { FaultAnswer(head: $0.response, body: $0.bytes) }) })
        }
    }

    /// Its outcome.
    var outcome: FaultOutcome {
        get async {
            if case .awaited(let task) = handle { await task.value } else { await callback.outcome }
        }
    }

    func cancel() {
        switch handle {
        case .awaited(let task): task.cancel()
        case .run(let task): task.cancel()
        case .download(let task): task.cancel()
        }
    }

    /// For a run that was started with a closure.
    var state: RunState? {
        switch handle {
        case .awaited: nil
        case .run(let task): task.state
        case .download(let task): task.state
        }
    }

    /// How many of them are correct at its end.
    var expectedCallbacks: Int { 1 }
}

extension NetworkAgent {
    fileprivate func outcome<R: Request>(
        of request: R, _ form: Form, _ place: DownloadPlace
    ) async -> FaultOutcome where R.Value == Response {
        do throws(RequestError) {
            switch form {
            case .buffered:
                let reply = try await send(request)
                return .success(FaultAnswer(head: reply.response, body: reply.bytes))
            case .streamed:
                let response = try await stream(request)
                var body: [UInt8] = []
                for try await piece in response.body { body += piece }
                return .success(FaultAnswer(head: response.head, body: body))
            case .download:
                let file = try await download(request, to: .file(place.target))
                return .success(FaultAnswer(head: file.response, body: place.bytes))
            }
        } catch {
            return .failure(error)
        }
    }

    /// The outcome of a run started in this way, noted for the table.
    func outcome<R: Request>(
        of request: R, _ play: Play, bound: Duration = FaultSetup().bound,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> FaultOutcome where R.Value == Response {
        let run = try FaultRun(request, play, self)
        let outcome = await run.outcome
        let took = run.callback.elapsed(whereMoreThan: bound)
        #expect(took < bound || !ProcessHoldings.isAlone, "I5: it took \(took)", sourceLocation: sourceLocation)
        #expect(run.callback.count == run.expectedCallbacks, "I1", sourceLocation: sourceLocation)
        if let error = outcome.error { expectNoSecret(in: error, sourceLocation) }
        let summary = outcome.error.map { "`\($0.code.summary)`" } ?? FaultNote.answered
        FaultNote.add(form: play.form.rawValue, outcome: summary, took: took)
        run.place.expectNoPartOfAFile(outcome, isDownload: play.form == .download, sourceLocation)
        return outcome
    }

    /// The outcomes of runs started in every form and way, one after another.
    func outcomes<R: Request>(
        of request: R, _ forms: [Form] = Form.allCases, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> [FaultOutcome] where R.Value == Response {
        var outcomes: [FaultOutcome] = []
        for play in forms.flatMap(Play.of) {
            outcomes.append(try await outcome(of: request, play, sourceLocation: sourceLocation))
        }
        return outcomes
    }
}
