import FerryTransport

/// User and password for a server or a proxy that requires them. No textual form of the value shows either.
public struct Credential: Sendable, Hashable {
    /// The user, with a domain before a backslash if the scheme has one (`OFFICE\kim`).
    public let user: String
    /// The password.
    public let password: String

    /// Creates a credential. Neither part may contain a control character (below U+0020, or U+007F), whatever the
    /// scheme: otherwise a request with the credential fails with `invalidRequest`, and nothing is sent.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// Whether it can be passed to libcurl: a NUL would end it there, and Digest sends line breaks unchanged.
    var isUsable: Bool { ![user, password].contains { $0.utf8.contains { $0 < 0x20 || $0 == 0x7F } } }
}

extension Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `Credential(***)`.
    public var description: String { "Credential(***)" }

    /// `Credential(***)`.
    public var debugDescription: String { description }

    /// Empty, so that `dump` shows no secret.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Supplies credentials for challenges of servers and proxies (RFC 9110, 11): 401 and 407.
///
/// It is asked in a task of the run, once for the server and once for the proxy. If a credential is refused, it is not
/// asked again, and the response is delivered. A server of another origin after a redirect, and another proxy, never
/// get an earlier credential; the provider is asked again for them, also if another server sends the run back to one of
/// them. If a download begins again at its first URL, a target gets the credential that it was granted before; if it
/// now refuses that, the provider is asked once more. The segments of a download share what was granted, and if one of
/// them is refused with it, the provider is asked once more for all of them.
public protocol CredentialProvider: Sendable {
    /// Returns the credential to try, or `nil` to deliver the response as it is. An error fails the run: a
    /// `RequestError` unchanged, a `CancellationError` as `cancelled`, any other as `applicationError`.
    func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential?
}

/// A request for credentials by a server or a proxy (401 or 407).
public struct CredentialChallenge: Sendable, Hashable {
    /// The side that requests credentials.
    public enum Challenger: String, Sendable, Hashable {
        /// The server, with 401 and `WWW-Authenticate`.
        case server
        /// The proxy, with 407 and `Proxy-Authenticate`.
        case proxy
    }

    /// One of the schemes that are offered.
    public struct Offer: Sendable, Hashable {
        /// The name of the scheme as received, like `Basic`. Case is not significant.
        public let scheme: String
        /// The single value after the scheme, as in Negotiate.
        public let token: String?
        /// The parameters after the scheme, by lower-case name. If a name appears twice, the first value is used.
        public let parameters: [String: String]

        /// The protected area, as the server names it (RFC 9110, 11.5).
        public var realm: String? { parameters["realm"] }
    }

    /// The side that requests credentials.
    public let challenger: Challenger
    /// The host that requests them, in normalised form.
    public let host: String
    /// The port of the host.
    public let port: Int
    /// The offered schemes, in order.
    public let offers: [Offer]

    init(challenger: Challenger, host: String, port: Int, fields: [String]) {
        self.challenger = challenger
        self.host = host
        self.port = port
        offers = Array(fields.lazy.flatMap { ChallengeParser.offers(in: $0) }.prefix(ChallengeParser.most))
    }

    /// The offered schemes that Ferry supports.
    public var schemes: CredentialSchemes {
        offers.reduce(into: []) { $0.formUnion(CredentialSchemes(name: $1.scheme)) }
    }

    /// The protected area, as named by the first offer that has a realm.
    public var realm: String? { offers.lazy.compactMap(\.realm).first }

    /// The first offer of a scheme, compared without regard to case.
    public func offer(of scheme: String) -> Offer? { offers.first { equalNames($0.scheme, scheme) } }
}

/// Authentication schemes (RFC 9110, 11.1) that libcurl supports, if it was built with them.
public struct CredentialSchemes: OptionSet, Sendable, Hashable, CustomStringConvertible {
    /// One bit per scheme.
    public let rawValue: UInt8

    /// Creates a set from bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// User and password in clear text (RFC 7617): they are secret only over TLS.
    public static let basic = CredentialSchemes(rawValue: 1 << 0)
    /// A digest of user and password (RFC 7616).
    public static let digest = CredentialSchemes(rawValue: 1 << 1)
    /// NTLM, bound to a connection.
    public static let ntlm = CredentialSchemes(rawValue: 1 << 2)
    /// Negotiate: Kerberos, or NTLM within it (RFC 4559), bound to a connection.
    public static let negotiate = CredentialSchemes(rawValue: 1 << 3)

    /// All four schemes.
    public static let all: CredentialSchemes = [.basic, .digest, .ntlm, .negotiate]

    /// The scheme with this name, without regard to case; empty for any other name.
    init(name: String) {
        self = Self.names.first { equalNames($0.name, name) }?.scheme ?? []
    }

    /// The names, like `Basic, Digest`.
    public var description: String {
        Self.names.filter { contains($0.scheme) }.map(\.name).joined(separator: ", ")
    }

    private static let names: [(scheme: CredentialSchemes, name: String)] = [
        (.basic, "Basic"), (.digest, "Digest"), (.ntlm, "NTLM"), (.negotiate, "Negotiate"),
    ]
}

/// Parses `WWW-Authenticate` and `Proxy-Authenticate` (RFC 9110, 11.6.1 and 11.7.1). A comma separates both challenges
/// and the parameters of a challenge; what follows it tells which.
struct ChallengeParser {
    /// The maximum number of challenges.
    static let most = 32

    private let bytes: [UInt8]
    private var index = 0

    private init(_ field: String) { bytes = Array(field.utf8) }

    /// The challenges of one field. Parsing stops at the first error; the challenges before it are returned.
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

    /// Stops at the end, or where the next challenge begins. Returns `false` on a syntax error.
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
                // Not a parameter, so this is the next scheme, unless there was no comma before it.
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

    /// Only if it is all that follows the scheme; `realm=` alone could be either, and is taken as this.
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

    /// The characters of token68 (RFC 9110, 11.2).
    private static let token68Bytes = ByteSet(
        "-._~+/0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}
