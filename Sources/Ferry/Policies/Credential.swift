/// A user and a password, for a server or a proxy that asks for them. Neither shows in a text made of it.
public struct Credential: Sendable, Hashable {
    /// The user, with a domain before a backslash where the scheme has one (`OFFICE\kim`).
    public let user: String
    /// The password.
    public let password: String

    /// Makes a credential. Neither part may hold a control character (below U+0020, or U+007F), whatever the scheme:
    /// what is to be sent with such a one fails with `invalidRequest`, and nothing is sent.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// Whether it can be handed to libcurl: a NUL would end it there, and Digest sends line breaks as they are.
    var isUsable: Bool { ![user, password].contains { $0.utf8.contains { $0 < 0x20 || $0 == 0x7F } } }
}

extension Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `Credential(***)`
    public var description: String { "Credential(***)" }

    /// Likewise.
    public var debugDescription: String { description }

    /// Nothing, so that `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Answers the challenges of servers and proxies (RFC 9110, 11): 401 and 407.
///
/// It is asked in a task of the run, once for the server and once for the proxy: a credential that is not accepted is
/// not asked for again, and the answer is delivered. A server of another origin behind a redirect, and another proxy on
/// the way there, get none of what was given before; for them it is asked anew.
public protocol CredentialProvider: Sendable {
    /// The credential to try, or `nil` to let the run go on with the answer as it is. What is thrown fails the run: a
    /// `RequestError` as it is, anything else as `applicationError`.
    func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential?
}

/// A server or a proxy asks who one is (401 or 407): what a provider of credentials decides on.
public struct CredentialChallenge: Sendable, Hashable {
    /// Who asks.
    public enum Challenger: String, Sendable, Hashable {
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
    public let challenger: Challenger
    /// The host that asks, as libcurl connected to it.
    public let host: String
    /// Its port.
    public let port: Int
    /// What it offers, in its order.
    public let offers: [Offer]

    init(challenger: Challenger, host: String, port: Int, fields: [String]) {
        self.challenger = challenger
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

/// Ways to prove who one is (RFC 9110, 11.1) that libcurl speaks, as far as it was built for them.
public struct CredentialSchemes: OptionSet, Sendable, Hashable, CustomStringConvertible {
    /// One bit a scheme.
    public let rawValue: UInt8

    /// Makes a set of bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// User and password as they are (RFC 7617): only over TLS are they a secret.
    public static let basic = CredentialSchemes(rawValue: 1 << 0)
    /// A digest of them (RFC 7616).
    public static let digest = CredentialSchemes(rawValue: 1 << 1)
    /// Microsoft's, bound to a connection.
    public static let ntlm = CredentialSchemes(rawValue: 1 << 2)
    /// Kerberos, or NTLM within it (RFC 4559), bound to a connection.
    public static let negotiate = CredentialSchemes(rawValue: 1 << 3)

    /// All four.
    public static let all: CredentialSchemes = [.basic, .digest, .ntlm, .negotiate]

    /// The scheme of that name, without regard to case; empty for others.
    init(name: String) {
        self = Self.names.first { equalNames($0.name, name) }?.scheme ?? []
    }

    /// `Basic, Digest`
    public var description: String {
        Self.names.filter { contains($0.scheme) }.map(\.name).joined(separator: ", ")
    }

    private static let names: [(scheme: CredentialSchemes, name: String)] = [
        (.basic, "Basic"), (.digest, "Digest"), (.ntlm, "NTLM"), (.negotiate, "Negotiate"),
    ]
}

/// Reads `WWW-Authenticate` and `Proxy-Authenticate` (RFC 9110, 11.6.1 and 11.7.1). A comma parts challenges, and the
/// parameters of one as well: which it is, is told by what follows it.
struct ChallengeParser {
    /// Challenges that are read at most; nobody means more.
    static let most = 32

    private let bytes: [UInt8]
    private var index = 0

    private init(_ field: String) { bytes = Array(field.utf8) }

    /// The challenges of one field. What cannot be read ends the reading; what stood before it counts.
    static func offers(in field: String) -> [CredentialChallenge.Offer] {
        var parser = ChallengeParser(field)
        return parser.read()
    }

    private mutating func read() -> [CredentialChallenge.Offer] {
        var offers: [CredentialChallenge.Offer] = []
        skipCommas()
        while !isAtEnd, offers.count < Self.most {
            guard let scheme = token(), isAtEnd || at(0x20) || at(0x09) || at(0x2C) else { break }
            skipBlanks()
            var token68: String?
            var parameters: [String: String] = [:]
            if let found = self.token68() {
                token68 = found
                skipBlanks()
            } else {
                guard readParameters(into: &parameters) else { break }
            }
            offers.append(CredentialChallenge.Offer(scheme: scheme, token: token68, parameters: parameters))
            guard isAtEnd || at(0x2C) else { break }
            skipCommas()
        }
        return offers
    }

    /// Stops at the end, or where the next challenge begins. `false`: it makes no sense.
    private mutating func readParameters(into parameters: inout [String: String]) -> Bool {
        var isFirst = true
        while !isAtEnd {
            let start = index
            if !isFirst || at(0x2C) {
                guard at(0x2C) else { return false }
                skipCommas()
                if isAtEnd { return true }
            }
            let name = token()
            skipBlanks()
            guard let name, at(0x3D) else {
                // No parameter: the next scheme, unless it stands where no comma was.
                index = start
                return !isFirst || at(0x2C)
            }
            index += 1
            skipBlanks()
            guard let value = at(0x22) ? quotedString() : token() else { return false }
            skipBlanks()
            let key = name.lowercased()
            if parameters[key] == nil { parameters[key] = value }
            isFirst = false
        }
        return true
    }

    private var isAtEnd: Bool { index == bytes.count }

    private func at(_ byte: UInt8) -> Bool { index < bytes.count && bytes[index] == byte }

    private mutating func skipBlanks() { while at(0x20) || at(0x09) { index += 1 } }

    private mutating func skipCommas() { while at(0x20) || at(0x09) || at(0x2C) { index += 1 } }

    private mutating func token() -> String? {
        let start = index
        while index < bytes.count, ByteSet.token.contains(bytes[index]) { index += 1 }
        return index == start ? nil : String(decoding: bytes[start..<index], as: UTF8.self)
    }

    /// Only when it is all that stands behind the scheme; `realm=` alone could be either, and is taken for this.
    private mutating func token68() -> String? {
        var end = index
        while end < bytes.count, Self.token68Bytes.contains(bytes[end]) { end += 1 }
        guard end > index else { return nil }
        while end < bytes.count, bytes[end] == 0x3D { end += 1 }
        var after = end
        while after < bytes.count, bytes[after] == 0x20 || bytes[after] == 0x09 { after += 1 }
        guard after == bytes.count || bytes[after] == 0x2C else { return nil }
        defer { index = end }
        return String(decoding: bytes[index..<end], as: UTF8.self)
    }

    private mutating func quotedString() -> String? {
        var value: [UInt8] = []
        index += 1
        while index < bytes.count {
            var byte = bytes[index]
            index += 1
            if byte == 0x22 { return String(decoding: value, as: UTF8.self) }
            if byte == 0x5C {
                guard index < bytes.count else { return nil }
                byte = bytes[index]
                index += 1
            }
            if isControl(byte) && byte != 0x09 { return nil }
            value.append(byte)
        }
        return nil
    }

    /// RFC 9110, 11.2.
    private static let token68Bytes = ByteSet(
        "-._~+/0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}
