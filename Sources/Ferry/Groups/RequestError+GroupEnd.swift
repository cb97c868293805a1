import FerryTransport

extension RequestError {
    /// What a group that was ended from outside ends with, or a member that was to begin in it.
    init(_ end: GroupRun.End, url: String = "") {
        let failure =
            switch end {
            case .cancelled: TransferFailure(.cancelled)
            case .shutdown: TransferFailure(.shutdown)
            case .deadline: TransferFailure(.timeout, .timeoutDeadline)
            }
        self.init(failure, url: url)
    }

    /// The failure of a group that was ended from outside: how it went remains true, why is the group's.
    func ended(by end: GroupRun.End) -> RequestError {
        switch end {
        case .cancelled: cancelled.ofWhole
        case .shutdown: code == .shutdown ? ofWhole : RequestError(.shutdown).along(self).ofWhole
        case .deadline: code == .timeout(.deadline) ? self : RequestError(.deadline).along(self)
        }
    }

    /// Not of one member: the group was ended as a whole.
    var ofWhole: RequestError {
        if facts.places.isEmpty { return self }
        var facts = facts
        (facts.places, facts.finished) = ([], nil)
        return RequestError(facts)
    }

    private func along(_ other: RequestError) -> RequestError {
        var facts = facts
        facts.places = other.places
        facts.mayHaveBeenProcessed = other.mayHaveBeenProcessed
        return RequestError(facts)
    }
}
