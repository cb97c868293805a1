import FerryTransport

/// How long the processing of an answer took. Asks no clock for a run that nobody observes.
struct ProcessingTimes {
    let isMeasured: Bool
    private var start: ContinuousClock.Instant?
    private var decodingStart: ContinuousClock.Instant?
    private(set) var processing: Duration?
    private(set) var decoding: Duration?

    init(isMeasured: Bool) { self.isMeasured = isMeasured }

    mutating func begin() { if isMeasured { start = .now } }

    mutating func beginDecoding() { if isMeasured { decodingStart = .now } }

    mutating func end() {
        guard let start else { return }
        let now = ContinuousClock.now
        processing = start.duration(to: now)
        decoding = decodingStart.map { $0.duration(to: now) }
    }
}

extension RequestMetrics {
    /// What was measured of a run that ended with this answer.
    init(_ answer: Answer, _ times: ProcessingTimes) {
        switch answer {
        case .result(let result): self.init(result)
        case .arrived(let result, let trail): self.init(result, trail)
        case .refused(let error): self = error.facts.measured ?? RequestMetrics()
        case .unsent: self.init()
        }
        processing = times.processing
        decoding = times.decoding
    }

    /// The times of the last attempt, and the counts of all the way there.
    init(_ result: TransferResult, _ trail: Trail?) {
        self.init(result)
        guard let trail else { return }
        cache = trail.cache?.metric
        if trail.cache?.isHit == true {
            // What was measured of the run that brought it is not this run's.
            self = RequestMetrics()
            cache = trail.cache?.metric
        }
        attempts = trail.earlier.withoutRedirects(trail.attempts(result))
        redirects = trail.redirects.count
        total = trail.elapsed ?? total
        if trail.isIntercepted { (bytesReceived, httpVersion) = (0, nil) }
        bytesSent += trail.earlier.bytesSent
        bytesReceived += trail.earlier.bytesReceived
    }
}
