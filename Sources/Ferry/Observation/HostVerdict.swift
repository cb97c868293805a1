/// What an error says of the host.
enum HostVerdict: Sendable, Equatable {
    /// It answered, if not as one would like.
    case answered
    /// It is not to be reached, or does not answer.
    case failed
    /// Nothing.
    case nothing

    init(_ error: RequestError) {
        if error.facts.isOfApplication {
            self = .nothing
            return
        }
        if error.phase == .processing, error.code != .cancelled, error.code != .shutdown {
            self = .answered
            return
        }
        switch error.code {
        // Files of our own, and waits in our own queue.
        case .tls(.configuration): self = .nothing
        case .timeout where error.phase == .preparing || error.phase == .queued: self = .nothing
        case .dns, .connect, .tls, .timeout, .connectionReset, .connectionClosed, .incompleteBody: self = .failed
        case .malformedResponse, .headersTooLarge, .responseTooLarge, .contentDecoding, .http2Stream,
            .tooManyRedirects, .redirectForbidden, .resumeMismatch:
            self = .answered
        default: self = .nothing
        }
    }
}
