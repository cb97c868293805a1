/// Which addresses may be connected to. It is checked on the address that a name was resolved to, just before the
/// connection is made, for redirects too: a name that points inwards, or an address in disguise (`0x7f000001`), does
/// not get past it. What it forbids is `addressForbidden`, before any byte is sent.
///
/// Behind a proxy that looks names up (HTTP, and SOCKS with names resolved there) the policy holds for what stands in
/// the URL only: an address that is not public and `localhost` are refused, but what a name leads to the proxy alone
/// knows, and is the proxy's to forbid. With names looked up here (`resolvesNames: .local`) it holds as it does without
/// a proxy. The proxy's own address is exempt.
public struct AddressPolicy: Sendable, Hashable, CustomStringConvertible {
    private enum Kind: String, Sendable { case any, publicOnly }

    private let kind: Kind

    /// All of them. The default.
    public static var any: AddressPolicy { AddressPolicy(kind: .any) }

    /// Only addresses of the public internet: no loopback, private, link-local, shared, multicast, reserved or
    /// unspecified ones, of IPv4 and IPv6, mapped and translated forms included. For URLs that come from outside.
    public static var publicOnly: AddressPolicy { AddressPolicy(kind: .publicOnly) }

    var isPublicOnly: Bool { kind == .publicOnly }

    /// Its name.
    public var description: String { kind.rawValue }
}
