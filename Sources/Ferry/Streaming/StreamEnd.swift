/// Who is told of the end of a streamed run, whatever the type of its request: its hooks and its observers.
struct StreamEnd: Sendable {
    private let watch: RunWatch?
    private let preprocess: @Sendable (RequestError) -> Void
    private let filter: @Sendable (RequestError) -> Void

    init<R: Request>(of request: R, _ watch: RunWatch?) {
        self.watch = watch
        preprocess = { request.failurePreprocessor($0) }
        filter = { request.failureFilter($0) }
    }

    func failed(_ error: RequestError, _ metrics: @autoclosure () -> RequestMetrics) {
        preprocess(error)
        let outcome = RunOutcome(error)
        watch?.willStop(outcome, metrics())
        filter(error)
        watch?.didStop(outcome)
    }

    func finished(_ head: Response, _ metrics: @autoclosure () -> RequestMetrics) {
        guard let watch else { return }
        let outcome = RunOutcome.finished(status: head.status, isFromCache: head.isFromCache)
        watch.willStop(outcome, metrics())
        watch.didStop(outcome)
    }
}
