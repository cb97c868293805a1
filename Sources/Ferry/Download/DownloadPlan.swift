import FerryTransport
import Glibc

/// What of a download is settled before it begins, whatever the type of its request.
struct DownloadPlan: Sendable {
    /// Where it goes, taken apart: a directory, and a name in it if that is known.
    struct Place: Sendable {
        var directory: String
        var name: String?

        init(_ target: DownloadTarget) throws(FileFault) {
            switch target {
            case .directory(let path): (directory, name) = (path.isEmpty ? "." : path, nil)
            case .file(let path):
                let slash = path.lastIndex(of: "/")
                let last = slash.map { String(path[path.index(after: $0)...]) } ?? path
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
    /// Of the request, without a fragment: what a part belongs to.
    let url: String
    /// Only what is got can be got in parts (RFC 9110, 14.2).
    let isGet: Bool
    /// Bytes of the file; `nil` = no bound.
    let most: Int64?
    /// Whether the request's validation accepts a file as a whole.
    private let acceptsOK: Bool
    /// Throws where the request's validation does not accept the content type, or, unless that is known to be right,
    /// the status.
    private let check: @Sendable (Response, _ bodyLength: Int64?, _ isStatusRight: Bool) throws(RequestError) -> Void

    init<R: Request>(
        _ request: R, to target: DownloadTarget, _ options: DownloadOptions, url: String, by builder: RequestBuilder
    ) {
        self.target = target
        self.options = options
        self.url = String(url.prefix { $0 != "#" })
        isGet = (request.custom?.method ?? request.method) == .get
        most = request.maxBodyBytes.map { Int64(max($0, 0)) }
        acceptsOK = (request.statusValidation ?? builder.statusValidation).accepts(200)
        let own = request.statusValidation
        check = { head, length, isStatusRight throws(RequestError) in
            if !isStatusRight {
                try builder.checkStatus(head, of: request)
                try Self.checkIsFile(head, own)
            }
            try builder.checkType(head, bodyLength: length, of: request)
        }
    }

    /// The statuses whose body is the file (RFC 9110, 15.3; RFC 3229, 10.4.1). That of 201 or 202 is about the request,
    /// and 204 and 205 have none.
    private static let statusesOfFiles: Set<Int> = [200, 203, 206, 226]

    private static func checkIsFile(_ head: Response, _ own: StatusValidation?) throws(RequestError) {
        if statusesOfFiles.contains(head.status) || own?.names(head.status) == true { return }
        throw RequestError(
            .invalidStatusCode(head.status),
            message: "the status \(head.status) does not come with a file; the request's statusValidation can name it",
            response: head)
    }

    /// Throws for options that make no sense.
    func checkOptions() throws(RequestError) {
        let isDigest = options.sha256.map(SHA256.isHexadecimal) ?? true
        guard isDigest, (options.expectedLength ?? 0) >= 0, (options.bytesPerSecond ?? 1) > 0, options.segments > 0,
            options.leastSegment > 0
        else {
            throw RequestError(
                preparing: .invalidRequest, message: "the options of the download make no sense", url: url)
        }
    }

    /// Why the status or the type of an answer is not a file's; `nil` when they are. Who accepts 200 need not know of
    /// the 206 that comes in its place.
    func refusal(of head: Response, bodyLength: Int64?, to question: DownloadMachine.Question) -> RequestError? {
        do throws(RequestError) {
            try check(head, bodyLength, head.status == 206 && question.isRanged && acceptsOK)
            return nil
        } catch {
            return error
        }
    }
}
