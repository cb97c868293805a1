import FerryTransport

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

extension NetworkAgent {
    /// Opens connections to the host of a URL ahead of requests, TLS and the tunnel of a proxy included, so that as
    /// many as `count` lie unused. Those that do so already count.
    ///
    ///     try await agent.connect(to: "https://api.example.com", count: 8)
    ///
    /// Not more than ``Limits/maxConcurrentTransfers`` are opened. Returns how many of them there are; throws when
    /// there is none, with the error of the first that failed. The URL is joined to ``baseURL``; its path does not
    /// matter, and nothing is sent to the server. The configuration's timeouts, limits, proxy and address policy count;
    /// adapters, retries and observers have no part in it. Several loops share the connections.
    ///
    /// A connection that nobody uses is closed after ``NetworkConfiguration/idleConnectionTime``. Where libcurl would
    /// carry the request (HTTP/2, an agent that keeps cookies, plain requests through an HTTP proxy), this fails with
    /// `invalidRequest`.
    @discardableResult
    public nonisolated(nonsending) func connect(to url: String, count: Int = 1) async throws(RequestError) -> Int {
        let loops = max(core.transport.clocks.count, 1)
        var runs: [AwaitedRun] = []
        let most = max(core.configuration.limits.maxConcurrentTransfers, 1)
        for index in 0..<min(max(count, 0), most) {
            var built = try core.builder.build(Connect(path: url), at: core.builder.servers)
            built.transfer.connections = UInt32(clamping: index / loops + 1)
            let run = AwaitedRun(url: built.transfer.url, tag: nil)
            core.start(run, built, on: UInt8(index % loops))
            runs.append(run)
        }
        var open = 0
        var error: RequestError?
        for run in runs {
            switch await run.answer(by: core) {
            case .result(let result) where result.succeeded: open += 1
            case .result(let result):
                if let failure = result.failure { error = error ?? RequestError(failure, of: result, url: run.url) }
            case .refused(let refusal): error = error ?? refusal
            case .arrived, .unsent: break
            }
        }
        if open == 0, let error { throw error }
        return open
    }
}

/// What the way to a host is worked out from.
private struct Connect: Request {
    let path: String
}
