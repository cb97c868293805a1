import FerrySynchronization
import FerryTransport
import FoundationEssentials

/// Turns a request into a concrete transfer, or throws an error that says why it is invalid. It computes once what is
/// the same for all requests of an agent.
final class RequestBuilder: Sendable {
    let statusValidation: StatusValidation
    let redirectPolicy: RedirectPolicy
    let retryPolicy: RetryPolicy
    let retries: Bool
    private let addressPolicy: AddressPolicy
    /// `nil` if no URL uses a proxy.
    private let proxy: ProxyConfiguration?
    /// Names of the header fields that the configuration declares sensitive.
    let sensitiveHeaders: [String]
    let userAgent: String?
    let acceptedEncodings: [ContentEncoding]
    /// Identifies the client certificate by its content, because the file may be replaced in place.
    let clientCertificate: String?
    /// Identifies the settings that decide which servers are trusted, and where connections go; empty for the defaults.
    let trust: [UInt8]
    private let liveServers: Mutex<Servers>
    let headers: CommonHeaders
    private let recorder: Recorder?
    private let refusal: Refusal?
    private let timeouts: TransferRequest.Timeouts
    private let maxHeadBytes: UInt32
    private let maxBodyBytes: UInt64

    init(_ configuration: NetworkConfiguration) {
        statusValidation = configuration.statusValidation
        redirectPolicy = configuration.redirectPolicy
        retryPolicy = configuration.retryPolicy
        retries = configuration.retryPolicy.maxAttempts > 1
        addressPolicy = configuration.addressPolicy
        proxy = configuration.proxy.isNone ? nil : configuration.proxy
        sensitiveHeaders = configuration.declaredSecrets
        recorder = configuration.recorder
        recorder?.declare(sensitiveHeaders)
        userAgent = configuration.userAgent
        acceptedEncodings = configuration.acceptedEncodings
        clientCertificate = configuration.tls.clientCertificate.map { $0.identity }
        trust = configuration.tls.trust + configuration.route
        liveServers = Mutex(
            Servers(
                base: configuration.baseURL, cdn: configuration.cdnURL, filters: configuration.urlFilters))
        do throws(RequestError) {
            // It is not in the block, because libcurl sends it itself, but it was not checked there either.
            var unused = HeaderBlock()
            try unused.appendChecked("User-Agent", configuration.userAgent ?? "", url: "")
            headers = try CommonHeaders(configuration)
            refusal = nil
        } catch {
            headers = CommonHeaders()
            refusal = Refusal(error: error)
        }
        var timeouts = configuration.timeouts.packed
        timeouts.deadline = milliseconds(configuration.deadline)
        self.timeouts = timeouts
        maxHeadBytes = UInt32(clamping: max(configuration.limits.headerBytes, 1))
        maxBodyBytes = UInt64(max(configuration.limits.maxBodyBytes, 1))
    }

    /// The current base URL, CDN URL and filters.
    var servers: Servers { liveServers.withLock { $0 } }

    /// Replaces them by the result of `change`. No other update can come in between.
    func updateServers(_ change: (Servers) -> Servers) {
        let old = liveServers.withLock { servers in
            let old = servers
            servers = change(old)
            return old
        }
        // This may release the last reference to a filter, whose `deinit` must not run under the lock.
        withExtendedLifetime(old) {}
    }

