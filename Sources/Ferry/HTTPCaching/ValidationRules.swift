/// An entity tag as written (RFC 9110, 8.8.3).
struct EntityTag: Sendable, Hashable {
    let text: String

    /// Whether the tag has the form `W/"…"`.
    var isWeak: Bool { text.utf8.starts(with: "W/".utf8) }
    private var opaque: Substring { isWeak ? text.dropFirst(2) : text[...] }

    /// The weak comparison (RFC 9110, 8.8.3.2).
    func weaklyMatches(_ other: EntityTag) -> Bool { opaque == other.opaque }
    /// The strong comparison: neither tag may be weak.
    func stronglyMatches(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && text == other.text }

    /// The tags of an `If-None-Match` field (RFC 9110, 13.1.2). A comma between quotation marks is part of the tag.
    static func list(_ value: String) -> [EntityTag] {
        var tags: [EntityTag] = []
        var word: [UInt8] = []
        var isQuoted = false
        func end() {
            let bare = String(decoding: word, as: UTF8.self)
            if !bare.isEmpty { tags.append(EntityTag(text: bare)) }
            word = []
        }
        for byte in value.utf8 {
            if byte == 0x22 { isQuoted.toggle() }
            switch byte {
            case 0x2C where !isQuoted: end()
            case 0x20 where !isQuoted, 0x09 where !isQuoted: break
            default: word.append(byte)
            }
        }
        end()
        return tags
    }
}

/// The validators of a response (RFC 9110, 8.8).
struct Validators: Sendable, Equatable {
    var tag: EntityTag?
    /// The `Last-Modified` field as received; only the server compares it.
    var lastModified: String?

    init(_ headers: Headers) {
        // Two different tags identify nothing.
        let tags = Set(headers.values(of: "ETag")).filter { !$0.isEmpty }
        tag = tags.count == 1 ? tags.first.map { EntityTag(text: $0) } : nil
        lastModified = headers["Last-Modified"]
    }

    var isAny: Bool { tag != nil || lastModified != nil }
}

/// Decides how a stored response is validated and updated (RFC 9111, 3.2 and 4.3).
enum ValidationRules {
    /// The fields that ask the server whether stored responses are still current (RFC 9111, 4.3.1): the tags of all of
    /// them, and the date of the selected one.
    static func conditions(selected: Validators?, all: [Validators]) -> [Headers.Field] {
        var fields: [Headers.Field] = []
        var tags: [EntityTag] = []
        var count = 0
        for validators in (selected.map { [$0] } ?? []) + all {
            guard let tag = validators.tag, !tags.contains(tag) else { continue }
            // Servers refuse requests with very long fields.
            if count + tag.text.utf8.count > mostTagBytes && !tags.isEmpty { continue }
            count += tag.text.utf8.count
            tags.append(tag)
        }
        // If the selected response has no tag, the tags of the others say nothing about it.
        if let selected, selected.tag == nil { tags = [] }
        if !tags.isEmpty {
            fields.append(Headers.Field(name: "If-None-Match", value: tags.map(\.text).joined(separator: ", ")))
        }
        if let date = selected?.lastModified {
            fields.append(Headers.Field(name: "If-Modified-Since", value: date))
        }
        return fields
    }

    /// Beyond this length, the tags of responses other than the selected one are left out.
    private static let mostTagBytes = 4096

    /// The stored responses that a 304 confirms (RFC 9111, 4.3.4), as indices into `stored`, which is ordered from
    /// newest to oldest. `selected` is the one that the request was made for.
    static func freshened(by response: Validators, selected: Int?, _ stored: [Validators]) -> [Int] {
        if let tag = response.tag {
            if !tag.isWeak {
                let same = stored.indices.filter { stored[$0].tag.map(tag.stronglyMatches) ?? false }
                if !same.isEmpty { return same }
            }
            return stored.indices.first { stored[$0].tag.map(tag.weaklyMatches) ?? false }.map { [$0] } ?? []
        }
        if let date = response.lastModified {
            let same = stored.indices.filter { stored[$0].lastModified == date }
            if let selected, same.contains(selected) { return [selected] }
            if let newest = same.first, selected == nil { return [newest] }
            return []
        }
        // Without a validator it can confirm only one response.
        if let selected { return [selected] }
        return stored.count == 1 ? [0] : []
    }

    /// The fields of a stored response after a 304 or a response to HEAD has updated it (RFC 9111, 3.2). The fields
    /// that describe the stored body stay: length, coding and range.
    static func updated(_ stored: Headers, by fields: [Headers.Field]) -> Headers {
        let new = fields.filter { !describesBody.contains(lowercased($0.name)) }
        let names = Set(new.map { lowercased($0.name) })
        return Headers(stored.filter { !names.contains(lowercased($0.name)) } + new)
    }

    private static let describesBody: Set<String> = ["content-length", "content-encoding", "content-range"]

    /// Whether a response to HEAD matches the stored one (RFC 9111, 4.3.5); otherwise the stored one is out of date.
    static func isSame(_ stored: Headers, asHead head: Headers) -> Bool {
        for name in ["ETag", "Last-Modified", "Content-Length"] {
            if let new = head[name], let old = stored[name], new != old { return false }
        }
        return true
    }

    // MARK: A request with conditions of its own

    /// Fields with conditions that only the server can evaluate (RFC 9111, 4.3.2).
    static let conditionsOfServer = ["If-Match", "If-Unmodified-Since"]

    /// Whether a reusable stored response serves the conditions of a request with 304 (RFC 9111, 4.3.2; RFC 9110,
    /// 13.2.2).
    static func isNotModified(_ request: Headers, _ stored: Headers, status: Int, responseTime: Int64) -> Bool {
        guard status == 200 || status == 206 else { return false }
        if let value = request["If-None-Match"] {
            let tags = EntityTag.list(value)
            if tags.contains(EntityTag(text: "*")) { return true }
            guard let own = Validators(stored).tag else { return false }
            return tags.contains { $0.weaklyMatches(own) }
        }
        let received = HTTPDate(secondsSince1970: responseTime / Freshness.second)
        guard let text = request["If-Modified-Since"],
            let since = HTTPDate(text, now: received, ignoresCase: true)
        else { return false }
        let stamp = stored["Last-Modified"] ?? stored["Date"]
        let modified = stamp.flatMap { HTTPDate($0, now: received, ignoresCase: true) } ?? received
        return modified.secondsSince1970 <= since.secondsSince1970
    }
}
