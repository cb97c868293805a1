import FerryJSON
import FoundationEssentials

/// Removes secrets from texts for people.
enum Redaction {
    /// A URL without user and password, without query values and without its fragment. Values of secret parameters in
    /// its path (`;jsessionid=…`) are replaced. Control characters are escaped, so that an invalid URL cannot forge a
    /// log line.
    ///
    /// `isBroken` means that the text could not be parsed: then everything before an `@` may be a password.
    static func url(_ text: String, isBroken: Bool = false) -> String {
        let bytes = Array(text.utf8)
        let end = bytes.firstIndex(of: 0x23) ?? bytes.count
        let queryStart = bytes[..<end].firstIndex(of: 0x3F) ?? end
        var hostStart = 0
        if queryStart >= 3 {
            for index in 0..<(queryStart - 2) where bytes[index...].starts(with: [0x3A, 0x2F, 0x2F]) {
                hostStart = index + 3
                break
            }
        }
        let hostEnd =
            isBroken ? end : bytes[hostStart..<queryStart].firstIndex(where: { $0 == 0x2F || $0 == 0x5C }) ?? queryStart
        var made = Array(bytes[..<hostStart])
        var rest = hostStart
        if let at = bytes[hostStart..<hostEnd].lastIndex(of: 0x40) { rest = at + 1 }
        if rest < queryStart { made.append(contentsOf: path(bytes[rest..<queryStart])) }
        if queryStart < end { made.append(contentsOf: query(bytes[(queryStart + 1)..<end])) }
        var clean: [UInt8] = []
        clean.reserveCapacity(made.count)
        for byte in made { if isControl(byte) { clean.appendEscaped(byte) } else { clean.append(byte) } }
        return String(decoding: clean, as: UTF8.self)
    }

    /// Parameters in a path (RFC 3986, 3.3) are secret by their name.
    private static func path(_ path: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        if !path.contains(0x3B) { return path }
        var made: [UInt8] = []
        for (index, segment) in path.split(separator: 0x2F, omittingEmptySubsequences: false).enumerated() {
            if index > 0 { made.append(0x2F) }
            for (index, part) in segment.split(separator: 0x3B, omittingEmptySubsequences: false).enumerated() {
                if index > 0 { made.append(0x3B) }
                let sign = index > 0 ? part.firstIndex(of: 0x3D) : nil
                guard let sign, isSensitive(String(decoding: part[..<sign], as: UTF8.self)) else {
                    made.append(contentsOf: part)
                    continue
                }
                made.append(contentsOf: part[...sign])
                made.append(contentsOf: mark.utf8)
            }
        }
        return made[...]
    }

    /// Names are kept, values are removed. A word without a value may be a secret itself.
    private static func query(_ query: ArraySlice<UInt8>) -> [UInt8] {
        var made: [UInt8] = [0x3F]
        for (index, item) in query.split(separator: 0x26, omittingEmptySubsequences: false).enumerated() {
            if index > 0 { made.append(0x26) }
            if let sign = item.firstIndex(of: 0x3D) { made.append(contentsOf: item[...sign]) }
            if !item.isEmpty { made.append(contentsOf: "***".utf8) }
        }
        return made
    }
}

extension Redaction {
    /// The replacement for a secret.
    static let mark = "***"

    /// The fields in order, with the values of secret ones replaced.
    static func headers(_ headers: Headers, sensitive: [String] = []) -> Headers {
        Headers(
            headers.map { field in
                .init(name: field.name, value: header(field.name, field.value, sensitive: sensitive))
            })
    }

    /// A value as it may be shown. Fields like `Location` contain a URL, of which only the secrets are removed.
    static func header(_ name: String, _ value: String, sensitive: [String] = []) -> String {
        if isSensitive(name, declared: sensitive) { return mark }
        if locations.contains(where: { equalNames($0, name) }) { return url(value, isBroken: value.hasPrefix("//")) }
        // These contain more than a URL, perhaps several URLs: everything up to the last `@` is removed.
        if listsOfLocations.contains(where: { equalNames($0, name) }) { return url(value, isBroken: true) }
        return isLocation(value) ? url(value) : value
    }

    /// Whether the value of any other field is a URL, or a path with a query (`X-Original-URL`, `X-Forwarded-Uri`).
    private static func isLocation(_ value: String) -> Bool {
        let start = lowercased(String(value.prefix(8)))
        return start.hasPrefix("http://") || start.hasPrefix("https://") || start.hasPrefix("/") && value.contains("?")
    }