    /// The generic entry point: reads the content of the request, each member once, and the settings of its transfer.
    ///
    /// A run keeps the servers with which it started. It may already have read a part of the request.
    func build<R: Request>(
        _ request: R, at servers: Servers, opensBody: Bool = true, defersFiles: Bool = false,
        after reading: RequestReading? = nil
    ) throws(RequestError) -> BuiltRequest {
        if let reading, reading.isPrebuilt {
            let prebuilt = OutgoingRequest(
                own: reading.method, url: reading.joined.url, headers: reading.headers, body: reading.body)
            return try build(
                prebuilt, at: reading.joined, as: request, reading, encodings: reading.acceptedEncodings,
                opensBody: opensBody, defersFiles: defersFiles)
        }
        if reading == nil, let prebuilt = request.prebuiltRequest {
            let joined = try join(prebuilt.url)
            return try build(
                prebuilt, at: joined, as: request, encodings: request.acceptedEncodings, opensBody: opensBody,
                defersFiles: defersFiles)
        }
        let method = if let reading { reading.method } else { request.method }
        let joined = if let reading { reading.joined } else { try servers.join(request.path, of: request) }
        var built = BuiltRequest(
            transfer: TransferRequest(url: joined.url), opensBody: opensBody, defersFiles: defersFiles)
        let encodings = if let reading { reading.acceptedEncodings } else { request.acceptedEncodings }
        try describe(request, reading, method: method, encodings: encodings, in: &built)
        let body = if let reading { reading.body } else { request.body }
        let contentType = try fill(
            &built, body: body, arguments: reading?.arguments ?? request.arguments,
            encoding: reading?.encoding ?? request.argumentEncoding, method: method)
        var own = reading?.headers ?? request.headers
        if !own.isEmpty { built.ownsContentType = own.contains("Content-Type") }
        let key = if let reading { reading.idempotencyKey } else { request.idempotencyKey }
        if let key, !own.contains(Self.idempotencyKey) {
            own.append(Self.idempotencyKey, key.make())
            built.hasGeneratedKey = key == .automatic
        }
        if let names = body?.trailerNames, !names.isEmpty { own.announce(names) }
        let types = if let reading { reading.acceptedContentTypes } else { request.acceptedContentTypes }
        if let value = accept(types, own, joined.isForeign ? headers.publicFields : headers.fields) {
            own.append("Accept", value)
        }
        built.ownsAccept = types?.isEmpty == false || own.contains("Accept")
        built.trace = trace(of: request, own)
        built.noteLength(in: own)
        let authorization = if let reading { reading.authorization } else { request.authorization }
        if let digest = authorization?.digest, !own.contains("Authorization") {
            guard digest.isUsable else { throw .unusableCredential(url: joined.url) }
            built.transfer.credentials = TransferCredentials(
                user: digest.user, password: digest.password, schemes: .digest)
        }
        if let error = refusal?.error {
            throw RequestError(preparing: error.code, message: error.message, url: joined.url)
        }
        if own.isEmpty, authorization == nil, contentType == nil, built.coding == nil, joined.credentials == nil {
            built.transfer.headers = joined.isForeign ? headers.packedPublic : headers.packed
            return built
        }
        built.transfer.headers = try pack(
            own, adding: joined.isForeign ? headers.publicFields : headers.fields, authorization: authorization,
            credentials: joined.credentials, contentType: contentType, for: built)
        if own.contains(Self.idempotencyKey) { built.transfer.isIdempotent = true }
        return built
    }

    /// Builds a prebuilt request. The request's base URL, arguments, header fields and credentials, and the
    /// configuration's header fields, are not used.
    private func build<R: Request>(
        _ complete: OutgoingRequest, at joined: JoinedURL, as request: R, _ reading: RequestReading? = nil,
        encodings: [ContentEncoding]?, opensBody: Bool, defersFiles: Bool
    ) throws(RequestError) -> BuiltRequest {
        var built = BuiltRequest(
            transfer: TransferRequest(url: joined.url), opensBody: opensBody, defersFiles: defersFiles)
        try describe(request, reading, method: complete.method, encodings: encodings, in: &built)
        built.ownsAccept = complete.headers.contains("Accept")
        built.trace = trace(of: request, complete.headers)
        built.ownsContentType = complete.headers.contains("Content-Type")
        try place(complete, credentials: joined.credentials, in: &built)
        built.noteLength(in: complete.headers)
        return built
    }

    /// The `Accept` field for the accepted content types; `nil` if the field is already set or there are no such types.
    func accept(_ types: [String]?, _ own: Headers, _ common: Headers) -> String? {
        guard let types, !types.isEmpty, !own.contains("Accept"),
            !common.contains("Accept")
        else { return nil }
        return types.joined(separator: ", ")
    }

    /// The current trace context, unless the request turns it off or sets its own fields.
    private func trace<R: Request>(of request: R, _ own: Headers) -> TraceContext? {
        guard let context = TraceContext.current, request.propagatesTrace, !own.contains("traceparent")
        else { return nil }
        return context
    }

    /// Builds one attempt of a run, from the request that adapters, the authenticator and redirects have made.
    func build(
        _ outgoing: OutgoingRequest, of snapshot: RequestSnapshot, by proxy: ProxyConfiguration,
        reading files: BodyFiles?
    ) throws(RequestError) -> BuiltRequest {
        let joined = try join(outgoing.url)
        try check(outgoing.method, url: joined.url)
        var built = snapshot.with(outgoing, to: joined.url, files)
        built.transfer.proxy = try proxy.route(for: joined.url)?.transfer
        try place(outgoing, credentials: joined.credentials, in: &built)
        return built
    }

