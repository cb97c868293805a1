/// By what a server tells whether a file is still the one of which a part is here. Only a strong validator will do: a
/// weak one lets bytes differ (RFC 9110, 13.1.5).
enum ResumeValidator: Sendable, Hashable {
    case entityTag(String)
    case lastModified(String)

    /// What an answer has of it. A date counts where there is no tag at all, and only when the file was a minute old at
    /// the time of the answer: what was changed twice within a second has one date (RFC 9110, 8.8.2.2).
    init?(_ headers: Headers) {
        let tags = headers.values(of: "ETag")
        if !tags.isEmpty {
            guard tags.count == 1, Self.isStrong(tags[0]) else { return nil }
            self = .entityTag(tags[0])
            return
        }
        let now = HTTPDate(secondsSince1970: 0)
        guard let text = headers["Last-Modified"], let modified = HTTPDate(text, now: now),
            let answered = headers["Date"].flatMap({ HTTPDate($0, now: now) }),
            answered.secondsSince1970 - modified.secondsSince1970 >= 60
        else { return nil }
        self = .lastModified(text)
    }

    /// The value of `If-Range`.
    var field: String {
        switch self {
        case .entityTag(let text), .lastModified(let text): text
        }
    }

    /// Whether it is one that an answer can have brought in; what stands on a disk may be anything.
    var isSound: Bool {
        switch self {
        case .entityTag(let tag): Self.isStrong(tag)
        case .lastModified(let date):
            date.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
                && HTTPDate(date, now: HTTPDate(secondsSince1970: 0)) != nil
        }
    }

    /// Whether an answer says that it is of another version. One that says nothing does not.
    func isContradicted(by headers: Headers) -> Bool {
        switch self {
        case .entityTag(let tag): headers.values(of: "ETag").contains { $0 != tag }
        case .lastModified(let date): headers.values(of: "Last-Modified").contains { $0 != date }
        }
    }

    private static func isStrong(_ tag: String) -> Bool {
        let bytes = Array(tag.utf8)
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"") else {
            return false
        }
        return bytes.dropFirst().dropLast().allSatisfy { $0 == 0x21 || ($0 >= 0x23 && $0 != 0x7F) }
    }
}
