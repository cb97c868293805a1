import FerryTransport

/// The observers of one run and its log, and what they are told. There is none for a run that nobody observes.
///
/// An object, as nearly every run has none: `nil` is then one word of its record.
final class RunWatch: Sendable {
    private let observers: [any RequestObserver]
    private let log: RunLog?
    let info: RunInfo

    init(_ observers: [any RequestObserver], _ log: RunLog?, _ info: RunInfo) {
        self.observers = observers
        self.log = log
        self.info = info
    }

    /// [caller's thread]
    func willStart() {
        log?.started(info)
        for observer in observers { observer.willStart(info) }
    }

    /// [caller's thread] It leaves as it stands here.
    func sends(_ built: borrowing BuiltRequest) {
        guard let log else { return }
        let (method, url) = (HTTPMethod(built.transfer.method), built.transfer.url)
        let headers = built.transfer.headers
        log.sends(info, method, to: url, Headers(headers))
    }

    /// An answer came, perhaps not the last.
    func received(_ result: TransferResult) {
        if result.status != 0 { log?.received(info, status: result.status, Headers(result)) }
    }

    /// [callback queue, or the caller's task] Right before the filters.
    func willStop(_ outcome: RunOutcome, _ metrics: RequestMetrics) {
        log?.ended(info, outcome, metrics)
        for observer in observers { observer.metrics(info, metrics) }
        for observer in observers { observer.willStop(info, outcome) }
    }

    /// [callback queue, or the caller's task] Last of all.
    func didStop(_ outcome: RunOutcome) {
        for observer in observers { observer.didStop(info, outcome) }
    }
}
