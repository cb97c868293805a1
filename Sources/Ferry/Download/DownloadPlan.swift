import FerrySynchronization
import FerryTransport
import Glibc

/// The settings of a download that are fixed before it starts, independent of the type of its request.
struct DownloadPlan: Sendable {
    /// The target: a directory, and the name in it if that is known.
    struct Place: Sendable {
        var directory: String
        var name: String?

        init(_ target: DownloadTarget) throws(FileFault) {
            switch target {
            case .directory(let path): (directory, name) = (path.isEmpty ? "." : path, nil)
            case .file(let path):
                // By bytes: a slash and a combining mark after it are one character.
                let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
                let last = slash.map { String(path[path.utf8.index(after: $0)...]) } ?? path
                if last.isEmpty || last == "." || last == ".." { throw FileFault(path, errno: EISDIR) }
                if path.utf8.contains(0) { throw FileFault(path, errno: EINVAL) }
                directory = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
                name = last
            }
        }

        func path(of name: String) -> String { directory.hasSuffix("/") ? directory + name : directory + "/" + name }
    }

    let target: DownloadTarget
    let options: DownloadOptions
    /// The URL of the request without a fragment, which identifies a partial file.
    let url: String
    /// Only GET supports ranges (RFC 9110, 14.2).
    let isGet: Bool
    /// The maximum size of the file in bytes; `nil` means no limit.
    let most: Int64?
    /// Whether the request's validation accepts status 200.
    private let acceptsOK: Bool
    private let check: Check

    init<R: Request>(
        _ request: R, to target: DownloadTarget, _ options: DownloadOptions, method: String? = nil, url: String,
        by builder: RequestBuilder
    ) {
        self.target = target
        self.options = options
        self.url = String(url.prefix { $0 != "#" })
        isGet = RunInfo.method(of: request, method) == .get
        most = request.maxBodyBytes.map { Int64(max($0, 0)) }
        acceptsOK = (request.statusValidation ?? builder.statusValidation).accepts(200)
        let own = request.statusValidation
        check = Check { head, length, isStatusRight throws(RequestError) in
            if !isStatusRight {
                try builder.checkStatus(head, of: request)
                try Self.checkIsFile(head, own)
            }
            try builder.checkType(head, bodyLength: length, of: request)
        }
    }

    /// The request's validation of a head, until the result is delivered: it keeps the request.
    private final class Check: Sendable {
        /// Throws if the request does not accept the content type, or the status unless that is known to be right.
        typealias Body =
            @Sendable (Response, _ bodyLength: Int64?, _ isStatusRight: Bool) throws(RequestError) -> Void

        private let body: Mutex<Body?>

        init(_ body: @escaping Body) { self.body = Mutex(body) }

        func run(_ head: Response, _ bodyLength: Int64?, _ isStatusRight: Bool) throws(RequestError) {
            guard let body = body.withLock({ $0 }) else { return }
            try body(head, bodyLength, isStatusRight)
        }

        /// The closure is not released under the lock: it may keep objects of the application.
        func forget() {
            let old = body.withLock { $0.take() }
            withExtendedLifetime(old) {}
        }
    }

    /// The result is delivered: nothing is validated any more.
    func forgetRequest() { check.forget() }

    /// The statuses whose body is the file (RFC 9110, 15.3; RFC 3229, 10.4.1). The body of 201 or 202 is about the
    /// request, and 204 and 205 have none.
    private static let statusesOfFiles: Set<Int> = [200, 203, 206, 226]

    private static func checkIsFile(_ head: Response, _ own: StatusValidation?) throws(RequestError) {
        if statusesOfFiles.contains(head.status) || own?.names(head.status) == true { return }
        throw RequestError(
            .invalidStatusCode(head.status),
            message: "a response with status \(head.status) is not a file; the request's statusValidation can name it",
            response: head)
    }

    /// Throws if the options are invalid.
    func checkOptions() throws(RequestError) {
        let isDigest = options.sha256.map(SHA256.isHexadecimal) ?? true
        guard isDigest, (options.expectedLength ?? 0) >= 0, (options.bytesPerSecond ?? 1) > 0, options.segments > 0,
            options.minimumSegmentSize > 0
        else {
            throw RequestError(
                preparing: .invalidRequest, message: "the download options are invalid", url: url)
        }
    }

