import FerryTransport

/// Where in a batch or chain something happened.
public struct GroupPlace: Sendable, Hashable, CustomStringConvertible {
    /// A batch or a chain.
    public let kind: RunInfo.Kind
    /// The member of a batch, in the order given, or the step of a chain, in the order they ran; from 0.
    public let index: Int
    /// A step's name: the one given to ``ChainRequest/then(_:_:)``, else the type of its request. `nil` of a batch.
    public let name: String?

    /// A place of its parts.
    public init(kind: RunInfo.Kind, index: Int, name: String? = nil) {
        self.kind = kind
        self.index = index
        self.name = name
    }

    /// Like `step 2 (Pay)` or `member 3`.
    public var description: String {
        kind == .chain ? "step \(index)" + (name.map { " (\($0))" } ?? "") : "member \(index)"
    }
}

extension RequestError {
    /// Where in a batch or chain it happened, outermost first; empty for a request by itself, and when a group was
    /// cancelled as a whole.
    public var groupPath: [GroupPlace] { facts.groupPath }

    /// The member of the batch, or the step of the chain, that failed; `nil` for a request by itself.
    public var failedIndex: Int? { groupPath.first?.index }

    /// The name of the step of the chain that failed; `nil` for a batch, or a request by itself.
    public var failedStep: String? { groupPath.first?.name }

    /// What the other members of a fail-fast batch had brought when one failed, by their index. Of batches inside one
    /// another the outermost's.
    public var finished: [Int: any Sendable] { facts.finished?() ?? [:] }

    /// The same, as what failed a group.
    func at(_ place: GroupPlace, finished: (@Sendable () -> [Int: any Sendable])? = nil) -> RequestError {
        var facts = facts
        facts.groupPath.insert(place, at: 0)
        if let finished { facts.finished = finished }
        return RequestError(facts)
    }
}

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
        if facts.groupPath.isEmpty { return self }
        var facts = facts
        (facts.groupPath, facts.finished) = ([], nil)
        return RequestError(facts)
    }

    private func along(_ other: RequestError) -> RequestError {
        var facts = facts
        facts.groupPath = other.groupPath
        facts.mayHaveBeenProcessed = other.mayHaveBeenProcessed
        return RequestError(facts)
    }
}
