import FerryTransport
import Glibc

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
        // Two different tags identify nothing, nor does one whose bytes are no text: it could not be sent back.
        let tags = Set(headers.values(of: "ETag")).filter { !$0.isEmpty && !$0.contains("\u{FFFD}") }
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
        for (index, validators) in ((selected.map { [$0] } ?? []) + all).enumerated() {
            guard let tag = validators.tag, !tags.contains(tag) else { continue }
            // A weak tag may be that of several variants, such as those in other languages.
            if tag.isWeak && !(index == 0 && selected != nil) { continue }
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
    /// newest to oldest. `selected` is the one that the request was made for. `chosen` is the one that serves requests
    /// like this, also if the request has conditions of its own.
    static func freshened(
        by response: Validators, selected: Int?, chosen: Int?, _ stored: [Validators]
    ) -> [Int] {
        if let tag = response.tag {
            if !tag.isWeak {
                let same = stored.indices.filter { stored[$0].tag.map(tag.stronglyMatches) ?? false }
                if !same.isEmpty { return same }
            }
            // Only a strong tag confirms responses to other requests.
            if let chosen, let own = stored[chosen].tag, tag.weaklyMatches(own) { return [chosen] }
            return []
        }
        if let date = response.lastModified {
            // Responses to other requests may have the same date, such as that of a deployment.
            guard let own = selected ?? chosen, stored[own].lastModified == date else { return [] }
            return [own]
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

/// A 304 that repeats the fields of the stored response without any change. A server that is asked often says the same
/// for a second, byte for byte: then its fields need not be compared again.
final class Confirmation: Sendable {
    private let head: [UInt8]
    let date: HTTPDate

    /// The largest head that is kept, in bytes.
    private static let most = 1024

    /// `nil` if the response changes something, or should not be kept: with a `Set-Cookie` it belongs to one user, and
    /// usually differs each time.
    init?(_ renewal: Renewal, by response: TransferResult) {
        guard renewal.changes.isEmpty, response.head.count <= Self.most, Headers(response)["Set-Cookie"] == nil else {
            return nil
        }
        (head, date) = (Array(response.head), renewal.date)
    }

    /// What the response changes, if it is the same.
    func renewal(by response: TransferResult) -> Renewal? {
        let other = response.head
        guard !head.isEmpty, other.count == head.count, let start = other.baseAddress,
            head.withUnsafeBytes({ $0.baseAddress.map { memcmp($0, start, other.count) == 0 } ?? false })
        else { return nil }
        return Renewal(date: date)
    }
}

/// The changes of a 304 that updates only dates of the stored response, as nearly every 304 does (RFC 9111, 3.2). Then
/// the stored fields need not be built again one by one: the dates are overwritten, and the body is shared.
struct Renewal {
    /// The value of the 304's `Date`.
    let date: HTTPDate
    /// The fields of the stored response that get another value. Their bytes belong to the 304.
    let changes: [TransferResult.FieldChange]

    /// The matched fields of a response are the bits of one word.
    private static let mostFields = 64

    /// Whether a stored response can be updated in this way: no name occurs twice, its `Date` has the usual form, and
    /// all fields may be reused.
    static func applies(to stored: TransferResult, _ directives: ResponseDirectives) -> Bool {
        guard stored.headerCount <= mostFields, directives.noCacheFields.isEmpty, directives.privateFields.isEmpty
        else { return false }
        var hasDate = false
        for index in 0..<stored.headerCount {
            let (name, value) = stored.field(index)
            for other in 0..<index where equalNames(stored.field(other).name, name) { return false }
            if isName(name, "date") { hasDate = HTTPDate(usual: value) != nil }
        }
        return hasDate
    }

    /// A 304 without changes.
    fileprivate init(date: HTTPDate) { (self.date, changes) = (date, []) }

    /// `nil` if the 304 changes more than dates, or if this simple comparison cannot tell. Then ``ValidationRules``
    /// decide what it changes.
    init?(of stored: TransferResult, by response: TransferResult) {
        var date: HTTPDate?
        var changes: [TransferResult.FieldChange] = []
        var found: UInt64 = 0
        var place = 0
        for index in 0..<response.headerCount {
            let (name, value) = response.field(index)
            switch Self.use(of: name, value) {
            case .none: continue
            case .unknown: return nil
            case .date:
                guard date == nil, let read = HTTPDate(usual: value) else { return nil }
                date = read
            case .expires, .other: break
            }
            guard let match = Self.place(of: name, in: stored, from: place), found & (1 << UInt64(match)) == 0
            else { return nil }
            found |= 1 << UInt64(match)
            place = match + 1
            if Self.isSame(stored.field(match).value, value) { continue }
            // Only a date may replace another date of the same length.
            guard Self.use(of: name, value) != .other, value.count == HTTPDate.usualCount,
                stored.field(match).value.count == value.count
            else { return nil }
            changes.append(TransferResult.FieldChange(index: match, value: value))
        }
        guard let date else { return nil }
        (self.date, self.changes) = (date, changes)
    }

    /// `none`: the field does not update the stored response. `unknown`: this comparison does not handle it.
    private enum Use { case none, date, expires, other, unknown }

    /// What a field of a 304 does to the stored response.
    private static func use(of name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Use {
        switch name.count {
        case 2 where isName(name, "te"): .none
        // The age of the stored response is computed from its age on arrival.
        case 3 where isName(name, "age"): .unknown
        case 4 where isName(name, "date"): .date
        case 7 where isName(name, "expires"): .expires
        case 7 where isName(name, "trailer") || isName(name, "upgrade"): .none
        case 10 where isName(name, "connection"):
            // It may name other fields.
            isName(value, "keep-alive") || isName(value, "close") ? .none : .unknown
        case 10 where isName(name, "keep-alive") || isName(name, "set-cookie"): .none
        case 13 where isName(name, "content-range"), 14 where isName(name, "content-length"): .none
        case 16 where isName(name, "content-encoding"): .none
        case 17 where isName(name, "transfer-encoding"): .none
        case 11 where isName(name, "set-cookie2"), 16 where isName(name, "proxy-connection"): .unknown
        default: .other
        }
    }

    /// The index of the stored field with this name. The search begins at `start`, because both responses usually have
    /// the same order of fields.
    private static func place(of name: UnsafeRawBufferPointer, in stored: TransferResult, from start: Int) -> Int? {
        let count = stored.headerCount
        for step in 0..<count {
            let index = start + step < count ? start + step : start + step - count
            if equalNames(stored.field(index).name, name) { return index }
        }
        return nil
    }

    private static func isSame(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        guard left.count == right.count else { return false }
        guard let start = left.baseAddress, let other = right.baseAddress else { return true }
        return memcmp(start, other, left.count) == 0
    }

    /// Compares a name, in any case, with a word in lower case.
    private static func isName(_ text: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
        equalNames(text, UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }
}

extension StoredVariant {
    /// The same variant updated by a validation response (RFC 9111, 3.2).
    func updated(by fields: [Headers.Field], _ times: Times, isShared: Bool) -> StoredVariant? {
        var merged = ValidationRules.updated(headers, by: fields)
        let directives = ResponseDirectives(merged)
        if !directives.noCacheFields.isEmpty || !directives.privateFields.isEmpty {
            // A field that must not be reused any more is removed (RFC 9111, 5.2.2.4).
            merged = Headers(StoringRules.storedFields(merged, directives, isShared: isShared))
        }
        guard
            let made = StoredVariant.result(
                status: result.status, httpVersion: result.httpVersion, merged, body: result.body)
        else { return nil }
        var names = varying
        if fields.contains(where: { equalNames($0.name, "Vary") }) {
            names = (VaryRules.names(merged) ?? ["*"]).filter { $0 != "accept-encoding" }
            if varying.contains("accept-encoding") { names.append("accept-encoding") }
        }
        return StoredVariant(
            made, times, isHead: isHead, isDecoded: isDecoded, varying: names,
            variance: variance, isShared: isShared)
    }
}

extension StoredVariant {
    /// The same variant for requests with other values of the fields in its `Vary`; `nil` if it already serves them.
    func answering(_ variance: ([String]) -> CacheDigest, isShared: Bool) -> StoredVariant? {
        if varying.isEmpty || variance(varying) == self.variance { return nil }
        return StoredVariant(
            result, times, isHead: isHead, isDecoded: isDecoded, varying: varying, variance: variance(varying),
            isShared: isShared)
    }
}
