/// Decides what an answer means for a download: what was asked and what came in, what to do out. Knows neither network
/// nor disk.
enum DownloadMachine {
    /// What was asked for.
    struct Question: Sendable, Equatable {
        /// Bytes that are here; 0 without a part.
        var offset: Int64 = 0
        /// Where the piece ends that was asked for, that byte left out; `nil` for the rest of the file.
        var end: Int64?
        /// Whether it is for the first piece of a file of which nothing is known: the answer says how long it is, and
        /// whether the server serves pieces at all.
        var isFirst = false
        /// What went along as `If-Range`.
        var validator: ResumeValidator?
        /// What the file's length was when it began; `nil` when that was not known.
        var total: Int64?

        /// Whether a `Range` was sent.
        var isRanged: Bool { offset > 0 || end != nil }

        /// The value of the `Range` field.
        var range: String? {
            if !isRanged { return nil }
            return "bytes=\(offset)-" + (end.map { String($0 - 1) } ?? "")
        }
    }

    enum Action: Sendable, Equatable {
        /// Its body belongs in the file from this offset on. `length` is how much of it there must be.
        case take(from: Int64, length: Int64?, total: Int64?)
        /// All of it is here.
        case complete
        /// It is not what was asked for: ask for the whole file.
        case restart(Mismatch)
        /// Nor would that help.
        case fail(Mismatch)
        /// It is no part of a file; the run's policies have the say.
        case other
    }

    /// Why a part cannot be used.
    enum Mismatch: String, Sendable {
        case unreadable = "the answer does not say which bytes came"
        case otherRange = "other bytes came than were asked for"
        case otherTotal = "the file's length is another one now"
        case otherVersion = "the file is another one now"
        case encoded = "a part of an encoded file came"
        case contradiction = "the range of the answer is not the length of its body"
        case unsatisfiable = "the server has no such bytes"
        case ignoredRange = "the server sent the whole file for a piece of it"
    }

    /// `isAccepted` is what the request's validation says of the status and the content type.
    static func answered(
        status: Int, _ headers: Headers, contentLength: Int64?, to question: Question, isAccepted: Bool
    ) -> Action {
        if status == 416 && question.isRanged { return unsatisfiable(headers, question) }
        guard isAccepted, !(300..<400).contains(status) else { return .other }
        if status == 206 { return part(headers, contentLength, question) }
        if question.end != nil && !question.isFirst { return .restart(.ignoredRange) }
        // Decoded on its way, so that its length is not the file's.
        let length = headers.isBodyEncoded ? nil : contentLength
        return .take(from: 0, length: length, total: length)
    }

    /// There is nothing behind the last byte: then the file is whole, if it is still the same.
    private static func unsatisfiable(_ headers: Headers, _ question: Question) -> Action {
        guard question.end == nil, let range = range(headers), range.bytes == nil, let total = range.total,
            total == question.offset, total == question.total ?? total,
            question.validator?.isContradicted(by: headers) != true
        else { return .restart(.unsatisfiable) }
        return .complete
    }

    private static func part(_ headers: Headers, _ contentLength: Int64?, _ question: Question) -> Action {
        func mismatch(_ why: Mismatch) -> Action { question.isRanged ? .restart(why) : .fail(why) }
        guard let range = range(headers), let bytes = range.bytes else { return mismatch(.unreadable) }
        if question.validator?.isContradicted(by: headers) == true { return mismatch(.otherVersion) }
        if let known = question.total, let total = range.total, known != total { return mismatch(.otherTotal) }
        guard let total = range.total ?? question.total else { return mismatch(.unreadable) }
        // The first piece is asked for without knowing that there is so much.
        let end = question.isFirst ? question.end.map { min($0, total) } : question.end
        guard bytes.lowerBound == question.offset, bytes.upperBound + 1 == end ?? total else {
            return mismatch(.otherRange)
        }
        if headers.isBodyEncoded { return mismatch(.encoded) }
        let length = Int64(bytes.count)
        // Who contradicts himself is not to be believed the next time either.
        if let contentLength, contentLength != length { return .fail(.contradiction) }
        return .take(from: question.offset, length: length, total: total)
    }

    private static func range(_ headers: Headers) -> ContentRange? {
        let values = headers.values(of: "Content-Range")
        return values.count == 1 ? ContentRange(values[0]) : nil
    }
}

extension Headers {
    /// Whether the body is encoded, by what the server says of it.
    var isBodyEncoded: Bool { values(of: "Content-Encoding").contains { !equalNames($0, "identity") } }
}
