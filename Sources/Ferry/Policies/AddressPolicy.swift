import FerryTransport
import Glibc

/// The addresses that an agent or a request may connect to. Ferry checks the resolved address right before the
/// connection is made, also after redirects. So a name that resolves to an internal address, or an address in another
/// notation (`0x7f000001`), does not pass. A forbidden address is `addressForbidden`, before any byte is sent.
///
/// Behind a proxy that resolves names itself (HTTP, and SOCKS with remote resolution), the policy applies only to the
/// text of the URL: it refuses non-public addresses and `localhost`, but only the proxy knows what a name resolves to,
/// so the proxy must refuse it. With local resolution (`resolvesNames: .local`) the policy applies as without a proxy.
/// The address of the proxy itself is exempt.
public struct AddressPolicy: Sendable, Hashable, CustomStringConvertible {
    let isPublicOnly: Bool

    /// All addresses. This is the default.
    public static var any: AddressPolicy { AddressPolicy(isPublicOnly: false) }

    /// Only addresses of the public internet. Loopback, private, link-local, shared, multicast, reserved and
    /// unspecified addresses of IPv4 and IPv6 are forbidden, including their mapped and translated forms. Use it for
    /// URLs from users.
    public static var publicOnly: AddressPolicy { AddressPolicy(isPublicOnly: true) }

    /// The name.
    public var description: String { isPublicOnly ? "publicOnly" : "any" }
}

/// Addresses with a common prefix (RFC 4632); a single address is a network with a full-length prefix. IPv4 is stored
/// as IPv6 (`::ffff:10.0.0.1`), so that both spellings of an address are equal.
struct IPNetwork: Sendable, Hashable {
    private let high: UInt64
    private let low: UInt64
    private let bits: Int

    /// An address in dotted decimal, or IPv6 with or without brackets; a zone is ignored.
    init?(address text: some StringProtocol) {
        guard let (high, low, _) = Self.parse(text) else { return nil }
        (self.high, self.low, bits) = (high, low, 128)
    }

    /// `10.0.0.0/8`, `fd00::/8` or `[fd00::]/8`. Bits beyond the prefix are ignored.
    init?(block text: some StringProtocol) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let (high, low, isV4) = Self.parse(parts[0]), !parts[1].isEmpty,
            parts[1].utf8.count <= 3,
            parts[1].utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let length = Int(parts[1]),
            length <= (isV4 ? 32 : 128)
        else { return nil }
        let bits = isV4 ? length + 96 : length
        (self.high, self.low, self.bits) = (high & Self.mask(bits), low & Self.mask(bits - 64), bits)
    }

    func contains(_ address: IPNetwork) -> Bool {
        address.high & Self.mask(bits) == high && address.low & Self.mask(bits - 64) == low
    }

    /// The first `bits` of 64.
    private static func mask(_ bits: Int) -> UInt64 { bits <= 0 ? 0 : bits >= 64 ? .max : ~(.max >> UInt64(bits)) }

    private static func parse(_ text: some StringProtocol) -> (high: UInt64, low: UInt64, isV4: Bool)? {
        var text = Substring(text)
        if text.utf8.contains(0) { return nil }
        if text.first == "[" {
            guard text.last == "]" else { return nil }
            text = text.dropFirst().dropLast()
        }
        var v4 = in_addr()
        if inet_pton(AF_INET, String(text), &v4) == 1 {
            return (0, 0xFFFF << 32 | UInt64(UInt32(bigEndian: v4.s_addr)), true)
        }
        if let zone = text.firstIndex(of: "%") { text = text[..<zone] }
        var v6 = in6_addr()
        guard inet_pton(AF_INET6, String(text), &v6) == 1 else { return nil }
        return withUnsafeBytes(of: v6) { bytes in
            (
                UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)), false
            )
        }
    }
}

extension NetworkConfiguration {
    /// ``transport`` with ``hostOverrides`` parsed; throws if they are invalid.
    func checkedTransport() throws(TransferFailure) -> TransportConfiguration {
        var made = transport
        if let unixSocket, !(1...107).contains(unixSocket.utf8.count) || unixSocket.utf8.contains(0) {
            throw unusable("unixSocket: a path must have 1 to 107 bytes, not \(unixSocket.utf8.count)")
        }
        for (key, addresses) in hostOverrides {
            made.hostOverrides.append(try hostOverride(key, addresses))
        }
        return made
    }

    private func hostOverride(
        _ key: String, _ addresses: [String]
    ) throws(TransferFailure) -> TransportConfiguration.HostOverride {
        // libcurl does not support one.
        guard key.first != "[" else {
            throw unusable("hostOverrides: \"\(key)\" is an IPv6 address, which is not supported")
        }
        guard let colon = key.lastIndex(of: ":"), isName(key[..<colon]),
            let port = port(key[key.index(after: colon)...])
        else { throw unusable("hostOverrides: \"\(key)\" is not a host and a port") }
        guard (1...16).contains(addresses.count) else {
            throw unusable("hostOverrides: \"\(key)\" has \(addresses.count) addresses, not 1 to 16")
        }
        var literals: [String] = []
        for address in addresses {
            guard IPNetwork(address: address) != nil, !address.utf8.contains(UInt8(ascii: "%")) else {
                throw unusable("hostOverrides: \"\(address)\", for \"\(key)\", is not an address")
            }
            literals.append(address.contains(":") && address.first != "[" ? "[\(address)]" : address)
        }
        return .init(name: String(key[..<colon]), port: port, addresses: literals)
    }
}

/// Any other key would match no URL and have no effect without notice, because a name is in punycode there.
private func isName(_ text: Substring) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/\\?#@:%[]\"<>".utf8.contains($0) }
}

private func port(_ text: Substring) -> UInt16? {
    guard text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let port = UInt16(text), port > 0 else { return nil }
    return port
}

private func unusable(_ message: String) -> TransferFailure {
    var failure = TransferFailure(.invalidRequest)
    failure.message = message
    return failure
}
