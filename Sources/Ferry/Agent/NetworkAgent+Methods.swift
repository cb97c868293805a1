import FerryTransport

/// Methods for requests without a type of their own. Each sends one ``HTTPRequest`` with the agent's configuration and
/// throws the errors of ``NetworkAgent/send(_:)``. A status that ``NetworkConfiguration/statusValidation`` does not
/// accept is `invalidStatusCode`; by default these are all but 200 to 299. For other options (a deadline, a retry
/// policy, caching), create an ``HTTPRequest``.
///
///     let profile = try await agent.get("/users/7", as: Profile.self)
///
/// A URL is absolute, or a path below the configuration's base URL. The arguments of GET, HEAD and DELETE become the
/// query of the URL. The arguments of POST, PUT and PATCH become a form, unless there is a body.
extension NetworkAgent {
    /// Sends a GET request and returns the response.
    public nonisolated(nonsending) func get(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments()
    ) async throws(RequestError) -> Response {
        var request = HTTPRequest(.get, url, headers: headers)
        request.arguments = arguments
        return try await send(request).value
    }

    /// Sends a GET request and returns a value: a `Decodable` from the JSON body, or the body itself as `Data`,
    /// `[UInt8]`, `String` or `JSON`.
    public nonisolated(nonsending) func get<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), as type: Value.Type
    ) async throws(RequestError) -> Value {
        var request = HTTPRequest(.get, url, headers: headers, as: type)
        request.arguments = arguments
        return try await send(request).value
    }

    /// Sends a HEAD request and returns the response, which has no body.
    public nonisolated(nonsending) func head(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments()
    ) async throws(RequestError) -> Response {
        var request = HTTPRequest(.head, url, headers: headers)
        request.arguments = arguments
        return try await send(request).value
    }

    /// Sends a DELETE request and returns the response.
    @discardableResult
    public nonisolated(nonsending) func delete(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments()
    ) async throws(RequestError) -> Response {
        var request = HTTPRequest(.delete, url, headers: headers)
        request.arguments = arguments
        return try await send(request).value
    }

    /// Sends a DELETE request and returns a value of the response body, as `get` does.
    public nonisolated(nonsending) func delete<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), as type: Value.Type
    ) async throws(RequestError) -> Value {
        var request = HTTPRequest(.delete, url, headers: headers, as: type)
        request.arguments = arguments
        return try await send(request).value
    }

    /// Sends a POST request and returns the response.
    @discardableResult
    public nonisolated(nonsending) func post(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), body: RequestBody? = nil
    ) async throws(RequestError) -> Response {
        var request = HTTPRequest(.post, url, headers: headers, body: body)
        request.arguments = arguments
        return try await send(request).value
    }

    /// Sends a POST request and returns a value of the response body, as `get` does.
    public nonisolated(nonsending) func post<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), body: RequestBody? = nil,
        as type: Value.Type
    ) async throws(RequestError) -> Value {
        var request = HTTPRequest(.post, url, headers: headers, body: body, as: type)
        request.arguments = arguments
        return try await send(request).value
    }

    /// Sends a POST request with a value as JSON and returns the response. To use an encoder with strategies or a JSON
    /// literal, pass `.json(_:encoder:)` as the body.
    @discardableResult
    public nonisolated(nonsending) func post(
        _ url: String, headers: Headers = Headers(), json: some Encodable & Sendable
    ) async throws(RequestError) -> Response {
        try await send(HTTPRequest(.post, url, headers: headers, body: .json(json))).value
    }

    /// Sends a POST request with a value as JSON and returns a value of the response body, as `get` does.
    public nonisolated(nonsending) func post<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), json: some Encodable & Sendable, as type: Value.Type
    ) async throws(RequestError) -> Value {
        try await send(HTTPRequest(.post, url, headers: headers, body: .json(json), as: type)).value
    }

    /// Sends a PUT request and returns the response.
    @discardableResult
    public nonisolated(nonsending) func put(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), body: RequestBody? = nil
    ) async throws(RequestError) -> Response {
        var request = HTTPRequest(.put, url, headers: headers, body: body)
        request.arguments = arguments
        return try await send(request).value
    }

    /// Sends a PUT request and returns a value of the response body, as `get` does.
    public nonisolated(nonsending) func put<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), body: RequestBody? = nil,
        as type: Value.Type
    ) async throws(RequestError) -> Value {
        var request = HTTPRequest(.put, url, headers: headers, body: body, as: type)
        request.arguments = arguments
        return try await send(request).value
    }

    /// Sends a PUT request with a value as JSON and returns the response. To use an encoder with strategies or a JSON
    /// literal, pass `.json(_:encoder:)` as the body.
    @discardableResult
    public nonisolated(nonsending) func put(
        _ url: String, headers: Headers = Headers(), json: some Encodable & Sendable
    ) async throws(RequestError) -> Response {
        try await send(HTTPRequest(.put, url, headers: headers, body: .json(json))).value
    }

    /// Sends a PUT request with a value as JSON and returns a value of the response body, as `get` does.
    public nonisolated(nonsending) func put<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), json: some Encodable & Sendable, as type: Value.Type
    ) async throws(RequestError) -> Value {
        try await send(HTTPRequest(.put, url, headers: headers, body: .json(json), as: type)).value
    }

    /// Sends a PATCH request and returns the response.
    @discardableResult
    public nonisolated(nonsending) func patch(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), body: RequestBody? = nil
    ) async throws(RequestError) -> Response {
        var request = HTTPRequest(.patch, url, headers: headers, body: body)
        request.arguments = arguments
        return try await send(request).value
    }

    /// Sends a PATCH request and returns a value of the response body, as `get` does.
    public nonisolated(nonsending) func patch<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), arguments: Arguments = Arguments(), body: RequestBody? = nil,
        as type: Value.Type
    ) async throws(RequestError) -> Value {
        var request = HTTPRequest(.patch, url, headers: headers, body: body, as: type)
        request.arguments = arguments
        return try await send(request).value
    }

    /// Sends a PATCH request with a value as JSON and returns the response. To use an encoder with strategies or a JSON
    /// literal, pass `.json(_:encoder:)` as the body.
    @discardableResult
    public nonisolated(nonsending) func patch(
        _ url: String, headers: Headers = Headers(), json: some Encodable & Sendable
    ) async throws(RequestError) -> Response {
        try await send(HTTPRequest(.patch, url, headers: headers, body: .json(json))).value
    }

    /// Sends a PATCH request with a value as JSON and returns a value of the response body, as `get` does.
    public nonisolated(nonsending) func patch<Value: Decodable & Sendable>(
        _ url: String, headers: Headers = Headers(), json: some Encodable & Sendable, as type: Value.Type
    ) async throws(RequestError) -> Value {
        try await send(HTTPRequest(.patch, url, headers: headers, body: .json(json), as: type)).value
    }
}

