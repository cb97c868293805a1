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

/// A URL as it is typed.
enum CommandURL {
    /// With `http://` in front where it has no scheme, as in `localhost:8080/x`.
    static func complete(_ url: String) throws(UsageError) -> String {
        if url.isEmpty { throw UsageError("the URL is empty") }
        if url.hasPrefix("//") { return "http:" + url }
        return hasScheme(url) ? url : "http://" + url
    }

    /// The last part of its path; `nil` where that is empty or would be a folder.
    static func fileName(of url: String) -> String? {
        var path = url.prefix { $0 != "?" && $0 != "#" }
        if hasScheme(url), let colon = path.firstIndex(of: ":") { path = path[colon...].dropFirst(3) }
        guard let slash = path.lastIndex(of: "/") else { return nil }
        let name = path[path.index(after: slash)...]
        return name.isEmpty || name == "." || name == ".." ? nil : String(name)
    }

    /// Whether it begins with `http://` or `https://`, or with what names the socket of one.
    static func hasWebScheme(_ url: String) -> Bool {
        let start = url.prefix(13).lowercased()
        return ["http://", "https://", "http+unix://", "https+unix://"].contains(where: start.hasPrefix)
    }

    private static func hasScheme(_ url: String) -> Bool {
        let scheme = url.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }
        return !scheme.isEmpty && url.dropFirst(scheme.count).hasPrefix("://")
    }
}
