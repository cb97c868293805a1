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
        return isLocation(value) ? url(value, isBroken: value.utf8.starts(with: "//".utf8)) : value
    }

    /// Whether the value of any other field is a URL of any scheme, or one without a scheme that has a query or a user
    /// (`X-Original-URL`, `X-Forwarded-Uri`).
    private static func isLocation(_ value: String) -> Bool {
        let bytes = value.utf8
        let scheme = bytes.prefix { $0 == UInt8(ascii: ":") || ByteSet.token.contains($0) }
        if scheme.last == UInt8(ascii: ":") { return bytes.dropFirst(scheme.count).starts(with: "//".utf8) }
        let user: UInt8? = bytes.starts(with: "//".utf8) ? UInt8(ascii: "@") : nil
        return bytes.first == UInt8(ascii: "/") && bytes.contains { $0 == UInt8(ascii: "?") || $0 == user }
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
    /// The redacted body; `nil` if a body of this type cannot be read, so that its secrets cannot be found.
    static func masked(_ body: [UInt8], type: String, declared: [String]) -> [UInt8]? {
        if body.isEmpty { return body }
        return switch BodyFormat(type: type) {
        case .form where Self.has(tooMany: [UInt8(ascii: "&"), UInt8(ascii: ";")], Self.mostArguments, in: body): nil
        case .lines where Self.has(tooMany: Self.lineEnds, Self.mostLines, in: body): nil
        case .events where Self.has(tooMany: Self.lineEnds, Self.mostLines, in: body): nil
        case .form: maskedArguments(body) { isSecret($0, declared) || $0 == "code" }.text
        case .json: maskedJSON(body, declared)
        case .lines: maskedLines(body, declared)
        case .events: maskedEvents(body, declared)
        case .parts(let boundary, let haveNames): boundary.flatMap { maskedParts(body, $0, haveNames, declared) }
        case .message: nil
        case .other: body
        }
    }

    /// Beyond them a body is not recorded, because the event loop's thread would be busy with it for seconds.
    private static let (mostArguments, mostLines) = (10_000, 50_000)
    private static let lineEnds: [UInt8] = [0x0A, 0x0D]

    private static func has(tooMany separators: [UInt8], _ most: Int, in body: [UInt8]) -> Bool {
        body.count > most && body.reduce(into: 0) { if separators.contains($1) { $0 += 1 } } > most
    }

    /// Whether bodies of this type may have members to be masked.
    static func hasMembers(type: String) -> Bool { BodyFormat(type: type) != .other }

    // MARK: Names

    /// Fewer names than for header fields, because recordings are replayed, and members like `author` and `key` are
    /// common.
    private static let names: Set<String> = [
        "pwd", "pass", "idtoken", "assertion", "clientassertion", "codeverifier", "devicecode", "otp", "jwt",
        "authorization", "sessionid", "jsessionid", "phpsessid",
    ]
    /// `new_password`, `db_secret`, `refreshToken`
    private static let endings = ["passwd", "passphrase", "secret", "token", "apikey", "privatekey", "secretkey"]

    /// `client_secret`, `Client-Secret` and `clientSecret` are the same name. All within `user[password]` is secret.
    private static func isSecret(_ name: String, _ declared: [String]) -> Bool {
        if declared.contains(where: { equalNames($0, name) }) { return true }
        return name.split(whereSeparator: { $0 == "[" || $0 == "]" || $0 == "." }).contains { piece in
            if declared.contains(where: { equalNames($0, String(piece)) }) { return true }
            let plain = piece.lowercased().filter { $0 != "_" && $0 != "-" }
            return names.contains(plain) || plain.contains("password") || endings.contains { plain.hasSuffix($0) }
        }
    }

    // MARK: Forms

    /// The text of a form or a query with its secret values masked, and its arguments. Some servers separate arguments
    /// by semicolons, too. For others a secret value may contain semicolons: it is masked up to the next `&`.
    static func maskedArguments(
        _ form: some Collection<UInt8>, _ isSecret: (String) -> Bool
    ) -> (text: [UInt8], arguments: [HTTPArchive.Pair]) {
        func decoded(_ text: some Sequence<UInt8>) -> String {
            String(decoding: PercentEncoding.decoded(text.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }), as: UTF8.self)
        }
        var (text, arguments): ([UInt8], [HTTPArchive.Pair]) = ([], [])
        for (index, group) in form.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).enumerated() {
            if index > 0 { text.append(UInt8(ascii: "&")) }
            let pieces = group.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
            for (index, piece) in pieces.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ";")) }
                let sign = piece.firstIndex(of: UInt8(ascii: "="))
                let name = decoded(piece[..<(sign ?? piece.endIndex)])
                let isMasked = isSecret(name)
                var value = isMasked ? Redaction.mark : ""
                if let sign {
                    if !isMasked { value = decoded(piece[sign...].dropFirst()) }
                    text.append(contentsOf: isMasked ? piece[...sign] : piece[...])
                    if isMasked { text.append(contentsOf: Redaction.mark.utf8) }
                } else {
                    text.append(contentsOf: piece)
                }
                arguments.append(.init(name: name, value: value))
                if isMasked && sign != nil { break }
            }
        }
        return (text, arguments)
    }

    // MARK: Parts

    /// `nil` if a part cannot be read, or is a multipart body itself.
    private static func maskedParts(
        _ body: [UInt8], _ boundary: String, _ haveNames: Bool, _ declared: [String]
    ) -> [UInt8]? {
        guard let parts = BodyFormat.parts(of: body, between: boundary) else { return nil }
        var (made, isChanged): ([UInt8], Bool) = ([], false)
        for part in parts {
            guard let content = masked(part, haveNames, declared) else { return nil }
            isChanged = isChanged || content[...] != part.content
            made += Array("--\(boundary)".utf8) + part.head + content + [0x0D, 0x0A]
        }
        return isChanged ? made + Array("--\(boundary)--\r\n".utf8) : body
    }

    private static func masked(_ part: BodyFormat.Part, _ hasName: Bool, _ declared: [String]) -> [UInt8]? {
        // A part of a batch may carry credentials.
        guard let fields = part.fields, !fields.contains(where: { Redaction.isSensitive($0.name, declared: declared) }),
            let type = part.field("Content-Type"), let coding = part.field("Content-Transfer-Encoding"),
            let parameters = part.field("Content-Disposition").flatMap(BodyFormat.parameters)
        else { return nil }
        // Names in several pieces or with a character set (RFC 2231) are not allowed in forms.
        let names = parameters.filter { lowercased($0.name).hasPrefix("name") }
        if names.count > 1 || names.first.map({ !equalNames($0.name, "name") }) ?? hasName { return nil }
        if let name = names.first?.value, isSecret(name, declared) { return Array(Redaction.mark.utf8) }
        if case .parts = BodyFormat(type: type) { return nil }
        let isPlain = ["", "7bit", "8bit", "binary"].contains(lowercased(coding))
        return isPlain || !hasMembers(type: type) ? masked(Array(part.content), type: type, declared: declared) : nil
    }

    // MARK: Lines

    private static func maskedLines(_ body: [UInt8], _ declared: [String]) -> [UInt8]? {
        var made = body.starts(with: BodyFormat.byteOrderMark) ? BodyFormat.byteOrderMark : []
        for line in BodyFormat.lines(of: body) {
            guard let text = maskedText(line.text, after: 0, isJSON: true, declared) else { return nil }
            made += text + line.end
        }
        return made
    }

    private static func maskedEvents(_ body: [UInt8], _ declared: [String]) -> [UInt8]? {
        var made = body.starts(with: BodyFormat.byteOrderMark) ? BodyFormat.byteOrderMark : []
        var event: [BodyFormat.Line] = []
        for line in BodyFormat.lines(of: body) {
            event.append(line)
            if !line.text.isEmpty && !line.end.isEmpty { continue }
            guard let masked = maskedEvent(event, declared) else { return nil }
            made += masked
            event = []
        }
        return made
    }

    /// The data of an event may be one JSON text in several lines; if it has secrets it becomes one line.
    private static func maskedEvent(_ event: [BodyFormat.Line], _ declared: [String]) -> [UInt8]? {
        let prefix = Array("data:".utf8)
        let data = event.indices.filter { event[$0].text.starts(with: prefix) }
        let whole = Array(data.map { event[$0].text.dropFirst(prefix.count) }.joined(separator: [0x0A]))
        let masked = data.count > 1 ? maskedJSON(whole, declared) : nil
        let isChanged = masked != whole
        var made: [UInt8] = []
        for (index, line) in event.enumerated() {
            let isData = line.text.starts(with: prefix)
            if isData, let masked {
                if !isChanged { made += line.text + line.end }
                if isChanged && index == data[0] { made += prefix + [0x20] + masked + line.end }
                continue
            }
            // JSON may also follow the names of other fields, and a comment's colon.
            let colon = opensJSON(line.text) ? nil : line.text.firstIndex(of: UInt8(ascii: ":"))
            let start = colon.map { $0 + 1 - line.text.startIndex } ?? 0
            guard let text = maskedText(line.text, after: start, isJSON: false, declared) else { return nil }
            made += text + line.end
        }
        return made
    }

    /// A line whose JSON after `count` bytes is masked. Other text stays, unless it must be JSON or begins like it.
    private static func maskedText(
        _ line: ArraySlice<UInt8>, after count: Int, isJSON: Bool, _ declared: [String]
    ) -> [UInt8]? {
        // A record of RFC 7464 begins with 0x1E.
        let text = line.dropFirst(count).drop { $0 <= 0x20 || BodyFormat.byteOrderMark.contains($0) }
        if text.isEmpty { return Array(line) }
        if let masked = maskedJSON(Array(text), declared) { return line[..<text.startIndex] + masked }
        // Many streams end with `[DONE]`.
        let word = text.dropFirst().prefix { lowercased($0) >= 0x61 && lowercased($0) <= 0x7A }
        let isWord = text.first == UInt8(ascii: "[") && text[word.endIndex...].filter { $0 > 0x20 } == Array("]".utf8)
        return isJSON || opensJSON(text) && !isWord ? nil : Array(line)
    }

    private static func opensJSON(_ text: ArraySlice<UInt8>) -> Bool {
        text.first { $0 > 0x20 }.map { [0x7B, 0x5B, 0x22].contains($0) } ?? false
    }

    // MARK: JSON

    private static func maskedJSON(_ body: [UInt8], _ declared: [String]) -> [UInt8]? {
        guard let json = try? JSON(parsing: body) else { return nil }
        return hasSecrets(json, declared, 0) ? masked(json, declared, 0).bytes() : body
    }

    /// Whether a JSON text matches a recorded one, in which a masked value matches any value.
    package static func matchesJSON(_ recorded: [UInt8], _ text: [UInt8]) -> Bool {
        guard let left = try? JSON(parsing: recorded), let right = try? JSON(parsing: text) else { return false }
        return hasMark(left, 0) && matches(left, right, 0)
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
