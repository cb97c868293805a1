import FerryTransport
import Synchronization

extension Download {
    /// Up to here a file comes in one piece, nearly always: its metadata would be written for nothing.
    private static let small: Int64 = 256 * 1024

    /// Bytes a second for one of those who load at once; 0 = no bound.
    func rate(for question: DownloadMachine.Question) -> UInt64 {
        guard let rate = plan.options.bytesPerSecond else { return 0 }
        let isInSegments = question.isFirst || state.withLock { $0.metadata.segments != nil }
        return UInt64(max(rate / (isInSegments ? plan.options.segments : 1), 1))
    }

    /// What is missing, and by what it is known that it still belongs to what is there.
    func question(segment index: Int?) -> DownloadMachine.Question {
        state.withLock { state in
            var question = DownloadMachine.Question(validator: state.metadata.validator, total: state.metadata.total)
            if let index, let segment = state.metadata.segments?[index] {
                question.offset = segment.start + segment.written
                question.end = segment.end
            } else if question.validator != nil && plan.isGet {
                question.offset = state.received
            }
            // A server that has sent something else before does not serve pieces.
            if plan.options.segments > 1, plan.isGet, !question.isRanged, !state.hasRestarted {
                question = DownloadMachine.Question(end: plan.options.leastSegment, isFirst: true)
            }
            return question
        }
    }

    /// So many bytes more are in the part.
    func count(_ more: Int64, segment: Int?) {
        state.withLock { state in
            // The first one was asked for before there were any.
            if let segment = segment ?? (state.metadata.segments == nil ? nil : 0) {
                state.metadata.segments?[segment].written += more
            } else {
                state.received += more
            }
        }
        meter.add(more)
    }

    /// What was loaded is of no use. False when that has happened before.
    func restart() -> Bool {
        state.withLock { state in
            // Bytes of the old version may still come into the part.
            if state.hasRestarted || state.isStuck { return false }
            state.hasRestarted = true
            state.metadata = state.metadata.anew
            (state.received, state.resumedFrom) = (0, 0)
            return true
        }
    }

    /// All of the file is there.
    func isWhole(_ length: Int64) {
        let (isNews, resumedFrom) = state.withLock { state in
            state.isComplete = true
            return (state.received != length, state.resumedFrom)
        }
        if isNews { meter.begin(at: length, resumedFrom: resumedFrom, total: length, isResumable: true) }
    }

    /// Throws when a file of this length is not wanted.
    func checkLength(_ total: Int64?, _ head: Response) throws(RequestError) {
        guard let total else { return }
        if let expected = plan.options.expectedLength, expected != total {
            throw RequestError(
                .contentMismatch(.length), phase: .body, message: "the file has \(total) bytes, and not \(expected)",
                response: head)
        }
        if let most = plan.most, most < total {
            throw RequestError(
                .responseTooLarge, phase: .body, message: "the file has \(total) bytes, and \(most) are the most",
                response: head)
        }
    }

    /// What an answer with the beginning of a file is good for.
    enum Beginning {
        case whole
        /// It is the first segment.
        case segments
        /// It is a piece to which no other can be added.
        case nothing
    }

    /// The file begins with this answer: the part is emptied, and what is to be known of it is written down.
    func begin(_ head: Response, length: Int64?, total: Int64?) async throws(RequestError) -> Beginning {
        let part = self.part
        let (place, isFresh, known) = state.withLock { ($0.place, $0.isFresh, $0.metadata) }
        var fresh = known.anew
        fresh.total = total
        if plan.isGet && head.canBeResumed { fresh.validator = ResumeValidator(head.headers) }
        if place?.name == nil {
            fresh.name = SafeFileName.name(contentDisposition: head.headers["Content-Disposition"], url: plan.url)
        }
        if let total, let length, length < total {
            if fresh.validator == nil { return .nothing }
            fresh.segments = segments(of: total, first: length)
        }
        let metadata = fresh
        let isNoted =
            metadata.validator != nil && (metadata.segments != nil || total.map { $0 > Self.small } ?? true)
        // Of most files that are small there is nothing to do.
        if !isFresh || isNoted {
            try await onDisk(.body) { () throws(FileFault) in
                if !isFresh {
                    // In this order: whoever finds the part after a kill must not take it for what the old metadata
                    // speak of, least of all when it has its full length again, and nothing in it.
                    try part.removeMetadata()
                    self.state.withLock { ($0.isKept, $0.isOurs) = (false, true) }
                    try part.setLength(0, isDurable: true)
                }
                if metadata.segments != nil { try part.setLength(total ?? 0) }
                if isNoted { try part.write(metadata) }
            }
        }
        state.withLock { state in
            state.metadata = metadata
            (state.helpers, state.helperJourneys, state.helperFault) = (nil, [], nil)
            state.isKept = metadata.validator != nil
            (state.isNoted, state.isFresh) = (isNoted, false)
            (state.received, state.resumedFrom) = (0, 0)
            state.claimed = metadata.segments == nil ? [] : [0]
        }
        return metadata.segments == nil ? .whole : .segments
    }

    /// Takes back what has come last.
    func takeBack(to offset: Int64, by count: Int64, segment: Int?) async throws(RequestError) {
        let part = part
        self.count(-count, segment: segment)
        if segment != nil { return }
        try await onDisk(.body) { () throws(FileFault) in try part.setLength(offset) }
    }
}

extension Response {
    /// Whether parts of it can be asked for later, as far as the server says.
    fileprivate var canBeResumed: Bool {
        !headers.isBodyEncoded && !headers.values(of: "Accept-Ranges").contains { equalNames($0, "none") }
    }
}
