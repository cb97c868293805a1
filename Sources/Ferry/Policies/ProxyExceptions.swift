import FerryTransport

/// Hosts that are connected to without a proxy, as `NO_PROXY` lists them.
struct ProxyExceptions: Sendable, Hashable {
    private enum Pattern: Sendable, Hashable {
        case all
        /// The name itself and all below it.
        case domain(String)
        case network(IPNetwork)
    }

    private struct Entry: Sendable, Hashable {
        let pattern: Pattern
        /// `nil` = all of them.
        let port: UInt16?
    }

    private var entries: [Entry] = []

    /// Adds an entry; `false` when it makes no sense.
    mutating func add(_ text: String) -> Bool {
        guard let entry = Self.entry(text) else { return false }
        entries.append(entry)
        return true
    }

    /// `host` as libcurl's parser knows it (`URLParts`).
    func contains(host: String, port: UInt16) -> Bool {
        if entries.isEmpty { return false }
        let address = IPNetwork(address: host)
        let name = host.last == "." ? host.dropLast() : Substring(host)
        return entries.contains { entry in
            if let own = entry.port, own != port { return false }
            switch entry.pattern {
            case .all: return true
            case .network(let network): return address.map(network.contains) ?? false
            case .domain(let domain):
                guard address == nil, name.hasSuffix(domain) else { return false }
                let before = name.dropLast(domain.count)
                return before.isEmpty || before.last == "."
            }
        }
    }

    private static func entry(_ text: String) -> Entry? {
        var name = text.drop(while: isBlank)
        while let last = name.last, isBlank(last) { name = name.dropLast() }
        if name.contains("/") { return IPNetwork(block: name).map { Entry(pattern: .network($0), port: nil) } }
        if let address = IPNetwork(address: name) { return Entry(pattern: .network(address), port: nil) }
        var port: UInt16?
        if let colon = name.lastIndex(of: ":") {
            guard let number = decimal(name[name.index(after: colon)...]) else { return nil }
            port = number
            name = name[..<colon]
        }
        if name == "*" { return Entry(pattern: .all, port: port) }
        if name.hasPrefix("*.") { name = name.dropFirst(2) } else if name.hasPrefix(".") { name = name.dropFirst() }
        if let address = IPNetwork(address: name) { return Entry(pattern: .network(address), port: port) }
        // One parser decides what a name is, here too.
        guard !name.isEmpty, !name.contains(where: { "/?#@\\:*[]".contains($0) }),
            let parts = try? URLParts("http://\(name)/")
        else { return nil }
        if let address = IPNetwork(address: parts.host) { return Entry(pattern: .network(address), port: port) }
        let host = parts.host.last == "." ? String(parts.host.dropLast()) : parts.host
        return host.isEmpty ? nil : Entry(pattern: .domain(host), port: port)
    }

    private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }

    private static func decimal(_ text: Substring) -> UInt16? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let number = UInt16(text), number > 0
        else { return nil }
        return number
    }
}
