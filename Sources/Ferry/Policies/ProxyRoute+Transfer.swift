import FerryTransport

extension ProxyRoute {
    /// In the form the transport takes.
    var transfer: TransferProxy {
        let kind: TransferProxy.Kind =
            switch kind {
            case .http: .http
            case .socks5: .socks5
            case .socks5h: .socks5h
            }
        return TransferProxy(kind: kind, address: address, user: credential?.user, password: credential?.password)
    }
}
