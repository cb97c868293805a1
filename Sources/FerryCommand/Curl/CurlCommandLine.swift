internal import Ferry

/// A parsed curl command line. Anything that is not understood is an error, because a load without a part of the
/// request would be a different load.
struct CurlCommandLine: Sendable, Equatable {
    struct Field: Sendable, Equatable {
        let name: String
        let value: String
    }

    var url = ""
    var method: String?
    var headers: [Field] = []
    /// The field that `-b` has created.
    private var cookieField: Int?
    /// Fields that curl would add itself, but was told not to; in lower case.
    var removed: Set<String> = []
    var body: [UInt8]?
    var contentType: String?
    var form: [CurlFormPart] = []
    var putsDataInQuery = false
    var wantsHead = false
    var credentials: Credentials?
    var usesDigest = false
    var bearer: String?
    /// Empty for none.
    var userAgent: String?
    var isInsecure = false
    var isCompressed = false
    var followsRedirects = false
    var maxRedirects: Int?
    var maxTime: Duration?
    var connectTimeout: Duration?
    var proxy: String?
    var proxyUser: Credentials?
    var noProxy: [String] = []
    var authorities: String?
    var certificate: String?
    var key: String?
    var keyPassword: String?
    var retries = 0
    var usesHTTP2 = false
    var knowsHTTP2 = false
    var requiresTLS13 = false

    /// `reading` returns the content of a file that the command line names.
    init(_ text: String, reading: (String) throws -> [UInt8]) throws {
        var words = try ShellWords.split(text)[...]
        guard let program = words.popFirst(), program == "curl" || program.hasSuffix("/curl") else {
            throw UsageError("the command must begin with curl")
        }
        var isGlobbed = true
        while let word = words.popFirst() {
            for (name, value) in try Self.options(word, &words) {
                if name == "-g" || name == "--globoff" { isGlobbed = false }
                guard let option = CurlOption.named(name) else { throw UsageError("\(name) is not supported") }
                try apply(option.meaning, name, value, reading)
            }
            if !word.hasPrefix("-") || word == "-" { try take(url: word) }
        }
        if url.isEmpty { throw UsageError("the command has no URL") }
        if isGlobbed, Self.withoutAddress(url).utf8.contains(where: { "[]{}".utf8.contains($0) }) {
            throw UsageError("'\(url)' may be a pattern for several URLs; --globoff turns this off")
        }
        if !form.isEmpty, body != nil || putsDataInQuery || wantsHead {
            throw UsageError("-F cannot be combined with data, -G or -I")
        }
        if proxyUser != nil, proxy == nil { throw UsageError("-U requires -x") }
        if putsDataInQuery, let body {
            url = URLQuery.appending(String(decoding: body, as: UTF8.self), to: url)
            (self.body, contentType) = (nil, nil)
        }
        if CommandURL.schemeEnd(url) == nil { url = "http://" + url }
    }

    /// The options in one word (`-sSXPOST` has three), with their values, which may be the next word. Empty for other
    /// words.
    private static func options(
        _ word: String, _ words: inout ArraySlice<String>
    ) throws(UsageError) -> [(name: String, value: String)] {
        guard word.hasPrefix("-"), word != "-" else { return [] }
        func value(of name: String) throws(UsageError) -> String {
            guard let value = words.popFirst() else { throw UsageError("\(name) needs a value") }
            return value
        }
        if word.hasPrefix("--") {
            return [(word, CurlOption.named(word)?.takesValue == true ? try value(of: word) : "")]
        }
        var found: [(name: String, value: String)] = []
        var letters = word.dropFirst()
        while let letter = letters.popFirst() {
            let name = "-\(letter)"
            guard CurlOption.named(name)?.takesValue == true else {
                found.append((name, ""))
                continue
            }
            found.append((name, letters.isEmpty ? try value(of: name) : String(letters)))
            break
        }
        return found
    }

    private mutating func take(url: String) throws(UsageError) {
        if !self.url.isEmpty { throw UsageError("expected one URL, found also '\(url)'") }
        self.url = url
    }