    /// Adds header fields and body of a prebuilt request.
    private func place(
        _ complete: OutgoingRequest, credentials: Authorization?, in built: inout BuiltRequest
    ) throws(RequestError) {
        let contentType = try fill(
            &built, body: complete.body, arguments: Arguments(), encoding: .automatic, method: complete.method)
        var headers = complete.headers
        if let names = complete.body?.trailerNames, !names.isEmpty { headers.announce(names) }
        built.transfer.headers = try pack(
            headers, adding: Headers(), authorization: nil, credentials: credentials, contentType: contentType,
            for: built)
        if complete.headers.contains(Self.idempotencyKey) { built.transfer.isIdempotent = true }
    }

    /// A server processes a request with a given key only once.
    private static let idempotencyKey = "Idempotency-Key"

    /// The normalised form of an absolute URL, without user and password.
    func checked(_ url: String) throws(RequestError) -> String { try join(url).url }

    func join(_ url: String) throws(RequestError) -> JoinedURL {
        do throws(URLFault) {
            return try URLJoiner.join(url, to: nil)
        } catch {
            throw RequestError(error, text: url)
        }
    }

    /// Sets everything except header fields and body.
    private func describe<R: Request>(
        _ request: R, _ reading: RequestReading?, method: HTTPMethod, encodings: [ContentEncoding]?,
        in built: inout BuiltRequest
    ) throws(RequestError) {
        let url = built.transfer.url
        try check(method, url: url)
        built.transfer.method = method.rawValue
        built.transfer.timeouts = request.timeouts.map(packed) ?? timeouts
        let (deadline, own) = (request.deadline, request.proxy)
        if let deadline { built.transfer.timeouts.deadline = milliseconds(deadline) }
        built.transfer.ring = request.priority.ring
        built.transfer.maxHeadBytes = maxHeadBytes
        built.transfer.maxBodyBytes = request.maxBodyBytes.map { UInt64(max($0, 1)) } ?? maxBodyBytes
        built.isIdempotent = request.isIdempotent
        built.transfer.isIdempotent = built.isIdempotent
        let redirects = if let reading { reading.redirectPolicy } else { request.redirectPolicy }
        if let recorder, let redirects { recorder.declare(redirects.sensitiveHeaders) }
        built.settings = OwnSettings.of(request, deadline: deadline, proxy: own, redirectPolicy: redirects)
        built.transfer.publicOnly = reading?.isPublicOnly ?? isPublicOnly(request)
        if let encodings { built.transfer.acceptedEncodings = TransferEncodings(encodings) }
        if let proxy = own ?? proxy { built.transfer.proxy = try proxy.route(for: url)?.transfer }
    }

    /// Whether the request may go to addresses of the public internet only.
    func isPublicOnly<R: Request>(_ request: R) -> Bool { (request.addressPolicy ?? addressPolicy).isPublicOnly }

    private func check(_ method: HTTPMethod, url: String) throws(RequestError) {
        guard method.isToken else {
            throw RequestError(preparing: .invalidRequest(.method), message: "the method is not a token", url: url)
        }
        // After a response to CONNECT the connection no longer carries HTTP (RFC 9110, 9.3.6).
        if method.rawValue == "CONNECT" {
            throw RequestError(
                preparing: .invalidRequest(.method), message: "CONNECT cannot be sent as a request", url: url)
        }
    }

    private func packed(_ timeouts: Timeouts) -> TransferRequest.Timeouts {
        var packed = timeouts.packed
        packed.deadline = self.timeouts.deadline
        return packed
    }

    /// Adds body and arguments; returns the content type of the body.
    private func fill(
        _ built: inout BuiltRequest, body: RequestBody?, arguments: Arguments, encoding: ArgumentEncoding,
        method: HTTPMethod
    ) throws(RequestError) -> String? {
        let contentType = try place(
            body, arguments: arguments, encoding: encoding, method: method, in: &built)
        if case .none = built.transfer.body { return contentType }
        if method == .head { throw .bodyOfHead(url: built.transfer.url) }
        return contentType
    }

