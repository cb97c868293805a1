public import Ferry

extension ResponseFormat {
    /// XML that is well-formed and within the default `XMLLimits`. Otherwise the error is `decoding`, with the
    /// `XMLReadError` as the underlying error.
    public static let xml = xml(limits: XMLLimits())

    /// XML that is well-formed and within these limits. Otherwise the error is `decoding`, with the `XMLReadError` as
    /// the underlying error.
    public static func xml(limits: XMLLimits) -> ResponseFormat {
        ResponseFormat("xml") { response throws(RequestError) in
            do {
                try XMLReader(limits: limits).check(response.body)
            } catch {
                throw RequestError(xml: error, of: response)
            }
        }
    }
}

extension Response {
    /// Parses the body with a handler, and returns the handler. For use in ``Request/value(from:)``.
    ///
    /// Throws `decoding` if the body is not XML or exceeds the limits. Errors of the handler are passed on unchanged.
    public func readXML<Handler: XMLHandler>(by handler: Handler, limits: XMLLimits = XMLLimits()) throws -> Handler {
        var handler = handler
        do {
            try XMLReader(limits: limits).read(body, handler: &handler)
        } catch let error as XMLReadError {
            throw RequestError(xml: error, of: self)
        }
        return handler
    }
}

extension RequestError {
    fileprivate init(xml error: any Error, of response: Response) {
        self.init(.decoding, message: "\(error)", cause: error, response: response)
    }
}