    /// Whether the values of fields with this name are secret: by the HTTP standards, because they were declared, or
    /// because of their name. It is better to hide one value too many.
    static func isSensitive(_ name: String, declared: [String] = []) -> Bool {
        if declared.contains(where: { equalNames($0, name) }) { return true }
        let name = String(decoding: name.utf8.map(lowercased), as: UTF8.self)
        if parts.contains(where: { name.contains($0) }) { return true }
        return name.split(whereSeparator: { $0 == "-" || $0 == "_" || $0 == "." }).contains {
            words.contains(String($0))
        }
    }

    private static let locations = ["Location", "Content-Location", "Referer", "Origin"]
    private static let listsOfLocations = ["Link", "Refresh"]

    /// Part of names like `Proxy-Authorization`, `Set-Cookie`, `X-Api-Key` and `X-Auth-Token`.
    private static let parts = [
        "auth", "cookie", "token", "secret", "key", "passw", "passphrase", "session", "credential", "signature",
        "proxy-", "assertion", "csrf", "xsrf", "bearer",
    ]
    /// Too short to look for them within other words.
    private static let words: Set<String> = ["sid", "jwt", "otp", "pin", "pwd", "pass", "sig", "cert", "saml", "nonce"]
}

/// Which header fields are secret.
enum SecretHeaders {
    /// RFC 9110, 11.6.2 and 11.7.2; RFC 6265, 4.
    private static let always = ["Authorization", "Cookie", "Proxy-Authorization"]

    /// Whether the field with this name must not be sent to other origins. `declared` are names that the application
    /// declares.
    static func contains(_ name: String, declared: [String]) -> Bool {
        always.contains { equalNames($0, name) } || declared.contains { equalNames($0, name) }
    }
}

