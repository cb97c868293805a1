import FerryJSON
import FerryTransport

extension RequestBuilder {
    /// The stages after the transfer: status, content type, format, schema, value. The first that fails determines the
    /// error.
    @inline(__always)
    func validated<R: Request>(
        _ request: R, _ answer: Answer, url: String, _ times: inout ProcessingTimes
    ) throws(RequestError) -> Reply<R.Value> {
        let response = try response(of: answer, url: url)
        try check(response, by: request.statusValidation)
        if response.bodyLength > 0 { try check(response, contentTypes: request.acceptedContentTypes) }
        try request.responseFormat.validate(response)
        let schema = request.jsonSchema
        // The parsed document is kept for the value.
        defer { if schema != nil { response.forgetJSON() } }
        if let schema { try response.check(by: schema) }
        times.beginDecoding()
        do {
            return Reply(value: try request.value(from: response), response: response)
        } catch {
            throw Self.fault(error, response)
        }
    }

    func response(of answer: Answer, url: String) throws(RequestError) -> Response {
        switch answer {
        case .refused(let error): throw error
        case .result(let result): try self.response(of: result, url: url, origin: nil)
        case .arrived(let result, let origin): try self.response(of: result, url: origin.url, origin: origin)
        case .unsent: preconditionFailure("a run that was not sent has no reply")
        }
    }

    private func response(of result: TransferResult, url: String, origin: ResponseOrigin?) throws(RequestError)
        -> Response
    {
        if result.succeeded { return Response(result, url: url, origin: origin) }
        guard let failure = result.failure else { preconditionFailure("a fault without a code") }
        throw RequestError(failure, of: result, url: url, origin: origin)
    }

    /// Checks what is known before the body has arrived. `length` is that of the body, `nil` if unknown.
    func checkHead<R: Request>(_ head: Response, bodyLength length: Int64?, of request: R) throws(RequestError) {
        try checkStatus(head, of: request)
        try checkType(head, bodyLength: length, of: request)
    }

    func checkStatus<R: Request>(_ head: Response, of request: R) throws(RequestError) {
        try check(head, by: request.statusValidation)
    }

    func checkType<R: Request>(_ head: Response, bodyLength length: Int64?, of request: R) throws(RequestError) {
        if length != 0 { try check(head, contentTypes: request.acceptedContentTypes) }
    }

    private func check(_ response: Response, contentTypes: [String]?) throws(RequestError) {
        guard let contentTypes else { return }
        let type = response.headers["Content-Type"].flatMap(MediaType.init)
        if let type, contentTypes.contains(where: { type.matches($0) }) { return }
        throw RequestError(
            .invalidContentType, message: "the content type \(type?.description ?? "(none)") is not accepted",
            response: response)
    }

    private func check(_ response: Response, by own: StatusValidation?) throws(RequestError) {
        let status = response.status
        guard (own ?? statusValidation).accepts(status) else {
            throw RequestError(
                .invalidStatusCode(status), message: "the status \(status) was not accepted", response: response)
        }
    }

    private static func fault(_ error: any Error, _ response: Response) -> RequestError {
        switch error {
        case let error as RequestError: error
        case let error as DecodingError: RequestError(error, of: response)
        case let error as JSONMismatch: RequestError(.decoding, error, of: response)
        case let error as JSONSyntaxError: RequestError(error, of: response)
        case is CancellationError:
            RequestError(.cancelled, message: "the run was cancelled", cause: error, response: response)
        default:
            RequestError(
                .applicationError, message: "value(from:) threw \(type(of: error))", cause: error, response: response)
        }
    }
}

extension RequestError {
    /// `result` is the transfer so far, if there is one.
    static func cancelled(_ result: TransferResult?, url: String, origin: ResponseOrigin? = nil) -> RequestError {
        let failure = TransferFailure(.cancelled)
        guard let result else { return RequestError(failure, url: url) }
        return RequestError(failure, of: result, url: origin?.url ?? url, origin: origin)
    }
}

/// The status codes that count as success.
public struct StatusValidation: Sendable {
    private enum Rule: Sendable {
        case range(ClosedRange<Int>)
        case codes(Set<Int>)
        case closure(@Sendable (Int) -> Bool)
    }

    private let rule: Rule

    /// 200 to 299.
    public static var successful: StatusValidation { StatusValidation(rule: .range(200...299)) }

    /// Every status; the caller checks it.
    public static var any: StatusValidation { StatusValidation(rule: .range(0...Int.max)) }

    /// The statuses of a range.
    public static func range(_ range: ClosedRange<Int>) -> StatusValidation { StatusValidation(rule: .range(range)) }

    /// Exactly these statuses.
    public static func codes(_ codes: Set<Int>) -> StatusValidation { StatusValidation(rule: .codes(codes)) }

    /// The statuses for which the closure returns `true`. It runs where the run is processed, and must not block.
    public static func custom(_ accepts: @escaping @Sendable (Int) -> Bool) -> StatusValidation {
        StatusValidation(rule: .closure(accepts))
    }

    /// Whether the rule names this status explicitly. A range that overlaps with 200 to 299 does not name the codes in
    /// the overlap, unless it is ``any``.
    func names(_ status: Int) -> Bool {
        if case .range(let range) = rule, range != 0...Int.max, 200...299 ~= status { return false }
        return accepts(status)
    }

    /// Whether this status is accepted.
    public func accepts(_ status: Int) -> Bool {
        switch rule {
        case .range(let range): range.contains(status)
        case .codes(let codes): codes.contains(status)
        case .closure(let accepts): accepts(status)
        }
    }
}

/// A media type (RFC 9110, 8.3.1) without its parameters.
struct MediaType: Equatable, CustomStringConvertible {
    let type: String
    let subtype: String

    /// `nil` if the text is not a media type.
    init?(_ text: String) {
        let bare = text.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false)[0]
        let parts = bare.split(separator: "/", omittingEmptySubsequences: false).map(Self.trimmed)
        guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(ByteSet.token.contains) })
        else { return nil }
        type = parts[0].lowercased()
        subtype = parts[1].lowercased()
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text.drop { $0 == " " || $0 == "\t" })
    }

    /// Whether it matches a range like `text/html`, `text/*`, `application/*+json` or `*/*`.
    func matches(_ range: String) -> Bool {
        guard let range = MediaType(range) else { return false }
        if range.type != "*" && range.type != type { return false }
        if range.subtype == "*" || range.subtype == subtype { return true }
        return range.subtype.hasPrefix("*+") && subtype.hasSuffix(range.subtype.dropFirst())
    }

    var description: String { "\(type)/\(subtype)" }
}
