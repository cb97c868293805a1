/// A base, parsed once and shared by all requests: paths are joined to `prefix`.
final class BaseURL: Sendable {
    /// `http://host:port/v1`, without a slash at the end.
    let prefix: String
    /// The base alone: what an empty path stands for.
    let whole: String
    /// Goes before the query of every path.
    let query: String
    let credentials: Authorization?

    convenience init(_ text: String) throws(URLFault) {
        var text = text
        let outcome = text.withUTF8 { bytes -> Result<URLJoiner.Absolute?, URLFault> in
            guard let scheme = URLJoiner.schemeLength(bytes) else {
                return .failure(
                    bytes.contains { $0 <= 0x20 || $0 == 0x7F } || bytes.isEmpty ? .invalid : .unsupportedScheme)
            }
            return Result { () throws(URLFault) in
                let found = try URLJoiner.Absolute(bytes, scheme: scheme)
                return found.isPlain ? nil : found
            }
        }
        guard let found = try outcome.get() else {
            // Plain: a path, perhaps a query, nothing to be escaped.
            let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
            self.init(prefix: String(parts[0]), query: parts.count > 1 ? String(parts[1]) : "", credentials: nil)
            return
        }
        self.init(
            prefix: String(decoding: found.origin + found.path, as: UTF8.self),
            query: String(decoding: found.query ?? [], as: UTF8.self), credentials: found.credentials)
    }

    private init(prefix: String, query: String, credentials: Authorization?) {
        var bare = Substring(prefix)
        while bare.utf8.last == 0x2F { bare = bare.dropLast() }
        self.prefix = String(bare)
        // An origin alone has the path "/"; a path keeps the slash it ends in, or has none.
        let slashes = bare.utf8.filter { $0 == 0x2F }.count
        whole = slashes == 2 ? bare + "/" : prefix
        self.query = query
        self.credentials = credentials
    }
}
