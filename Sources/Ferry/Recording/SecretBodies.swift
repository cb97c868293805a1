import FerryJSON
import FoundationEssentials

/// Redacts secrets in recorded bodies: in forms and JSON, by the names of members. Other bodies, and invalid ones, stay
/// unchanged.
package enum SecretBodies {
    private enum Kind { case form, json, other }

    /// The redacted body.
    static func masked(_ body: [UInt8], type: String, declared: [String]) -> [UInt8] {
        switch kind(of: type) {
        case .form: return maskedForm(body, declared)
        case .json:
            guard let json = try? JSON(parsing: body), hasSecrets(json, declared, 0) else { return body }
            return masked(json, declared, 0).bytes()
        case .other: return body
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
        case .other: return false
        }
    }

    /// Whether bodies of this type may have members to be masked.
    static func hasMembers(type: String) -> Bool { kind(of: type) != .other }

    private static func kind(of type: String) -> Kind {
        let name = type.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        if name == "application/x-www-form-urlencoded" { return .form }
        return name == "application/json" || name == "text/json" || name.hasSuffix("+json") ? .json : .other
    }

    // MARK: Names

    /// Fewer names than for header fields, because recordings are replayed, and members like `author` and `key` are
    /// common.
    private static let names: Set<String> = [
        "password", "passwd", "passphrase", "pwd", "secret", "clientsecret", "token", "accesstoken", "refreshtoken",
        "idtoken", "authtoken", "bearertoken", "sessiontoken", "csrftoken", "apikey", "privatekey", "secretkey",
        "assertion", "clientassertion", "codeverifier", "devicecode", "otp",
    ]

    /// `client_secret`, `Client-Secret` and `clientSecret` are the same name.
    private static func isSecret(_ name: String, _ declared: [String]) -> Bool {
        if declared.contains(where: { equalNames($0, name) }) { return true }
        return names.contains(name.lowercased().filter { $0 != "_" && $0 != "-" })
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

    // MARK: JSON

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
