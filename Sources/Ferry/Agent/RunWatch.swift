import FerryTransport

/// The observers of one run, and what they are told. There is none for a run that nobody observes.
struct RunWatch: Sendable {
    private let observers: [any RequestObserver]
    let info: RunInfo

    init(_ observers: [any RequestObserver], _ info: RunInfo) {
        self.observers = observers
        self.info = info
    }

    /// [caller's thread]
    func willStart() {
        for observer in observers { observer.willStart(info) }
    }

    /// [callback queue, or the caller's task] Right before the filters.
    func willStop(_ outcome: RunOutcome, _ metrics: RequestMetrics) {
        for observer in observers { observer.metrics(info, metrics) }
        for observer in observers { observer.willStop(info, outcome) }
    }

    /// [callback queue, or the caller's task] Last of all.
    func didStop(_ outcome: RunOutcome) {
        for observer in observers { observer.didStop(info, outcome) }
    }
}