    /// The file of an earlier run that this one may not need to load; `nil` unless that option is set.
    func completed(
        _ name: String, in directory: OpenDirectory, isNumbered: Bool, unless hasEnded: () -> Bool = { false },
        where isWanted: (CompletedFile) -> Bool
    ) -> CompletedFile? {
        guard options.skipsUnchanged, isGet else { return nil }
        return CompletedFile.find(name, in: directory, url: url, isNumbered: isNumbered) { file, descriptor in
            guard isWanted(file), options.expectedLength ?? file.length == file.length, file.length <= most ?? .max
            else { return false }
            guard let sha256 = options.sha256 else { return true }
            let digest = try? PartFile.sha256(descriptor, file.name) { !hasEnded() }
            return digest.map { equalNames($0, sha256) } ?? false
        }
    }

    /// Why the status or the type of a response is not that of a file; `nil` if it is. A request that accepts 200 also
    /// accepts the 206 that replaces it.
    func refusal(of head: Response, bodyLength: Int64?, to question: DownloadMachine.Question) -> RequestError? {
        do throws(RequestError) {
            try check.run(head, bodyLength, head.status == 206 && question.isRanged && acceptsOK)
            return nil
        } catch {
            return error
        }
    }
}

/// Decides what a response means for a download: takes the request and the response, and returns what to do. It does no
/// networking and uses no disk.
enum DownloadMachine {
    /// What was requested.
    struct Question: Sendable, Equatable {
        /// The number of bytes that exist; 0 without a partial file.
        var offset: Int64 = 0
        /// The end of the requested range, exclusive; `nil` for the rest of the file.
        var end: Int64?
        /// Whether it requests the first piece of an unknown file: the response tells its size, and whether the server
        /// supports ranges.
        var isFirst = false
        /// The validator that was sent as `If-Range`.
        var validator: ResumeValidator?
        /// The size of the file when it was started; `nil` if it was unknown.
        var total: Int64?
        /// The validator of a complete local file, which was sent as `If-None-Match` or `If-Modified-Since`.
        var complete: ResumeValidator?

        /// Whether a `Range` was sent.
        var isRanged: Bool { offset > 0 || end != nil }

        /// The value of the `Range` field.
        var range: String? {
            if !isRanged { return nil }
            return "bytes=\(offset)-" + (end.map { String($0 - 1) } ?? "")
        }
    }

    enum Action: Sendable, Equatable {
        /// Write the body to the file from this offset. `length` is the required number of bytes.
        case take(from: Int64, length: Int64?, total: Int64?)
        /// The file is complete.
        case complete
        /// The complete local file is still that of the server.
        case unchanged
        /// It is not what was requested: request the whole file.
        case restart(Mismatch)
        /// Requesting the whole file would not help either.
        case fail(Mismatch)
        /// It is not a part of a file; the policies of the run decide.
        case other
    }

    /// Why a part cannot be used.
    enum Mismatch: String, Sendable {
        case unreadable = "the response has no valid Content-Range"
        case otherRange = "the response has a different range than requested"
        case otherTotal = "the size of the file has changed"
        case otherVersion = "the file has changed"
        case unknownVersion = "the response does not say to which version of the file it belongs"
        case encoded = "the response is a part of an encoded file"
        case contradiction = "the Content-Range does not match the length of the body"
        case unsatisfiable = "the server does not have the requested range"
        case ignoredRange = "the server sent the whole file instead of a range"
    }

    /// `isAccepted` is whether the request's validation accepts status and content type.
    static func answered(
        status: Int, _ headers: Headers, contentLength: Int64?, to question: Question, isAccepted: Bool
    ) -> Action {
        if status == 304, let complete = question.complete {
            return complete.isContradicted(by: headers) ? .restart(.otherVersion) : .unchanged
        }
        if status == 416 && question.isRanged { return unsatisfiable(headers, question) }
        guard isAccepted, !(300..<400).contains(status) else { return .other }
        if status == 206 { return part(headers, contentLength, question) }
        if question.end != nil && !question.isFirst { return .restart(.ignoredRange) }
        // A body that is decoded does not have the size of the file.
        let length = headers.isBodyEncoded ? nil : contentLength
        return .take(from: 0, length: length, total: length)
    }