    private func place(
        _ body: RequestBody?, arguments: Arguments, encoding: ArgumentEncoding, method: HTTPMethod,
        in built: inout BuiltRequest
    ) throws(RequestError) -> String? {
        var takesArguments = false
        if !arguments.values.isEmpty {
            switch encoding {
            case .query: built.transfer.appendQuery(arguments)
            case .automatic where method.carriesArgumentsInQuery: built.transfer.appendQuery(arguments)
            case .automatic where body != nil, .form where body != nil, .json where body != nil: takesArguments = true
            case .automatic, .form:
                built.transfer.body = .bytes(arguments.formEncoded())
                return "application/x-www-form-urlencoded"
            case .json:
                guard let json = arguments.jsonEncoded() else {
                    throw RequestError(
                        preparing: .invalidRequest(.arguments),
                        message: "JSON cannot represent a number that is not finite",
                        url: built.transfer.url)
                }
                built.transfer.body = .bytes(json)
                return "application/json"
            }
        }
        guard let body else {
            if method.expectsBody { built.transfer.body = .bytes([]) }
            return nil
        }
        switch body.content {
        case .data(let data): built.transfer.body = .data(data)
        case .bytes(let bytes): built.transfer.body = .bytes(bytes)
        case .string(let text): built.transfer.body = .bytes(Array(text.utf8))
        case .json(let value, let encoder):
            do {
                built.transfer.body = .data(try encoder.encode(value))
            } catch {
                throw RequestError(
                    preparing: .invalidRequest(.body), message: "the body cannot be encoded as JSON",
                    url: built.transfer.url, cause: error)
            }
        case .pulled(let pulled): try built.pull(pulled, of: body)
        case .multipart(let form):
            let form = takesArguments ? form.following(arguments) : form
            var whole = RequestBody.multipart(form)
            whole.coding = body.coding
            try built.pull(form, of: whole)
        }
        if let coding = body.coding {
            built.coding = coding
            try built.compress(coding)
        }
        return body.contentType
    }

    /// The general case: the fields of the request, of its body and of its credentials, then those of the
    /// configuration.
    private func pack(
        _ own: Headers, adding common: Headers, authorization: Authorization?, credentials: Authorization?,
        contentType: String?, for built: borrowing BuiltRequest
    ) throws(RequestError) -> HeaderBlock {
        let url = built.transfer.url
        var block = HeaderBlock()
        let ownAuthorization = own.contains("Authorization")
        let isAuthorized = !ownAuthorization && authorization != nil
        let sendsContentType = contentType != nil && !own.contains("Content-Type")
        for field in common where !own.contains(field.name) {
            if isAuthorized && equalNames(field.name, "Authorization") { continue }
            if sendsContentType && equalNames(field.name, "Content-Type") { continue }
            try block.appendChecked(field.name, field.value, url: url)
        }
        for field in own {
            if equalNames(field.name, "Content-Length") {
                try built.checkLength(field.value)
                continue
            }
            try block.appendChecked(field.name, field.value, url: url)
        }
        if sendsContentType, let contentType {
            try block.appendChecked("Content-Type", contentType, url: url)
        }
        if let coding = built.coding { try append(coding, to: &block, besides: own, common, url: url) }
        var sent = ownAuthorization ? nil : authorization ?? credentials
        if !isAuthorized, sent != nil, common.contains("Authorization") { sent = nil }
        if let value = try sent?.sentValue(url: url) { try block.appendChecked("Authorization", value, url: url) }
        return block
    }

    /// Adds `Content-Encoding`. A field that is already there may have come with this body, through an adapter. Another
    /// coding is refused.
    private func append(
        _ coding: RequestBody.Coding, to block: inout HeaderBlock, besides own: Headers, _ common: Headers, url: String
    ) throws(RequestError) {
        guard let other = own["Content-Encoding"] ?? common["Content-Encoding"] else {
            return try block.appendChecked("Content-Encoding", coding.name, url: url)
        }
        if equalNames(other, coding.name) { return }
        throw RequestError(
            preparing: .invalidRequest(.body),
            message: "the Content-Encoding field conflicts with the compression of the body to \(coding.name)", url: url
        )
    }
}

/// The error if this configuration cannot send anything. It is boxed, because an error is large and every request
/// passes it.
private final class Refusal: Sendable {
    let error: RequestError

    init(error: RequestError) { self.error = error }
}

extension TransferRequest {
    fileprivate mutating func appendQuery(_ arguments: Arguments) {
        url = URLJoiner.append(query: arguments.formEncoded(), to: url)
    }
}
