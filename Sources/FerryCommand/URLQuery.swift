internal import Ferry

/// The query of a URL, which forms look like, too.
enum URLQuery {
    /// In the order given, and a name as often as it was given: both may matter to a server.
    static func encoded(_ pairs: [(name: String, value: String)]) -> String {
        pairs.map { "\(PercentEncoding.encoded($0.name))=\(PercentEncoding.encoded($0.value))" }.joined(separator: "&")
    }

    /// The URL with these in its query, if there are any.
    static func appending(_ pairs: [(name: String, value: String)], to url: String) -> String {
        pairs.isEmpty ? url : appending(encoded(pairs), to: url)
    }

    /// Before a fragment, which is not sent, nor what stands behind it; after a query that is already there.
    static func appending(_ query: String, to url: String) -> String {
        let fragment = url.firstIndex(of: "#") ?? url.endIndex
        let start = url[..<fragment]
        let separator = start.contains("?") ? (start.hasSuffix("?") || start.hasSuffix("&") ? "" : "&") : "?"
        return start + separator + query + url[fragment...]
    }
}
