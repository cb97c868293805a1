internal import Ferry

/// Where a plan's answers are kept.
struct PlanCache: Sendable {
    var directory: PlanTemplate
    var applicationVersion: PlanTemplate?

    /// All that is to be filled in.
    var places: [PlanPlace] { directory.places + (applicationVersion?.places ?? []) }
}

/// What a request of a plan says of the cache.
struct PlanCachePolicy: Sendable {
    /// How long, and who says so.
    enum Lifetime: Sendable {
        case seconds(Duration)
        /// As the server says, by RFC 9111.
        case http(isShared: Bool)
    }

    var lifetime: Lifetime
    var version = 0
    /// Whose the answer is, filled in for each run.
    var sensitiveData: PlanTemplate?
    var writing = CachePolicy.Writing.asynchronous
    var mode = CacheMode.cacheElseNetwork
    /// Header fields that tell entries apart.
    var headers: [String] = []
}

extension CacheMode {
    /// By the word of the command line and of plans; `nil` for any other.
    init?(word: String) {
        switch word {
        case "else-network": self = .cacheElseNetwork
        case "reload": self = .reload
        case "only": self = .cacheOnly
        default: return nil
        }
    }
}
