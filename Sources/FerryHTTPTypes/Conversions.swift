#if HTTPTypes
public import Ferry
internal import FoundationEssentials
public import HTTPTypes

// Both modules use the same type names: those of this package are written with the module's name.

extension HTTPTypes.HTTPFields {
    /// Creates the same fields, in order, with a field for each of several values of a name. Fields whose name is not a
    /// token are left out, because they are not allowed here.
    public init(_ headers: Headers) {
        self.init()
        for field in headers {
            guard let name = HTTPField.Name(field.name) else { continue }
            append(HTTPField(name: name, value: field.value))
        }
    }
}

extension Headers {
    /// Creates the same fields, in order.
    public init(_ fields: HTTPTypes.HTTPFields) {
        self.init(fields.map { Field(name: $0.name.rawName, value: $0.value) })
    }
}

extension HTTPMethod {
    /// Creates the same method.
    public init(_ method: HTTPTypes.HTTPRequest.Method) { self.init(rawValue: method.rawValue) }
}

extension HTTPTypes.HTTPRequest.Method {
    /// Creates the same method; `nil` if it is not a token.
    public init?(_ method: HTTPMethod) { self.init(rawValue: method.rawValue) }
}

extension Ferry.HTTPRequest where Value == Response {
    /// Creates a request from the other's description, with this body; its value is the response.
    ///
    /// With an authority, the path is an absolute URL, with the scheme `https` unless the other request names one.
    /// Without an authority, it is the other's path, relative to the agent's base URL. A `Content-Length` field is left
    /// out: Ferry sends that of the body.
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
    /// Creates the same request, with this body; `nil` without an authority. The scheme is `https` unless the other
    /// request names one.
    public init?(_ request: HTTPTypes.HTTPRequest, body: RequestBody? = nil) {
        guard request.authority != nil else { return nil }
        let same = Ferry.HTTPRequest(request, body: body)
        self.init(method: same.method, url: same.path, headers: same.headers, body: body)
    }
}

extension HTTPTypes.HTTPRequest {
    /// Creates the head of the same request; `nil` if the URL is invalid or the method is not a token. User, password
    /// and fragment of the URL are left out.
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
    /// Creates the status and fields of a received response.
    public init(_ response: Response) {
        self.init(status: Status(code: response.status), headerFields: HTTPFields(response.headers))
    }

    /// Creates the status and fields of a response from an interceptor; `nil` unless the status has three digits.
    public init?(_ response: InterceptedResponse) {
        guard 100...999 ~= response.status else { return nil }
        self.init(status: Status(code: response.status), headerFields: HTTPFields(response.headers))
    }
}

extension InterceptedResponse {
    /// Creates a response for an interceptor, with this body.
    public init(_ response: HTTPTypes.HTTPResponse, body: [UInt8] = []) {
        self.init(status: response.status.code, headers: Headers(response.headerFields), body: Data(body))
    }
}
#endif