    /// There is nothing after the last byte: the file is complete if it is still the same. Most servers send no
    /// validator with an error. Without one the file is at worst an older version, but never a mixture.
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
        // The first piece is requested without knowing whether the file is that long.
        let end = question.isFirst ? question.end.map { min($0, total) } : question.end
        guard bytes.lowerBound == question.offset, bytes.upperBound + 1 == end ?? total else {
            return mismatch(.otherRange)
        }
        if headers.isBodyEncoded { return mismatch(.encoded) }
        let length = Int64(bytes.count)
        // A response that contradicts itself is not worth another attempt.
        if let contentLength, contentLength != length { return .fail(.contradiction) }
        // A server may have ignored `If-Range`. Only parts with the same strong validator are of one version (RFC 9110,
        // 15.3.7.3), and a 206 has the `ETag` that a 200 would have, but not its `Last-Modified` (15.3.7).
        if question.validator?.isConfirmed(by: headers) == false { return mismatch(.unknownVersion) }
        return .take(from: question.offset, length: length, total: total)
    }

    private static func range(_ headers: Headers) -> ContentRange? {
        let values = headers.values(of: "Content-Range")
        return values.count == 1 ? ContentRange(values[0]) : nil
    }
}

extension Headers {
    /// Whether the body is encoded, according to the server.
    var isBodyEncoded: Bool { values(of: "Content-Encoding").contains { !equalNames($0, "identity") } }
}

/// A `Content-Range` of bytes (RFC 9110, 14.4).
struct ContentRange: Sendable, Equatable {
    /// The range of the body, inclusive; `nil` if there is none, as with 416.
    let bytes: ClosedRange<Int64>?
    /// The size of the whole file; `nil` if the server does not say.
    let total: Int64?

    /// Parses `bytes 5-9/10`, `bytes 5-9/*` and `bytes */10`. `nil` for anything else, and if it contradicts itself.
    init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, equalNames(String(words[0]), "bytes") else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        total = Self.number(parts[1])
        guard total != nil || parts[1] == "*" else { return nil }
        if parts[0] == "*" {
            guard total != nil else { return nil }
            bytes = nil
            return
        }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
            total.map({ last < $0 }) ?? true
        else { return nil }
        bytes = first...last
    }

    private static func number(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else {
            return nil
        }
        return Int64(text)
    }
}

/// Identifies the version of a file of which a part exists. Only a strong validator is used, because a weak one allows
/// bytes to differ (RFC 9110, 13.1.5).
enum ResumeValidator: Sendable, Hashable {
    case entityTag(String)
    case lastModified(String)

    /// The validator in a response. A date is used only if there is no tag, and if the file was at least a minute old
    /// at the time of the response, because two changes within a second have the same date (RFC 9110, 8.8.2.2).
    init?(_ headers: Headers) {
        let tags = headers.values(of: "ETag")
        if !tags.isEmpty {
            guard tags.count == 1, Self.isStrong(tags[0]) else { return nil }
            self = .entityTag(tags[0])
            return
        }
        let now = HTTPDate(secondsSince1970: 0)
        guard let text = headers["Last-Modified"], let modified = HTTPDate(text, now: now),
            let answered = headers["Date"].flatMap({ HTTPDate($0, now: now) }),
            answered.secondsSince1970 - modified.secondsSince1970 >= 60
        else { return nil }
        self = .lastModified(text)
    }

    /// The value of `If-Range`.
    var field: String {
        switch self {
        case .entityTag(let text), .lastModified(let text): text
        }
    }

    /// The field with which to ask whether the server still has this version (RFC 9110, 13.1.2 and 13.1.3).
    var condition: (name: String, value: String) {
        switch self {
        case .entityTag(let tag): ("If-None-Match", tag)
        case .lastModified(let date): ("If-Modified-Since", date)
        }
    }

    /// Whether a response can have contained it; a file on disk may contain anything.
    var isSound: Bool {
        switch self {
        case .entityTag(let tag): Self.isStrong(tag)
        case .lastModified(let date):
            date.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
                && HTTPDate(date, now: HTTPDate(secondsSince1970: 0)) != nil
        }
    }

    /// Whether a response has a different validator. A response without one does not contradict.
    func isContradicted(by headers: Headers) -> Bool {
        switch self {
        case .entityTag(let tag): headers.values(of: "ETag").contains { $0 != tag }
        case .lastModified(let date): headers.values(of: "Last-Modified").contains { $0 != date }
        }
    }

    /// Whether a 206 has the validator that it must have, and no other.
    func isConfirmed(by headers: Headers) -> Bool {
        switch self {
        case .entityTag(let tag): headers.values(of: "ETag") == [tag]
        case .lastModified: !isContradicted(by: headers)
        }
    }

    private static func isStrong(_ tag: String) -> Bool {
        let bytes = Array(tag.utf8)
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"") else {
            return false
        }
        return bytes.dropFirst().dropLast().allSatisfy { $0 == 0x21 || ($0 >= 0x23 && $0 != 0x7F) }
    }
}
