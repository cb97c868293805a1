import FerryTransport

extension Travel {
    /// A credential, and what it may be used for.
    struct Granted: Sendable {
        var credential: Credential
        var schemes: CredentialSchemes
        /// The proxy that it is for, `host:port`; `nil` when it is for the server.
        var proxy: String?
    }

    /// A challenge (RFC 9110, 11.4): the provider is asked once for the server, and once for the proxy. Behind a
    /// redirect each may be another one.
    mutating func challenged(by result: TransferResult) async throws(RequestError) -> Next? {
        guard let provider = core.configuration.credentialProvider, let asker = Self.asker(of: result) else {
            return nil
        }
        let isAnswered = asker == .server ? credential != nil : proxyCredential != nil
        let asked = try asked()
        guard !isAnswered, asked.body?.isReplayable ?? true, let place = try place(of: asker, for: asked.url) else {
            return nil
        }
        let challenge = CredentialChallenge(
            asker: asker, host: place.host, port: place.port, fields: Headers(result).values(of: asker.field))
        // Of a tunnel that was refused nothing is left but that: libcurl finds out what is offered.
        let schemes = asker == .proxy && challenge.offers.isEmpty ? .all : challenge.schemes
        if schemes.isEmpty { return nil }
        let info = itinerary.info
        guard let found = try await ask({ try await provider.credential(for: challenge, of: info) }) else { return nil }
        guard found.isUsable else { throw .unusableCredential(url: url) }
        leave(result)
        hasUnknownCredentials = true
        switch asker {
        case .server: credential = Granted(credential: found, schemes: schemes)
        case .proxy:
            proxyCredential = Granted(credential: found, schemes: schemes, proxy: "\(place.host):\(place.port)")
        }
        leg = asked
        return .again
    }

    /// Who asks for credentials by this answer, or by this failure.
    static func asker(of result: TransferResult) -> CredentialChallenge.Asker? {
        // A 407 that is no failure is the server's own word: a proxy's never comes through.
        guard let failure = result.failure else { return result.status == 401 ? .server : nil }
        return failure.code == .proxy && failure.detail == .proxyAuthRequired ? .proxy : nil
    }

    private func place(
        of asker: CredentialChallenge.Asker, for url: String
    ) throws(RequestError) -> (host: String, port: Int)? {
        if asker == .proxy {
            return try itinerary.proxy.route(for: url).map { ($0.host, Int($0.port)) }
        }
        return (try? URLParts(url)).map { ($0.host, Int($0.port)) }
    }

    /// What the next transfer carries: without the field that a provider's credential has taken the place of. That one
    /// was not accepted, and would stand in the way, also where the request was asked anew.
    func authorized(_ leg: OutgoingRequest) -> OutgoingRequest {
        if credential == nil || itinerary.digest != nil || leg.headers["Authorization"] == nil { return leg }
        var leg = leg
        leg.headers["Authorization"] = nil
        return leg
    }

    /// Sends along what was granted, each to who asked for it.
    mutating func authorize(_ transfer: inout TransferRequest) {
        if let credential {
            transfer.credentials = TransferCredentials(
                user: credential.credential.user, password: credential.credential.password,
                schemes: .init(rawValue: credential.schemes.rawValue))
        }
        // Behind a redirect the way may be another one: that proxy may ask for itself.
        if transfer.proxy?.kind != .http || transfer.proxy?.address != proxyCredential?.proxy { proxyCredential = nil }
        guard let proxyCredential else { return }
        transfer.proxy?.user = proxyCredential.credential.user
        transfer.proxy?.password = proxyCredential.credential.password
        transfer.proxy?.schemes = .init(rawValue: proxyCredential.schemes.rawValue)
    }
}

extension CredentialChallenge.Asker {
    /// The field of its challenges.
    fileprivate var field: String { self == .server ? "WWW-Authenticate" : "Proxy-Authenticate" }
}