    private mutating func apply(
        _ meaning: CurlOption.Meaning, _ name: String, _ value: String, _ reading: (String) throws -> [UInt8]
    ) throws {
        switch meaning {
        case .nothing: break
        case .url: try take(url: value)
        case .method: method = value
        case .header: try add(header: value)
        case .data, .dataRaw, .dataBinary, .dataURLEncoded, .json: try add(data: value, meaning, reading)
        case .query: putsDataInQuery = true
        case .head: wantsHead = true
        case .user: credentials = try Self.credentials(value, name)
        case .digest: usesDigest = true
        case .bearer: bearer = value
        case .userAgent: userAgent = value
        case .referer: headers.append(Field(name: "Referer", value: value))
        case .cookie:
            guard value.utf8.contains(UInt8(ascii: "=")) else {
                throw UsageError("\(name) '\(value)' names a file, which is not supported")
            }
            // One field for all of them, as RFC 6265, 5.4 requires.
            if let cookie = cookieField {
                headers[cookie] = Field(name: "Cookie", value: headers[cookie].value + ";" + value)
            } else {
                cookieField = headers.count
                headers.append(Field(name: "Cookie", value: value))
            }
        case .insecure: isInsecure = true
        case .compressed: isCompressed = true
        case .location: followsRedirects = true
        case .maxRedirects: maxRedirects = try Self.count(value, name)
        case .maxTime: maxTime = try Self.seconds(value, name)
        case .connectTimeout: connectTimeout = try Self.seconds(value, name)
        case .form: form.append(try CurlFormPart(value, reading: reading))
        case .formString: form.append(try CurlFormPart(string: value))
        case .proxyUser: proxyUser = try Self.credentials(value, name)
        case .proxy: proxy = CommandURL.schemeEnd(value) == nil ? "http://" + value : value
        case .noProxy: noProxy = value.split(separator: ",").map(String.init)
        case .authorities: authorities = value
        case .certificate: try take(certificate: value)
        case .keyPassword: keyPassword = value
        case .key: key = value
        case .http2: usesHTTP2 = true
        case .http2PriorKnowledge: knowsHTTP2 = true
        case .retries: retries = try Self.retries(value, name)
        case .tls13: requiresTLS13 = true
        }
    }

    /// `Name: value`; `Name:` removes curl's own field, and `Name;` has an empty value.
    private mutating func add(header text: String) throws(UsageError) {
        if text.hasPrefix("@") { throw UsageError("header fields from a file ('\(text)') are not supported") }
        if let (name, rest) = text.parted(at: ":"), !name.isEmpty {
            let value = rest.utf8.drop { " \t".utf8.contains($0) }
            if value.isEmpty {
                removed.insert(name.lowercased())
            } else {
                headers.append(Field(name: name, value: String(decoding: value, as: UTF8.self)))
            }
        } else if text.hasSuffix(";"), text.count > 1 {
            headers.append(Field(name: String(text.dropLast()), value: ""))
        } else {
            throw UsageError("'\(text)' is not a header field")
        }
    }

    /// `FILE` or `FILE:PASSWORD`; a colon in the file name is escaped with a backslash.
    private mutating func take(certificate text: String) throws(UsageError) {
        if text.hasPrefix("pkcs11:") { throw UsageError("certificates from pkcs11: are not supported") }
        var file = ""
        var rest = text[...]
        while let character = rest.popFirst() {
            if character == ":" {
                keyPassword = String(rest)
                break
            }
            if character == "\\", let next = rest.first, next == ":" || next == "\\" {
                file.append(next)
                rest.removeFirst()
            } else {
                file.append(character)
            }
        }
        certificate = file
    }

