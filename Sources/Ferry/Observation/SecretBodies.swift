import FerryJSON
import FoundationEssentials

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
        case .form: maskedForm(body, declared)
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
        "pwd", "pass", "idtoken", "assertion", "clientassertion", "codeverifier", "devicecode", "otp", "authorization",
        "sessionid", "jsessionid", "phpsessid", "samlrequest", "samlresponse", "samlart",
    ]
    /// `new_password`, `db_secret`, `refreshToken`, `SecretAccessKey` (but not `AccessKeyId`), `refreshJwt`
    private static let endings = [
        "passwd", "passphrase", "secret", "token", "apikey", "privatekey", "secretkey", "accesskey", "jwt",
    ]

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

    /// Whether the body of a form begins like JSON. A command sends JSON as a form if nobody says what it is.
    package static func isJSONForm(_ body: [UInt8]) -> Bool {
        opensJSON(body.starts(with: BodyFormat.byteOrderMark) ? body.dropFirst(3) : body[...])
    }

    private static func maskedForm(_ body: [UInt8], _ declared: [String]) -> [UInt8]? {
        let mark = body.starts(with: BodyFormat.byteOrderMark) ? BodyFormat.byteOrderMark : []
        let text = Array(body[mark.count...])
        if isJSONForm(body) {
            var masked = maskedJSON(text, declared)
            if masked == nil, !has(tooMany: lineEnds, mostLines, in: text) { masked = maskedLines(text, declared) }
            return masked.flatMap { maskedTexts(of: $0, declared) }.map { mark + $0 }
        }
        return maskedArguments(body) { isSecret($0, declared) || $0 == "code" }.text
    }

    /// Each text within JSON may be a URL or a form, whose secret values end with it. `nil` with too many arguments.
    private static func maskedTexts(of json: [UInt8], _ declared: [String]) -> [UInt8]? {
        var (made, text, isInside, isEscaped, left) = ([UInt8](), [UInt8](), false, false, mostArguments)
        for byte in json {
            if byte == UInt8(ascii: "\""), !isEscaped {
                made += (isInside ? maskedText(within: text, declared, &left) : text) + [byte]
                if left < 0 { return nil }
                (text, isInside) = ([], !isInside)
            } else {
                text.append(byte)
            }
            isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        }
        return made + text
    }

    /// A text as it is written in JSON, without its quotation marks. Each character may be escaped, `=` as `\u003d`.
    private static func maskedText(within text: [UInt8], _ declared: [String], _ left: inout Int) -> [UInt8] {
        let hides = text.contains(0x5C) && text.contains { $0 == UInt8(ascii: "=") || $0 | 0x20 == UInt8(ascii: "d") }
        let plain = hides ? (try? JSON(parsing: [0x22] + text + [0x22]))?.string.map { Array($0.utf8) } ?? text : text
        if !plain.contains(UInt8(ascii: "=")) { return text }
        left -= plain.count { $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: ";") }
        if left < 0 { return text }
        let masked = maskedArguments(plain) { name in
            let last = name.split { $0 == "?" || $0 == "\"" }.last.map(String.init) ?? name
            return isSecret(last, declared) || last == "code"
        }.text
        if masked == plain { return text }
        return masked.flatMap { byte -> [UInt8] in
            if byte == 0x22 || byte == 0x5C { return [0x5C, byte] }
            return byte < 0x20 ? Array("\\u00\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16))".utf8) : [byte]
        }
    }

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
        let masked = data.count > 1 ? maskedJSON(whole, declared, isCompact: true) : nil
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

    private static func maskedJSON(_ body: [UInt8], _ declared: [String], isCompact: Bool = false) -> [UInt8]? {
        guard let json = try? JSON(parsing: body) else { return nil }
        if !hasSecrets(json, declared, 0) { return body }
        var mask = JSONMask(body, mostLevels: mostLevels, isCompact: isCompact)
        return mask.masked { isSecret($0, declared) }
    }

    /// Compares a text within JSON with a recorded one that has marks.
    package typealias Comparison = (_ recorded: String, _ text: String) -> Bool

    /// Whether a JSON text matches a recorded one, in which a masked value matches any value. Texts within JSON that
    /// was sent as a form may have marks, too, which `comparison` then compares.
    package static func matchesJSON(
        _ recorded: [UInt8], _ text: [UInt8], comparingTexts comparison: Comparison? = nil
    ) -> Bool {
        guard let left = try? JSON(parsing: recorded), let right = try? JSON(parsing: text) else { return false }
        return hasMark(left, 0, inTexts: comparison != nil) && matches(left, right, 0, comparison)
    }

    /// Deeper values are redacted as a whole, because each level is searched by a call of its own.
    private static let mostLevels = 64

    private static func hasSecrets(_ json: JSON, _ declared: [String], _ level: Int) -> Bool {
        if level == mostLevels { return true }
        if let object = json.object {
            return object.contains { isSecret($0.key, declared) || hasSecrets($0.value, declared, level + 1) }
        }
        return json.array?.contains { hasSecrets($0, declared, level + 1) } ?? false
    }

    private static func hasMark(_ json: JSON, _ level: Int, inTexts: Bool) -> Bool {
        if level > mostLevels { return false }
        if let object = json.object { return object.contains { hasMark($0.value, level + 1, inTexts: inTexts) } }
        if let array = json.array { return array.contains { hasMark($0, level + 1, inTexts: inTexts) } }
        return json.string.map { $0 == Redaction.mark || inTexts && hasMarkedArgument($0) } ?? false
    }

    private static func hasMarkedArgument(_ text: String) -> Bool { text.contains("=\(Redaction.mark)") }

    private static func matches(_ recorded: JSON, _ json: JSON, _ level: Int, _ comparison: Comparison?) -> Bool {
        if recorded.string == Redaction.mark || level > mostLevels { return true }
        if let left = recorded.object {
            guard let right = json.object, left.count == right.count else { return false }
            return left.allSatisfy { key, value in
                right[key].map { matches(value, $0, level + 1, comparison) } ?? false
            }
        }
        if let left = recorded.array {
            guard let right = json.array, left.count == right.count else { return false }
            return zip(left, right).allSatisfy { matches($0, $1, level + 1, comparison) }
        }
        if let comparison, let left = recorded.string, hasMarkedArgument(left), let right = json.string {
            return comparison(left, right)
        }
        return recorded == json
    }
}

