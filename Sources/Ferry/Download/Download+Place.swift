import FerryTransport
import Synchronization

extension Download {
    /// All bytes are here: looks whether they are the right ones, and puts the file in its place.
    func conclude(
        _ response: Response, _ journey: Journey, until deadline: ContinuousClock.Instant?
    ) async throws(RequestError) -> DownloadedFile {
        let (part, place, known) = state.withLock { ($0.part, $0.place, $0.metadata) }
        guard let part, let place else { preconditionFailure("a download ends before it began") }
        let options = plan.options
        let name = place.name ?? known.name ?? SafeFileName.name(contentDisposition: nil, url: plan.url)
        let (length, digest, taken) = try await onDisk(.processing) { end in
            self.place(
                part, as: name, replaces: place.name != nil, unless: { journey.end != nil || deadline.isOver },
                then: end)
        }
        guard let taken else {
            if journey.end != nil { throw journey.error(behind: response, countsAttempts: true) }
            if deadline.isOver {
                let failure = TransferFailure(.timeout, .timeoutDeadline)
                throw RequestError(failure, of: response.result, url: response.url, trail: response.trail)
            }
            if let expected = options.expectedLength, expected != length {
                throw mismatch(.length, "the file has \(length) bytes, and not \(expected)", response)
            }
            throw mismatch(.sha256, "the file's SHA-256 is \(digest ?? "unknown")", response)
        }
        let resumedFrom = state.withLock { $0.resumedFrom }
        var path = place.path(of: taken)
        if case .file(let given) = plan.target { path = given }
        return DownloadedFile(
            path: path, length: length, resumedFrom: resumedFrom, response: response)
    }

    /// The name is `nil` of one that is not in its place.
    private typealias End = (length: Int64, digest: String?, name: String?)

    /// Puts the part in its place if it is the right one. Where waiting for the disk does no harm.
    private func place(
        _ part: PartFile, as name: String, replaces: Bool, unless hasEnded: () -> Bool,
        then end: @escaping @Sendable (Result<End, FileFault>) -> Void
    ) {
        let options = plan.options
        do throws(FileFault) {
            let digest = options.sha256 == nil ? nil : try part.sha256(while: { !hasEnded() })
            let length = try part.length()
            let isRight =
                options.expectedLength ?? length == length
                && (options.sha256.map { expected in digest.map { equalNames(expected, $0) } ?? false } ?? true)
            guard isRight && !hasEnded() else { return end(.success((length, digest, nil))) }
            let taken = try part.place(as: name, replaces: replaces, hasMetadata: state.withLock { $0.isNoted })
            // It is the file now, also if the disk refuses its name.
            state.withLock { $0.part = nil }
            part.syncDirectory { fault in end(fault.map { .failure($0) } ?? .success((length, digest, taken))) }
        } catch {
            end(.failure(error))
        }
    }

    /// What came is not to be gone on with.
    private func mismatch(
        _ measure: RequestError.Code.FileMeasure, _ message: String, _ response: Response
    ) -> RequestError {
        state.withLock { ($0.isKept, $0.isOurs) = (false, true) }
        return RequestError(.contentMismatch(measure), message: message, response: response)
    }
}

extension ContinuousClock.Instant? {
    /// Whether it has passed; never, where there is none.
    fileprivate var isOver: Bool { map { $0 <= .now } ?? false }
}
