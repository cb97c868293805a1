/// A server or a proxy asks who one is (401 or 407): what a provider of credentials decides on.
public struct CredentialChallenge: Sendable, Hashable {
    /// Who asks.
    public enum Asker: String, Sendable, Hashable {
        /// The server, by 401 and `WWW-Authenticate`.
        case server
        /// The proxy, by 407 and `Proxy-Authenticate`.
        case proxy
    }

    /// One of the ways that are offered.
    public struct Offer: Sendable, Hashable {
        /// The name of the scheme, as it came, like `Basic`; case has no meaning in it.
        public let scheme: String
        /// The bare value behind the scheme, as Negotiate has it.
        public let token: String?
        /// The parameters behind the scheme, by names in lower case; of one that comes twice the first.
        public let parameters: [String: String]

        /// What is protected, in the server's words (RFC 9110, 11.5).
        public var realm: String? { parameters["realm"] }
    }

    /// Who asks.
    public let asker: Asker
    /// The host that asks, as libcurl connected to it.
    public let host: String
    /// Its port.
    public let port: Int
    /// What it offers, in its order.
    public let offers: [Offer]

    init(asker: Asker, host: String, port: Int, fields: [String]) {
        self.asker = asker
        self.host = host
        self.port = port
        offers = Array(fields.lazy.flatMap { ChallengeParser.offers(in: $0) }.prefix(ChallengeParser.most))
    }

    /// What is offered that Ferry can answer by itself.
    public var schemes: CredentialSchemes {
        offers.reduce(into: []) { $0.formUnion(CredentialSchemes(name: $1.scheme)) }
    }

    /// What is protected, in the words of the first offer that names it.
    public var realm: String? { offers.lazy.compactMap(\.realm).first }

    /// The first offer of that scheme, without regard to case.
    public func offer(of scheme: String) -> Offer? { offers.first { equalNames($0.scheme, scheme) } }
}
