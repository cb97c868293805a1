import FerryTransport

extension RequestBuilder {
    /// The way back: transport, then status, then value; the first that fails names the error.
    func reply<R: Request>(to request: R, _ answer: Answer, url: String) throws(RequestError) -> Reply<R.Value> {
        let response = try response(of: answer, url: url)
        try check(response, by: request.statusValidation)
        do {
            return Reply(value: try request.value(from: response), response: response)
        } catch {
            throw Self.fault(error, response)
        }
    }

    private func response(of answer: Answer, url: String) throws(RequestError) -> Response {
        switch answer {
        case .refused(let error): throw error
        case .result(let result):
            if result.succeeded { return Response(result, url: url) }
            guard let failure = result.failure else { preconditionFailure("a fault without a code") }
            throw RequestError(failure, of: result, url: url)
        }
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
        case let error as DecodingError:
            RequestError(.decoding, message: BodyDecoding.message(of: error), cause: error, response: response)
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
    static func cancelled(_ result: TransferResult?, url: String) -> RequestError {
        let failure = TransferFailure(.cancelled)
        guard let result else { return RequestError(failure, url: url) }
        return RequestError(failure, of: result, url: url)
    }
}