    /// The URL without an IPv6 address, whose brackets are literal.
    private static func withoutAddress(_ url: String) -> String {
        // By bytes: each of these and a combining mark after it are one character.
        let bytes = url.utf8
        let start = CommandURL.schemeEnd(url) ?? bytes.startIndex
        let end = bytes[start...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.endIndex
        guard let open = bytes[start..<end].firstIndex(of: UInt8(ascii: "[")),
            let close = bytes[open..<end].firstIndex(of: UInt8(ascii: "]"))
        else { return url }
        // The zone after a percent sign may be any name.
        let address = bytes[bytes.index(after: open)..<close].prefix { $0 != UInt8(ascii: "%") }
        let isAddress = address.allSatisfy { "0123456789abcdefABCDEF:.".utf8.contains($0) }
        guard isAddress, address.contains(UInt8(ascii: ":")) else { return url }
        let rest = bytes[bytes.index(after: close)...]
        return String(decoding: bytes[..<open], as: UTF8.self) + String(decoding: rest, as: UTF8.self)
    }

    private static func credentials(_ text: String, _ name: String) throws(UsageError) -> Credentials {
        guard let credentials = Credentials(text) else { throw UsageError("\(name) must be USER:PASSWORD") }
        return credentials
    }

    private static func retries(_ text: String, _ name: String) throws(UsageError) -> Int {
        guard let number = Int(text), 0...10_000 ~= number else {
            throw UsageError("\(name) must be a number up to 10000, not '\(text)'")
        }
        return number
    }

    private static func count(_ text: String, _ name: String) throws(UsageError) -> Int {
        guard let number = Int(text), number >= -1 else { throw UsageError("\(name) must be a number, not '\(text)'") }
        return number
    }

    private static func seconds(_ text: String, _ name: String) throws(UsageError) -> Duration {
        guard let number = Double(text), number != 0, let duration = Duration(seconds: number) else {
            throw UsageError("\(name) must be a number of seconds, not '\(text)'")
        }
        return duration
    }
}

extension CurlCommandLine {
    /// Several values are joined by `&`, those of `--json` are concatenated.
    mutating func add(
        data value: String, _ meaning: CurlOption.Meaning, _ reading: (String) throws -> [UInt8]
    ) throws {
        let piece: [UInt8]
        switch meaning {
        case .data:
            piece = try Self.content(value, reading).filter { $0 != 0 && $0 != 10 && $0 != 13 || !value.hasPrefix("@") }
        case .dataURLEncoded: piece = try Self.encoded(value, reading)
        case .dataRaw: piece = Array(value.utf8)
        default: piece = try Self.content(value, reading)
        }
        if meaning == .json {
            contentType = "application/json"
            if !headers.contains(where: { $0.name.lowercased() == "accept" }) {
                headers.append(Field(name: "Accept", value: "application/json"))
            }
            body = (body ?? []) + piece
        } else {
            contentType = contentType ?? "application/x-www-form-urlencoded"
            body = body.map { $0 + [UInt8(ascii: "&")] + piece } ?? piece
        }
    }

    /// The text itself, or the content of the file after an `@`.
    private static func content(_ value: String, _ reading: (String) throws -> [UInt8]) throws -> [UInt8] {
        guard value.hasPrefix("@") else { return Array(value.utf8) }
        let path = String(value.dropFirst())
        if path == "-" { throw UsageError("standard input as data is not supported") }
        return try reading(path)
    }

    /// `content`, `=content`, `name=content`, `@file` or `name@file`.
    private static func encoded(_ value: String, _ reading: (String) throws -> [UInt8]) throws -> [UInt8] {
        // By bytes: each of the two and a combining mark after it are one character.
        let bytes = value.utf8
        guard let sign = bytes.firstIndex(where: { "=@".utf8.contains($0) }) else { return encoded(Array(bytes)) }
        let name = Array(bytes[..<sign])
        let rest = Array(bytes[bytes.index(after: sign)...])
        let content = bytes[sign] == UInt8(ascii: "=") ? rest : try reading(String(decoding: rest, as: UTF8.self))
        return (name.isEmpty ? [] : name + [UInt8(ascii: "=")]) + encoded(content)
    }

    /// A blank becomes a plus sign.
    private static func encoded(_ bytes: [UInt8]) -> [UInt8] {
        let words = bytes.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        return Array(words.map { PercentEncoding.encoded($0) }.joined(separator: [UInt8(ascii: "+")]))
    }
}