extension NetworkAgent {
    /// Opens connections to the host of a URL before they are needed, including TLS and proxy tunnels, until `count`
    /// unused connections are ready. Connections that are already unused count.
    ///
    ///     try await agent.connect(to: "https://api.example.com", count: 8)
    ///
    /// Opens at most ``Limits/maxConcurrentTransfers`` connections, and returns how many are ready. If there is none,
    /// it throws the error of the first connection that failed. The URL is joined to ``baseURL``; its path does not
    /// matter, and nothing is sent to the server. The configuration's timeouts, limits, proxy and address policy apply.
    /// Adapters, retries and observers are not used. The connections are divided among the event loops.
    ///
    /// An unused connection is closed after ``NetworkConfiguration/idleConnectionTime``. If libcurl would carry the
    /// request (HTTP/2, an agent that keeps cookies, plain requests through an HTTP proxy), the call fails with
    /// `invalidRequest`.
    @discardableResult
    public nonisolated(nonsending) func connect(to url: String, count: Int = 1) async throws(RequestError) -> Int {
        let loops = max(core.transport.clocks.count, 1)
        var runs: [AwaitedRun] = []
        let most = max(core.configuration.limits.maxConcurrentTransfers, 1)
        for index in 0..<min(max(count, 0), most) {
            var built = try core.builder.build(Connect(path: url), at: core.builder.servers)
            built.transfer.connections = UInt32(clamping: index / loops + 1)
            built.transfer.passesLimits = core.tokens != nil && core.isRefreshing
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

/// A request from which the route to a host is determined.
private struct Connect: Request {
    let path: String
}
