public import Ferry

extension ResponseFormat {
    /// XML: well-formed, and within the defaults of `XMLLimits`. Anything else is `decoding`, with the `XMLReadError`
    /// beneath.
    public static let xml = xml(limits: XMLLimits())

    /// Likewise, within bounds of one's own.
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
    /// Tells the handler what stands in the body, and gives it back. For ``Request/value(from:)``.
    ///
    /// What is not XML, or beyond the limits, is `decoding`; what the handler throws is passed on as it is.
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
