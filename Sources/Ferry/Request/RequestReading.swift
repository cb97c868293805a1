/// The members of a request that were read for its key in the cache. The transfer is built from the same values: the
/// application may switch to another user at any moment, and a response must not be stored under the key of another.
///
/// It is on the heap: copies of so many members would take a fifth of the time of a hit in memory.
final class RequestReading: Sendable {
    /// The URL without the arguments.
    let joined: JoinedURL
    let headers: Headers
    let method: HTTPMethod
    let arguments: Arguments
    let encoding: ArgumentEncoding
    let authorization: Authorization?
    let body: RequestBody?
    let acceptedContentTypes: [String]?
    let acceptedEncodings: [ContentEncoding]?
    let idempotencyKey: IdempotencyKey?
    let redirectPolicy: RedirectPolicy?
    /// Whether it may go to addresses of the public internet only (``Request/addressPolicy``).
    let isPublicOnly: Bool
    /// Whether these are the members of ``Request/prebuiltRequest``.
    let isPrebuilt: Bool

    init<R: Request>(
        of request: R, joined: JoinedURL, headers: Headers, isPublicOnly: Bool, redirectPolicy: RedirectPolicy?,
        method: HTTPMethod, arguments: Arguments, encoding: ArgumentEncoding, authorization: Authorization?,
        body: RequestBody?
    ) {
        (acceptedContentTypes, acceptedEncodings) = (request.acceptedContentTypes, request.acceptedEncodings)
        idempotencyKey = request.idempotencyKey
        (self.joined, self.headers, self.method, isPrebuilt) = (joined, headers, method, false)
        (self.isPublicOnly, self.redirectPolicy) = (isPublicOnly, redirectPolicy)
        (self.arguments, self.encoding) = (arguments, encoding)
        (self.authorization, self.body) = (authorization, body)
    }

    /// The same for a prebuilt request, which needs fewer members.
    init<R: Request>(
        _ custom: OutgoingRequest, of request: R, joined: JoinedURL, isPublicOnly: Bool, redirectPolicy: RedirectPolicy?
    ) {
        (acceptedContentTypes, acceptedEncodings, idempotencyKey) = (nil, request.acceptedEncodings, nil)
        (self.joined, headers, method, isPrebuilt) = (joined, custom.headers, custom.method, true)
        (self.isPublicOnly, self.redirectPolicy) = (isPublicOnly, redirectPolicy)
        (arguments, encoding) = (Arguments(), .automatic)
        (authorization, body) = (nil, custom.body)
    }
}

/// The settings of a request that its run needs again after its first transfer. They are read with the content, in the
/// task that starts the run: a proxy that belongs to a tenant must be the same in every attempt.
///
/// It is on the heap, because most requests set none of these.
final class OwnSettings: Sendable {
    let deadline: Duration?
    let proxy: ProxyConfiguration?
    let redirectPolicy: RedirectPolicy?
    let retryPolicy: RetryPolicy?

    private init(
        _ deadline: Duration?, _ proxy: ProxyConfiguration?, _ redirectPolicy: RedirectPolicy?,
        _ retryPolicy: RetryPolicy?
    ) {
        (self.deadline, self.proxy) = (deadline, proxy)
        (self.redirectPolicy, self.retryPolicy) = (redirectPolicy, retryPolicy)
    }

    /// `nil` if the request leaves all of them to the configuration.
    static func of<R: Request>(
        _ request: R, deadline: Duration?, proxy: ProxyConfiguration?, redirectPolicy: RedirectPolicy?
    ) -> OwnSettings? {
        let retryPolicy = request.retryPolicy
        if deadline == nil && proxy == nil && redirectPolicy == nil && retryPolicy == nil { return nil }
        return OwnSettings(deadline, proxy, redirectPolicy, retryPolicy)
    }

    /// The same for a request that is not built.
    static func of<R: Request>(_ request: R) -> OwnSettings? {
        of(request, deadline: request.deadline, proxy: request.proxy, redirectPolicy: request.redirectPolicy)
    }
}

extension RequestBuilder {
    /// The redirect policy, with the header fields that the configuration declares sensitive.
    func redirectPolicy(_ own: OwnSettings?) -> RedirectPolicy {
        var policy = own?.redirectPolicy ?? redirectPolicy
        policy.sensitiveHeaders += sensitiveHeaders
        return policy
    }

    /// Whether redirects are followed.
    func mayRedirect(_ own: OwnSettings?) -> Bool { (own?.redirectPolicy ?? redirectPolicy).limit != nil }

    /// Whether a policy allows retries, without a look at the whole policy.
    func mayRetry(_ own: OwnSettings?) -> Bool { own?.retryPolicy.map { $0.maxAttempts > 1 } ?? retries }

    /// Names of the header fields that the configuration or the request's own policy declares sensitive.
    func sensitiveHeaders(with own: RedirectPolicy?) -> [String] {
        guard let own = own?.sensitiveHeaders, !own.isEmpty else { return sensitiveHeaders }
        return sensitiveHeaders + own
    }
}