/// Masks values in the text of a JSON document. Everything else stays as it is written: a parsed document does not have
/// all digits of its numbers.
private struct JSONMask {
    private let text: [UInt8]
    private let mostLevels: Int
    /// Whether the text is written without white space, on one line.
    private let isCompact: Bool
    private var place: Int
    private var made: [UInt8] = []
    /// The text before it is in `made`, or left out.
    private var copied = 0

    /// The text must be valid.
    init(_ text: [UInt8], mostLevels: Int, isCompact: Bool) {
        (self.text, self.mostLevels, self.isCompact) = (text, mostLevels, isCompact)
        place = text.starts(with: BodyFormat.byteOrderMark) ? BodyFormat.byteOrderMark.count : 0
    }

    /// The text with a mark instead of the members with these names, and of values that are nested too deeply.
    mutating func masked(_ isSecret: (String) -> Bool) -> [UInt8] {
        // Whether each open container is an object.
        var open: [Bool] = []
        var (expectsName, isMasked) = (false, false)
        while place < text.count {
            let byte = text[place]
            switch byte {
            case UInt8(ascii: " "), 0x09, 0x0A, 0x0D:
                if isCompact { made += text[copied..<place] }
                place += 1
                if isCompact { copied = place }
            case UInt8(ascii: ":"): place += 1
            case UInt8(ascii: ","):
                expectsName = open.last == true
                place += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                _ = open.popLast()
                expectsName = false
                place += 1
            case UInt8(ascii: "\"") where expectsName:
                let start = place
                passString()
                isMasked = Self.name(text[start..<place]).map(isSecret) ?? true
                expectsName = false
            default:
                if isMasked || open.count == mostLevels {
                    made += text[copied..<place]
                    made += Array("\"\(Redaction.mark)\"".utf8)
                    passValue()
                    copied = place
                    isMasked = false
                } else if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
                    expectsName = byte == UInt8(ascii: "{")
                    open.append(expectsName)
                    place += 1
                } else {
                    passValue()
                }
            }
        }
        return made + text[copied...]
    }

    private static func name(_ string: ArraySlice<UInt8>) -> String? {
        if string.contains(UInt8(ascii: "\\")) { return (try? JSON(parsing: Array(string)))?.string }
        return String(decoding: string.dropFirst().dropLast(), as: UTF8.self)
    }

    private mutating func passString() {
        place += 1
        while place < text.count, text[place] != UInt8(ascii: "\"") {
            place += text[place] == UInt8(ascii: "\\") ? 2 : 1
        }
        place = min(place + 1, text.count)
    }

    private mutating func passValue() {
        switch text[place] {
        case UInt8(ascii: "\""): passString()
        case UInt8(ascii: "{"), UInt8(ascii: "["): passContainer()
        default: while place < text.count, !Self.ends.contains(text[place]) { place += 1 }
        }
    }

    private mutating func passContainer() {
        var level = 0
        repeat {
            switch text[place] {
            case UInt8(ascii: "\""): passString()
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                level += 1
                place += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                level -= 1
                place += 1
            default: place += 1
            }
        } while level > 0 && place < text.count
    }

    /// What follows a number or a word.
    private static let ends = ByteSet(" \t\n\r,]}")
}
