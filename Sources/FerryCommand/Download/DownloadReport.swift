internal import Ferry
internal import FerryMeasurement
internal import Glibc

/// The result of one download.
struct DownloadReport: Sendable {
    let url: String
    /// `nil` if the file is not complete.
    let path: String?
    let status: Int?
    /// The number of bytes on disk, also of a partial file.
    let bytes: Int64
    let total: Int64?
    let resumedFrom: Int64
    /// Whether the complete file was already there and is unchanged on the server.
    let isUnchanged: Bool
    /// Whether the same command can resume from the partial file.
    let isResumable: Bool
    let sha256: String?
    let attempts: Int
    let nanoseconds: UInt64
    let fault: FetchVerdict.Fault?
    let exitCode: ExitCode
    /// Its line on the board.
    let row: Int?

    /// Downloads the file.
    init(of request: HTTPRequest<Response>, _ order: DownloadOrder, by agent: NetworkAgent, on board: DownloadBoard?)
        async
    {
        let start = monotonicNanoseconds()
        let name = FileName.of(request.path, order.target)
        let row = board?.enter(name)
        let latest = LatestProgress()
        do throws(RequestError) {
            let file = try await agent.download(request, to: order.target, options: order.options) { progress in
                latest.set(progress)
                if let board, let row { board.update(row, progress) }
            }
            url = file.response.url
            path = file.path
            status = file.status
            (bytes, total, resumedFrom) = (file.length, file.length, file.resumedFrom)
            (isResumable, isUnchanged) = (false, file.isUnchanged)
            sha256 = order.options.sha256
            attempts = file.attempts
            (fault, exitCode) = (nil, .success)
        } catch {
            url = error.url
            path = nil
            status = error.response?.status
            let progress = latest.value
            (bytes, total) = (progress?.received ?? 0, progress?.total)
            resumedFrom = progress?.resumedFrom ?? 0
            isUnchanged = false
            isResumable = (progress?.isResumable ?? false) && !(.contentMismatch ~= error.code)
            sha256 = nil
            attempts = error.attempts
            var fault = FetchVerdict.Fault(error, of: request)
            if error.code == .fileIO {
                fault.line = "cannot write \(Self.reason(error, name))"
            }
            self.fault = fault
            exitCode =
                switch error.code {
                case .cancelled: .interrupted
                case _ where error.isWrongUsage: .usage
                case .invalidStatusCode: .statusNotAccepted
                case .contentMismatch, .invalidContentType: .validationFailed
                default: .transferFailed
                }
        }
        self.row = row
        nanoseconds = monotonicNanoseconds() - start
    }

    /// The report of a download that was cancelled before it began.
    init(unstarted request: HTTPRequest<Response>) {
        url = LogEntry(.info, "", url: request.path).url ?? ""
        (path, status, total, sha256, row) = (nil, nil, nil, nil, nil)
        (bytes, resumedFrom, attempts, nanoseconds) = (0, 0, 0, 0)
        (isUnchanged, isResumable) = (false, false)
        let error = RequestError(.cancelled, phase: .preparing, message: "the run was cancelled")
        fault = FetchVerdict.Fault(error, of: request)
        exitCode = .interrupted
    }

    /// The file and why it could not be written. Errors of a write do not name the file.
    private static func reason(_ error: RequestError, _ name: String) -> String {
        if error.errno == EBUSY, error.message.hasSuffix("another download writes to it") {
            return "\(name): another download writes the same file"
        }
        if error.message.hasPrefix("/") || error.errno == 0 { return error.message }
        return "\(name): \(String(cString: strerror(Int32(error.errno))))"
    }

    /// The name of the written file, which the server may choose, and which may have a number; without a file the
    /// expected name.
    func name(instead expected: String) -> String {
        path?.split(separator: "/").last.map { Main.oneLine(String($0)) } ?? expected
    }

    /// The error, and how much was downloaded; `nil` on success.
    var faultLine: String? {
        guard let fault else { return nil }
        if exitCode != .interrupted { return fault.line.contains(url) ? fault.line : "\(url): \(fault.line)" }
        guard isResumable else { return "\(url): interrupted" }
        let part = total.map { "\(bytesText(bytes)) of \(bytesText($0))" } ?? bytesText(bytes)
        return "\(url): interrupted; \(part) kept, the same command goes on"
    }

    /// One line, with fields in alphabetical order.
    var json: String { jsonLine(self) }
}

extension DownloadReport: Encodable {
    private enum Key: String, CodingKey {
        case ok, status, url, path, bytes, total, resumedFrom, unchanged, sha256, attempts, microseconds, error
    }

    /// Every field is always present; a missing value is `null`.
    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(exitCode == .success, forKey: .ok)
        try object.encode(status, forKey: .status)
        try object.encode(url, forKey: .url)
        try object.encode(path, forKey: .path)
        try object.encode(bytes, forKey: .bytes)
        try object.encode(total, forKey: .total)
        try object.encode(resumedFrom, forKey: .resumedFrom)
        try object.encode(isUnchanged, forKey: .unchanged)
        try object.encode(sha256, forKey: .sha256)
        try object.encode(attempts, forKey: .attempts)
        try object.encode(nanoseconds / 1000, forKey: .microseconds)
        try object.encode(fault, forKey: .error)
    }
}
