import FerryTransport

/// How long the processing of an answer took. Asks no clock for a run that nobody observes.
struct ProcessingTimes {
    let isMeasured: Bool
    private(set) var start: ContinuousClock.Instant?
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

    /// Likewise, of a run that went by the cache, from its start to the processing of its answer: no transfer knows how
    /// long a hit took, nor the look-up before a miss. Without an end it went by no cache.
    init(
        _ answer: Answer, _ times: ProcessingTimes, from start: ContinuousClock.Instant?,
        to end: ContinuousClock.Instant?
    ) {
        self.init(answer, times)
        guard let start, let end else { return }
        switch answer {
        case .result, .arrived: total = start.duration(to: end)
        case .refused, .unsent: break
        }
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
