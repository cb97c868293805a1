import FerryTransport

extension NetworkConfiguration {
    /// ``transport``, with ``hostOverrides`` read and what makes no sense refused.
    func checkedTransport() throws(TransferFailure) -> TransportConfiguration {
        var made = transport
        if let unixSocket, !(1...107).contains(unixSocket.utf8.count) || unixSocket.utf8.contains(0) {
            throw unusable("unixSocket: a path has 1 to 107 bytes, not \(unixSocket.utf8.count)")
        }
        for (key, addresses) in hostOverrides {
            made.hostOverrides.append(try hostOverride(key, addresses))
        }
        return made
    }

    private func hostOverride(
        _ key: String, _ addresses: [String]
    ) throws(TransferFailure) -> TransportConfiguration.HostOverride {
        // libcurl cannot be told of one.
        guard key.first != "[" else { throw unusable("hostOverrides: \"\(key)\" is an address of IPv6") }
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

/// Any other would match no URL, and go unnoticed: a name stands in punycode there.
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
