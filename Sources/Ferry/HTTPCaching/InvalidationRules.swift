import FerryTransport

/// Which stored responses are not used any more once an unsafe request went well (RFC 9111, 4.4).
enum InvalidationRules {
    /// The URLs whose stored responses go: the target, and what `Location` and `Content-Location` name of the same
    /// origin. None after a safe method (RFC 9110, 9.2.1), and none after an error.
    static func invalidated(method: String, url: String, status: Int, _ response: Headers) -> [String] {
        guard isUnsafe(method), (200..<400).contains(status) else { return [] }
        var urls = [url]
        for name in ["Location", "Content-Location"] {
            guard let value = response[name], let other = resolve(value, against: url), !urls.contains(other),
                let origin = HostKey(url: url), HostKey(url: other) == origin
            else { continue }
            urls.append(other)
        }
        return urls
    }

    /// Whether a method may change something at the server. One that is not known here may.
    static func isUnsafe(_ method: String) -> Bool {
        switch method {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY": false
        default: true
        }
    }

    /// The absolute URL that a reference in a response names, without its fragment; `nil` when it is none.
    static func resolve(_ reference: String, against url: String) -> String? {
        guard let source = try? URLParts(url), let target = try? source.resolving(Array(reference.utf8)) else {
            return nil
        }
        let text = target.text
        return text.firstIndex(of: "#").map { String(text[..<$0]) } ?? text
    }
}
