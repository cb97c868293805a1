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
        guard let colon = key.lastIndex(of: ":"), colon > key.startIndex, !key.utf8.contains(0),
            let port = UInt16(key[key.index(after: colon)...]), port > 0
        else { throw unusable("hostOverrides: \"\(key)\" is not a host and a port") }
        // libcurl cannot be told of one.
        guard key.first != "[" else { throw unusable("hostOverrides: \"\(key)\" is an address of IPv6") }
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

private func unusable(_ message: String) -> TransferFailure {
    var failure = TransferFailure(.invalidRequest)
    failure.message = message
    return failure
}
