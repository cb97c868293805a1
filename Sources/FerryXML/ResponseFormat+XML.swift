public import Ferry

extension ResponseFormat {
    /// XML: the body must be well-formed and within the default `XMLLimits`. Any other body is `decoding`, with an
    /// `XMLReadError` as its cause.
    public static let xml = xml(limits: XMLLimits())

    /// XML with your own limits.
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
    /// Parses the body with a handler, and returns the handler. For ``Request/value(from:)``.
    ///
    /// A body that is not XML or exceeds the limits is `decoding`. Errors of the handler are thrown unchanged.
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
