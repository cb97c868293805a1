package import FerryTransport

/// Which of the waiting runs go first. A steady stream of high ones never starves the low ones.
public enum RequestPriority: Int, Sendable, Hashable, Comparable, CaseIterable {
    /// After the others.
    case low = -4
    /// The default.
    case normal = 0
    /// Before the others.
    case high = 4

    /// By urgency.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool { left.rawValue < right.rawValue }

    package var ring: PriorityRing {
        switch self {
        case .low: .low
        case .normal: .normal
        case .high: .high
        }
    }
}
