#if HTTPTypes
public import Ferry
internal import FoundationEssentials
public import HTTPTypes

// The types of both modules have the same names: those of this package are written with the module's name.

extension HTTPTypes.HTTPFields {
    /// The same fields, in their order, the values of equal names as fields of their own. Those whose names are not
    /// tokens, which have no place here, are left out.
    public init(_ headers: Headers) {
        self.init()
        for field in headers {
            guard let name = HTTPField.Name(field.name) else { continue }
            append(HTTPField(name: name, value: field.value))
        }
    }
}

extension Headers {
    /// The same fields, in their order.
    public init(_ fields: HTTPTypes.HTTPFields) {
        self.init(fields.map { Field(name: $0.name.rawName, value: $0.value) })
    }
}

extension HTTPMethod {
    /// The same method.
    public init(_ method: HTTPTypes.HTTPRequest.Method) { self.init(rawValue: method.rawValue) }
}

extension HTTPTypes.HTTPRequest.Method {
    /// The same method; `nil` of one that is not a token.
    public init?(_ method: HTTPMethod) { self.init(rawValue: method.rawValue) }
}

extension Ferry.HTTPRequest where Value == Response {
    /// A request for what the other describes, with this body; its value is the response.
    ///
    /// With an authority the path is an absolute URL, of the scheme `https` unless the other names one. Without an
    /// authority it is the other's path, below the agent's base URL. A `Content-Length` among the fields is left out:
    /// Ferry sends the body's own.
    public init(_ request: HTTPTypes.HTTPRequest, body: RequestBody? = nil) {
        var headers = Headers(request.headerFields)
        headers["Content-Length"] = nil
        var path = request.path ?? ""
        if let authority = request.authority {
            path = "\(request.scheme ?? "https")://\(authority)\(path.hasPrefix("/") ? "" : "/")\(path)"
        }
        self.init(HTTPMethod(request.method), path, headers: headers, body: body)
    }
}

extension OutgoingRequest {
    /// The same request, with this body; `nil` without an authority. The scheme is `https` unless the other names one.
    public init?(_ request: HTTPTypes.HTTPRequest, body: RequestBody? = nil) {
        guard request.authority != nil else { return nil }
        let same = Ferry.HTTPRequest(request, body: body)
        self.init(method: same.method, url: same.path, headers: same.headers, body: body)
    }
}

extension HTTPTypes.HTTPRequest {
    /// The head of the same request; `nil` where the URL is none or the method is not a token. User, password and
    /// fragment of the URL are left out.
    public init?(_ request: OutgoingRequest) {
        guard let method = Method(request.method), let url = URLComponents(string: request.url),
            let scheme = url.scheme, let host = url.percentEncodedHost, !host.isEmpty
        else { return nil }
        let path = url.percentEncodedPath.isEmpty ? "/" : url.percentEncodedPath
        self.init(
            method: method, scheme: scheme, authority: host + (url.port.map { ":\($0)" } ?? ""),
            path: path + (url.percentEncodedQuery.map { "?\($0)" } ?? ""), headerFields: HTTPFields(request.headers))
    }
}

extension HTTPTypes.HTTPResponse {
    /// Status and fields of a response that has come.
    public init(_ response: Response) {
        self.init(status: Status(code: response.status), headerFields: HTTPFields(response.headers))
    }

    /// Status and fields of a response that an interceptor gives; `nil` unless the status has three digits.
    public init?(_ response: InterceptedResponse) {
        guard 100...999 ~= response.status else { return nil }
        self.init(status: Status(code: response.status), headerFields: HTTPFields(response.headers))
    }
}

extension InterceptedResponse {
    /// A response for an interceptor to give, with this body.
    public init(_ response: HTTPTypes.HTTPResponse, body: [UInt8] = []) {
        self.init(status: response.status.code, headers: Headers(response.headerFields), body: Data(body))
    }
}
#endif
