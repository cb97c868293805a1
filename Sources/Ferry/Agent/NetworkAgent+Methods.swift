/// Requests without a type of their own, by their method. Each sends one ``HTTPRequest`` with the agent's configuration
/// and throws what ``NetworkAgent/send(_:)`` throws; a status outside 200 to 299 is `invalidStatusCode`. What else a
/// request can say (a deadline, a retry policy, caching) is a member of ``HTTPRequest``.
///
///     let profile = try await agent.get("/users/7", as: Profile.self)
///
/// A URL is absolute, or a path below the configuration's base URL. The arguments of GET, HEAD and DELETE are the query
/// of the URL; of POST, PUT and PATCH they are a form, unless there is a body.
extension NetworkAgent {
    /// GET, for the response.
    public nonisolated(nonsending) func get(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments()
    ) async throws(RequestError) -> Response {
        var request = HTTPRequest(.get, url, headers: headers)
        request.arguments = arguments
        return try await send(request).value
    }

    /// GET, for a value: `Decodable` from the body's JSON; `Data`, `[UInt8]`, `String` and `JSON` are the body itself.
    public nonisolated(nonsending) func get<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), as type: Value.Type
    ) async throws(RequestError) -> Value {
        var request = HTTPRequest(.get, url, headers: headers, as: type)
        request.arguments = arguments
        return try await send(request).value
    }

    /// HEAD, for the response without a body.
    public nonisolated(nonsending) func head(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments()
    ) async throws(RequestError) -> Response {
        var request = HTTPRequest(.head, url, headers: headers)
        request.arguments = arguments
        return try await send(request).value
    }

    /// DELETE, for the response.
    @discardableResult
    public nonisolated(nonsending) func delete(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments()
    ) async throws(RequestError) -> Response {
        var request = HTTPRequest(.delete, url, headers: headers)
        request.arguments = arguments
        return try await send(request).value
    }

    /// POST, for the response.
    @discardableResult
    public nonisolated(nonsending) func post(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), body: RequestBody? = nil
    ) async throws(RequestError) -> Response {
        var request = HTTPRequest(.post, url, headers: headers, body: body)
        request.arguments = arguments
        return try await send(request).value
    }

    /// POST, for a value of the response's body, as for `get`.
    public nonisolated(nonsending) func post<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), body: RequestBody? = nil,
        as type: Value.Type
    ) async throws(RequestError) -> Value {
        var request = HTTPRequest(.post, url, headers: headers, body: body, as: type)
        request.arguments = arguments
        return try await send(request).value
    }

    /// POST of a value as JSON, for the response. For the strategies of an encoder, or a JSON literal, the body is
    /// `.json(_:encoder:)`.
    @discardableResult
    public nonisolated(nonsending) func post(
        _ url: String, headers: Headers = Headers(), json: some Encodable & Sendable
    ) async throws(RequestError) -> Response {
        try await send(HTTPRequest(.post, url, headers: headers, body: .json(json))).value
    }

    /// POST of a value as JSON, for a value of the response's body, as for `get`.
    public nonisolated(nonsending) func post<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), json: some Encodable & Sendable, as type: Value.Type
    ) async throws(RequestError) -> Value {
        try await send(HTTPRequest(.post, url, headers: headers, body: .json(json), as: type)).value
    }

    /// PUT, for the response.
    @discardableResult
    public nonisolated(nonsending) func put(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), body: RequestBody? = nil
    ) async throws(RequestError) -> Response {
        var request = HTTPRequest(.put, url, headers: headers, body: body)
        request.arguments = arguments
        return try await send(request).value
    }

    /// PUT, for a value of the response's body, as for `get`.
    public nonisolated(nonsending) func put<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), body: RequestBody? = nil,
        as type: Value.Type
    ) async throws(RequestError) -> Value {
        var request = HTTPRequest(.put, url, headers: headers, body: body, as: type)
        request.arguments = arguments
        return try await send(request).value
    }

    /// PUT of a value as JSON, for the response. For the strategies of an encoder, or a JSON literal, the body is
    /// `.json(_:encoder:)`.
    @discardableResult
    public nonisolated(nonsending) func put(
        _ url: String, headers: Headers = Headers(), json: some Encodable & Sendable
    ) async throws(RequestError) -> Response {
        try await send(HTTPRequest(.put, url, headers: headers, body: .json(json))).value
    }

    /// PUT of a value as JSON, for a value of the response's body, as for `get`.
    public nonisolated(nonsending) func put<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), json: some Encodable & Sendable, as type: Value.Type
    ) async throws(RequestError) -> Value {
        try await send(HTTPRequest(.put, url, headers: headers, body: .json(json), as: type)).value
    }

    /// PATCH, for the response.
    @discardableResult
    public nonisolated(nonsending) func patch(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), body: RequestBody? = nil
    ) async throws(RequestError) -> Response {
        var request = HTTPRequest(.patch, url, headers: headers, body: body)
        request.arguments = arguments
        return try await send(request).value
    }

    /// PATCH, for a value of the response's body, as for `get`.
    public nonisolated(nonsending) func patch<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), body: RequestBody? = nil,
        as type: Value.Type
    ) async throws(RequestError) -> Value {
        var request = HTTPRequest(.patch, url, headers: headers, body: body, as: type)
        request.arguments = arguments
        return try await send(request).value
    }

    /// PATCH of a value as JSON, for the response. For the strategies of an encoder, or a JSON literal, the body is
    /// `.json(_:encoder:)`.
    @discardableResult
    public nonisolated(nonsending) func patch(
        _ url: String, headers: Headers = Headers(), json: some Encodable & Sendable
    ) async throws(RequestError) -> Response {
        try await send(HTTPRequest(.patch, url, headers: headers, body: .json(json))).value
    }

    /// PATCH of a value as JSON, for a value of the response's body, as for `get`.
    public nonisolated(nonsending) func patch<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), json: some Encodable & Sendable, as type: Value.Type
    ) async throws(RequestError) -> Value {
        try await send(HTTPRequest(.patch, url, headers: headers, body: .json(json), as: type)).value
    }
}