/// Redacts secrets in recorded bodies, by the names of members: in forms, JSON, lines of JSON and events with JSON.
/// Bodies of other types stay unchanged.
package enum SecretBodies {
    private enum Kind: Equatable {
        case form, json
        /// Lines of JSON (application/x-ndjson, RFC 7464).
        case lines
        /// Server-sent events, whose data is often JSON.
        case events
        /// Parts between this boundary; `nil` if the type has none.
        case parts(boundary: String?)
        case other
    }

    /// The redacted body; `nil` if a body of this type cannot be read, so that its secrets cannot be found.
    static func masked(_ body: [UInt8], type: String, declared: [String]) -> [UInt8]? {
        if body.isEmpty { return body }
        return switch kind(of: type) {
        case .form: maskedForm(body, declared)
        case .json: maskedJSON(body, declared)
        case .lines: maskedLines(body, after: "", declared)
        case .events: maskedLines(body, after: "data:", declared)
        case .parts(let boundary): boundary.flatMap { maskedParts(body, $0, declared) }
        case .other: body
        }
    }

    /// Whether a body matches a recorded one, in which a masked value matches any value.
    package static func matches(_ recorded: [UInt8], _ body: [UInt8], type: String) -> Bool {
        if recorded == body { return true }
        switch kind(of: type) {
        case .form:
            let (left, right) = (parts(of: recorded), parts(of: body))
            return left.count == right.count && zip(left, right).allSatisfy(matchesPart)
        case .json:
            guard let left = try? JSON(parsing: recorded), let right = try? JSON(parsing: body) else { return false }
            return hasMark(left, 0) && matches(left, right, 0)
        case .lines, .events, .parts: return matchesAround(recorded, body)
        case .other: return false
        }
    }

    /// Whether a text agrees with a recorded one outside of the marks in that, each of which stands for any text.
    package static func matchesAround(_ recorded: some Collection<UInt8>, _ text: some Collection<UInt8>) -> Bool {
        let mark = Array(Redaction.mark.utf8)
        var (left, right) = (Array(recorded)[...], Array(text)[...])
        guard let first = left.firstRange(of: mark) else { return left == right }
        guard right.starts(with: left[..<first.lowerBound]) else { return false }
        right = right.dropFirst(first.lowerBound - left.startIndex)
        left = left[first.upperBound...]
        while let next = left.firstRange(of: mark) {
            let piece = left[..<next.lowerBound]
            if !piece.isEmpty {
                guard let found = right.firstRange(of: piece) else { return false }
                right = right[found.upperBound...]
            }
            left = left[next.upperBound...]
        }
        return right.count >= left.count && right.suffix(left.count) == left
    }

    /// Whether bodies of this type may have members to be masked.
    static func hasMembers(type: String) -> Bool { kind(of: type) != .other }

    private static func kind(of type: String) -> Kind {
        let name = type.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        return switch name {
        case "application/x-www-form-urlencoded": .form
        case "application/json", "text/json": .json
        case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-seq": .lines
        case "text/event-stream": .events
        case "multipart/form-data": .parts(boundary: parameter("boundary", of: type))
        default: name.hasSuffix("+json") ? .json : .other
        }
    }

    /// A parameter of a header field's value, without its quotation marks.
    private static func parameter(_ name: String, of value: String) -> String? {
        for part in value.split(separator: ";").dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, equalNames(trimmed(pair[0], " \t"), name) else { continue }
            return trimmed(pair[1], " \t\"")
        }
        return nil
    }

    private static func trimmed(_ text: Substring, _ edge: String) -> String {
        var text = text.drop { edge.contains($0) }
        while let last = text.last, edge.contains(last) { text.removeLast() }
        return String(text)
    }

    // MARK: Names

    /// Fewer names than for header fields, because recordings are replayed, and members like `author` and `key` are
    /// common.
    private static let names: Set<String> = [
        "pwd", "pass", "idtoken", "assertion", "clientassertion", "codeverifier", "devicecode", "otp", "jwt",
        "authorization", "sessionid", "jsessionid", "phpsessid",
    ]
    /// `new_password`, `db_secret`, `refreshToken`
    private static let endings = ["passwd", "passphrase", "secret", "token", "apikey", "privatekey", "secretkey"]

    /// `client_secret`, `Client-Secret` and `clientSecret` are the same name, and `user[password]` is a password.
    private static func isSecret(_ name: String, _ declared: [String]) -> Bool {
        if declared.contains(where: { equalNames($0, name) }) { return true }
        let inner = name.split(whereSeparator: { $0 == "[" || $0 == "]" || $0 == "." }).last ?? ""
        let plain = inner.lowercased().filter { $0 != "_" && $0 != "-" }
        return names.contains(plain) || plain.contains("password") || endings.contains { plain.hasSuffix($0) }
    }

    // MARK: Forms

    private static func parts(of form: [UInt8]) -> [ArraySlice<UInt8>] {
        form.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
    }

    private static func matchesPart(_ recorded: ArraySlice<UInt8>, _ part: ArraySlice<UInt8>) -> Bool {
        guard recorded.ends(with: "=***") else { return recorded == part }
        return part.starts(with: recorded.dropLast(3))
    }

    /// In a form, `code` is an authorization code (RFC 6749, 4.1.3), too.
    private static func maskedForm(_ form: [UInt8], _ declared: [String]) -> [UInt8] {
        var made: [UInt8] = []
        for (index, part) in parts(of: form).enumerated() {
            if index > 0 { made.append(UInt8(ascii: "&")) }
            guard let sign = part.firstIndex(of: UInt8(ascii: "=")) else {
                made.append(contentsOf: part)
                continue
            }
            let name = Recorder.decoded(String(decoding: part[..<sign], as: UTF8.self))
            made.append(contentsOf: part[...sign])
            made.append(
                contentsOf: isSecret(name, declared) || name == "code" ? [0x2A, 0x2A, 0x2A] : part[(sign + 1)...])
        }
        return made
    }

    // MARK: Parts

    /// The parts of a form (RFC 7578). `nil` if a part has no end or no head.
    private static func maskedParts(_ body: [UInt8], _ boundary: String, _ declared: [String]) -> [UInt8]? {
        let delimiter = Array("--\(boundary)".utf8)
        guard !boundary.isEmpty, body.starts(with: delimiter) else { return nil }
        var (made, rest) = (delimiter, body[delimiter.count...])
        while let end = rest.firstRange(of: [0x0D, 0x0A] + delimiter) {
            guard let head = rest.firstRange(of: [0x0D, 0x0A, 0x0D, 0x0A]), head.upperBound <= end.lowerBound else {
                return nil
            }
            let fields = String(decoding: rest[..<head.lowerBound], as: UTF8.self)
            let content = Array(rest[head.upperBound..<end.lowerBound])
            let name = parameter("name", of: field("Content-Disposition", of: fields))
            let type = field("Content-Type", of: fields)
            made.append(contentsOf: rest[..<head.upperBound])
            if isSecret(name ?? "", declared) {
                made.append(contentsOf: Redaction.mark.utf8)
            } else if case .parts = kind(of: type) {
                return nil
            } else {
                guard let masked = masked(content, type: type, declared: declared) else { return nil }
                made.append(contentsOf: masked)
            }
            made.append(contentsOf: rest[end])
            rest = rest[end.upperBound...]
        }
        guard rest.starts(with: [0x2D, 0x2D]) else { return nil }
        return made + rest
    }

    private static func field(_ name: String, of head: String) -> String {
        for line in head.split(separator: "\r\n") {
            let pair = line.split(separator: ":", maxSplits: 1)
            if pair.count == 2, equalNames(String(pair[0]), name) { return trimmed(pair[1], " \t") }
        }
        return ""
    }

    // MARK: JSON

    private static func maskedJSON(_ body: [UInt8], _ declared: [String]) -> [UInt8]? {
        guard let json = try? JSON(parsing: body) else { return nil }
        return hasSecrets(json, declared, 0) ? masked(json, declared, 0).bytes() : body
    }

    /// Lines of which those with this prefix are JSON. Among events only objects are for sure: other text may follow
    /// the prefix, like `[DONE]`.
    private static func maskedLines(_ body: [UInt8], after prefix: String, _ declared: [String]) -> [UInt8]? {
        var made: [UInt8] = []
        for line in body.split(separator: 0x0A, omittingEmptySubsequences: false) {
            if line.startIndex > 0 { made.append(0x0A) }
            var start = line.startIndex
            if line.starts(with: prefix.utf8) { start += prefix.utf8.count }
            // A record of RFC 7464 begins with 0x1E.
            start = line[start...].firstIndex { $0 != 0x20 && $0 != 0x0D && $0 != 0x1E } ?? line.endIndex
            let end = line[start...].last == 0x0D ? line.endIndex - 1 : line.endIndex
            made.append(contentsOf: line[..<start])
            let text = Array(line[start..<end])
            if let masked = maskedJSON(text, declared) {
                made.append(contentsOf: masked)
            } else if text.isEmpty || !prefix.isEmpty && text.first != 0x7B {
                made.append(contentsOf: text)
            } else {
                return nil
            }
            made.append(contentsOf: line[end...])
        }
        return made
    }

    /// Deeper values are redacted as a whole, because values are copied at every level.
    private static let mostLevels = 64

    private static func hasSecrets(_ json: JSON, _ declared: [String], _ level: Int) -> Bool {
        if level == mostLevels { return true }
        if let object = json.object {
            return object.contains { isSecret($0.key, declared) || hasSecrets($0.value, declared, level + 1) }
        }
        return json.array?.contains { hasSecrets($0, declared, level + 1) } ?? false
    }

    private static func masked(_ json: JSON, _ declared: [String], _ level: Int) -> JSON {
        if level == mostLevels { return JSON(Redaction.mark) }
        if let object = json.object {
            return JSON(
                members: object.map { key, value in
                    (key, isSecret(key, declared) ? JSON(Redaction.mark) : masked(value, declared, level + 1))
                })
        }
        guard let array = json.array else { return json }
        return JSON(array.map { masked($0, declared, level + 1) })
    }

    private static func hasMark(_ json: JSON, _ level: Int) -> Bool {
        if level > mostLevels { return false }
        if let object = json.object { return object.contains { hasMark($0.value, level + 1) } }
        if let array = json.array { return array.contains { hasMark($0, level + 1) } }
        return json.string == Redaction.mark
    }

    private static func matches(_ recorded: JSON, _ json: JSON, _ level: Int) -> Bool {
        if recorded.string == Redaction.mark || level > mostLevels { return true }
        if let left = recorded.object {
            guard let right = json.object, left.count == right.count else { return false }
            return left.allSatisfy { key, value in right[key].map { matches(value, $0, level + 1) } ?? false }
        }
        if let left = recorded.array {
            guard let right = json.array, left.count == right.count else { return false }
            return zip(left, right).allSatisfy { matches($0, $1, level + 1) }
        }
        return recorded == json
    }
}

extension ArraySlice<UInt8> {
    fileprivate func ends(with text: String) -> Bool { suffix(text.utf8.count).elementsEqual(text.utf8) }
}
