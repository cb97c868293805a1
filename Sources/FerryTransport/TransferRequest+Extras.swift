extension TransferRequest {
    /// The rare settings together, behind one reference; never changed, but replaced.
    final class Extras: Sendable {
        let proxy: TransferProxy?
        let credentials: TransferCredentials?
        let encodings: TransferEncodings

        init?(proxy: TransferProxy?, credentials: TransferCredentials?, encodings: TransferEncodings) {
            if proxy == nil && credentials == nil && encodings == .standard { return nil }
            self.proxy = proxy
            self.credentials = credentials
            self.encodings = encodings
        }
    }

    /// The way to the server; `nil` is the direct one.
    package var proxy: TransferProxy? {
        get { extras?.proxy }
        set { extras = Extras(proxy: newValue, credentials: credentials, encodings: acceptedEncodings) }
    }

    /// What challenges of the server are answered with, within the transfer.
    package var credentials: TransferCredentials? {
        get { extras?.credentials }
        set { extras = Extras(proxy: proxy, credentials: newValue, encodings: acceptedEncodings) }
    }

    /// The `Accept-Encoding` sent. One among the headers wins.
    package var acceptedEncodings: TransferEncodings {
        get { extras?.encodings ?? .standard }
        set { extras = Extras(proxy: proxy, credentials: credentials, encodings: newValue) }
    }
}

/// Which encodings of the body a request asks for.
package enum TransferEncodings: Sendable, Hashable {
    /// The transport's own.
    case standard
    /// None is asked for.
    case none
    /// This text.
    case these(String)
}
