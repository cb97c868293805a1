import FerryTransport

extension Travel {
    /// A credential, and what it may be used for.
    struct Granted: Sendable {
        var credential: Credential
        var schemes: CredentialSchemes
    }

    /// A challenge (RFC 9110, 11.4): the provider is asked once for the server, and once for the proxy.
    mutating func challenged(by result: TransferResult) async throws(RequestError) -> Next? {
        guard let provider = core.configuration.credentialProvider, let asker = Self.asker(of: result) else {
            return nil
        }
        let isAnswered = asker == .server ? credential != nil : proxyCredential != nil
        var asked = try asked()
        guard !isAnswered, asked.body?.isReplayable ?? true, let place = try place(of: asker, for: asked.url) else {
            return nil
        }
        let challenge = CredentialChallenge(
            asker: asker, host: place.host, port: place.port, fields: Headers(result).values(of: asker.field))
        // Of a tunnel that was refused nothing is left but that: libcurl finds out what is offered.
        let schemes = result.succeeded ? challenge.schemes : .all
        if schemes.isEmpty { return nil }
        let info = itinerary.info
        guard let found = try await ask({ try await provider.credential(for: challenge, of: info) }) else { return nil }
        guard found.isUsable else {
            throw RequestError(preparing: .invalidRequest, message: "a NUL stands in a credential", url: url)
        }
        leave(result)
        switch asker {
        case .server:
            credential = Granted(credential: found, schemes: schemes)
            // It was not accepted, and would stand in the way.
            asked.headers["Authorization"] = nil
        case .proxy: proxyCredential = Granted(credential: found, schemes: schemes)
        }
        leg = asked
        return .goOn
    }

    /// Who asks for credentials by this answer, or by this failure.
    static func asker(of result: TransferResult) -> CredentialChallenge.Asker? {
        if let failure = result.failure {
            return failure.code == .proxy && failure.detail == .proxyAuthRequired ? .proxy : nil
        }
        switch result.status {
        case 401: return .server
        case 407: return .proxy
        default: return nil
        }
    }

    private func place(
        of asker: CredentialChallenge.Asker, for url: String
    ) throws(RequestError) -> (host: String, port: Int)? {
        if asker == .proxy {
            return try itinerary.proxy.route(for: url).map { ($0.host, Int($0.port)) }
        }
        return (try? URLParts(url)).map { ($0.host, Int($0.port)) }
    }

    /// Sends along what was granted. The transport answers the challenges of one side; where both ask, the proxy gets
    /// user and password at once.
    func authorize(_ transfer: inout TransferRequest) {
        if let credential { transfer.credentials = TransferCredentials(credential, .server) }
        guard let proxyCredential else { return }
        if credential == nil {
            transfer.credentials = TransferCredentials(proxyCredential, .proxy)
        } else {
            transfer.proxy?.user = proxyCredential.credential.user
            transfer.proxy?.password = proxyCredential.credential.password
        }
    }
}

extension CredentialChallenge.Asker {
    /// The field of its challenges.
    fileprivate var field: String { self == .server ? "WWW-Authenticate" : "Proxy-Authenticate" }
}

extension TransferCredentials {
    fileprivate init(_ granted: Travel.Granted, _ target: Targets) {
        self.init(
            user: granted.credential.user, password: granted.credential.password,
            schemes: Schemes(rawValue: granted.schemes.rawValue), targets: target)
    }
}
