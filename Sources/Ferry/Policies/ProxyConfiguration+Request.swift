import FerryTransport

extension ProxyConfiguration {
    /// The proxy for a whole URL; `nil` for none.
    func route(for url: String) throws(RequestError) -> ProxyRoute? {
        let parts: URLParts
        do throws(TransferFailure) {
            parts = try URLParts(url)
        } catch {
            throw RequestError(error, url: url)
        }
        do throws(ProxyConfigurationFault) {
            return try route(isSecure: parts.isSecure, host: parts.host, port: parts.port)
        } catch {
            throw RequestError(preparing: .proxy(.configuration), message: error.description, url: url)
        }
    }
}
