import FerryJSON
import FerryTransport

extension RequestBuilder {
    /// The way back: transport, then status, content type, format, schema, value; the first that fails names the error.
    /// The preprocessors see what came of it.
    ///
    /// Thrown and returned, not wrapped up: every generic type that is named on the way costs a look into the runtime's
    /// tables, and every copy of a reply four counts of references.
    @inline(__always)
    func reply<R: Request>(
        to request: R, _ answer: Answer, url: String, _ times: inout ProcessingTimes
    ) throws(RequestError) -> Reply<R.Value> {
        times.begin()
        do throws(RequestError) {
            defer { if times.isMeasured { times.end() } }
            let reply = try validated(request, answer, url: url, &times)
            request.completionPreprocessor(reply)
            return reply
        } catch {
            request.failurePreprocessor(error)
            throw error
        }
    }

    @inline(__always)
    func validated<R: Request>(
        _ request: R, _ answer: Answer, url: String, _ times: inout ProcessingTimes
    ) throws(RequestError) -> Reply<R.Value> {
        let response = try response(of: answer, url: url)
        try check(response, by: request.statusValidation)
        if response.bodyLength > 0 { try check(response, contentTypes: request.acceptedContentTypes) }
        try request.responseFormat.validate(response)
        let schema = request.jsonSchema
        // The document that is checked is kept for the value.
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
        case .result(let result): try self.response(of: result, url: url, trail: nil)
        case .arrived(let result, let trail): try self.response(of: result, url: trail.url, trail: trail)
        case .unsent: preconditionFailure("a run that was not sent has no reply")
        }
    }

    private func response(of result: TransferResult, url: String, trail: Trail?) throws(RequestError) -> Response {
        if result.succeeded { return Response(result, url: url, trail: trail) }
        guard let failure = result.failure else { preconditionFailure("a fault without a code") }
        throw RequestError(failure, of: result, url: url, trail: trail)
    }

    /// What can be checked before the body has come; `length` is its own, `nil` where that is not known.
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
            .invalidContentType, message: "a body of type \(type?.description ?? "none") was not asked for",
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
                .userError, message: "value(from:) threw \(type(of: error))", cause: error, response: response)
        }
    }
}

extension RequestError {
    /// `result` is what had come of the transfer, if it came to one.
    static func cancelled(_ result: TransferResult?, url: String, trail: Trail? = nil) -> RequestError {
        let failure = TransferFailure(.cancelled)
        guard let result else { return RequestError(failure, url: url) }
        return RequestError(failure, of: result, url: trail?.url ?? url, trail: trail)
    }
}
