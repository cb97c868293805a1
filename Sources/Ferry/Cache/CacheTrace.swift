/// What the cache had to do with an answer.
struct CacheTrace: Sendable {
    enum Outcome: Sendable {
        /// It is the cache's. How old it is, and whether it is past its time.
        case hit(age: Duration, isStale: Bool)
        case miss(CacheMiss)
    }

    let outcome: Outcome

    var age: Duration? { if case .hit(let age, _) = outcome { age } else { nil } }
    var isStale: Bool { if case .hit(_, true) = outcome { true } else { false } }
    var isHit: Bool { if case .hit = outcome { true } else { false } }
    var miss: CacheMiss? { if case .miss(let miss) = outcome { miss } else { nil } }

    var metric: RequestMetrics.CacheOutcome {
        switch outcome {
        case .hit(_, isStale: false): .hit
        case .hit(_, isStale: true): .stale
        case .miss: .miss
        }
    }
}

extension Response {
    /// How long ago it was kept, where it comes from the cache; `nil` elsewhere.
    public var age: Duration? { trail?.cache?.age }

    /// Whether it comes from the cache and is past its time, which the mode allowed.
    public var isStale: Bool { trail?.cache?.isStale ?? false }

    /// Why it does not come from the cache, although the run looked there; `nil` elsewhere.
    public var cacheMiss: CacheMiss? { trail?.cache?.miss }
}
