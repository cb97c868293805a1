/// One thing that happened, for a log. What is `nil` was not known, or has no meaning for it.
///
/// It carries no secrets: URLs are without user, password, values of the query and fragment; the values of header
/// fields that are, or by their name seem to be, secret are `***`; bodies are never part of it.
public struct LogEntry: Sendable {
    /// How much it matters.
    public var level: LogLevel
    /// What happened, in a few words that are the same each time.
    public var message: String
    /// The `id` of the run.
    public var run: UInt64?
    /// The method.
    public var method: HTTPMethod?
    /// The host, with its port unless that is the scheme's own.
    public private(set) var host: String?
    /// The URL, redacted.
    public private(set) var url: String?
    /// The status code.
    public var status: Int?
    /// How long it took.
    public var duration: Duration?
    /// Which sending it was, from 1.
    public var attempt: Int?
    /// Of a fault its code.
    public var error: RequestError.Code?
    /// Header fields, redacted.
    public private(set) var headers: Headers?

    /// An entry. The URL is redacted here.
    public init(_ level: LogLevel, _ message: String, run: UInt64? = nil, url: String? = nil) {
        self.level = level
        self.message = message
        self.run = run
        if let url {
            self.url = Redaction.url(url)
            let host = HostKey.authority(of: url)
            self.host = host.isEmpty ? nil : host
        }
    }

    /// An entry of a run.
    public init(_ level: LogLevel, _ message: String, run: RunInfo) {
        self.level = level
        self.message = message
        self.run = run.id
        method = run.method
        let url = run.url
        if !url.isEmpty {
            self.url = url
            host = run.host
        }
    }

    /// Adds header fields. The values of secret ones, those named in `sensitive` among them, become `***`.
    public mutating func setHeaders(_ headers: Headers, sensitive: [String] = []) {
        self.headers = Redaction.headers(headers, sensitive: sensitive)
    }
}

extension LogEntry: CustomStringConvertible {
    /// One line, like `debug finished run=7 method=GET url=http://h/x status=200 us=1240`, without its end.
    ///
    /// Values with spaces or quotes stand in quotes, and control characters are escaped, so that no value can forge a
    /// field or a line.
    public var description: String {
        var line = LogLine("\(level) \(message)")
        if let run { line.append("run", "\(run)") }
        if let method { line.append("method", method.rawValue) }
        if let url { line.append("url", url) } else if let host { line.append("host", host) }
        if let status { line.append("status", "\(status)") }
        if let duration { line.append("us", "\(duration.microseconds)") }
        if let attempt { line.append("attempt", "\(attempt)") }
        if let error { line.append("error", error.description) }
        for field in headers ?? Headers() { line.append("header", "\(field.name): \(field.value)") }
        return line.text
    }
}

/// A line of words and fields under construction.
private struct LogLine {
    private(set) var text: String

    init(_ words: String) { text = Self.escaped(words, quotes: false) }

    mutating func append(_ name: String, _ value: String) {
        // Among what is not ASCII there are controls, too.
        let isBare = !value.isEmpty && value.utf8.allSatisfy { 0x21..<0x7F ~= $0 && $0 != 0x22 && $0 != 0x5C }
        text += isBare ? " \(name)=\(value)" : " \(name)=\"\(Self.escaped(value, quotes: true))\""
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        if !text.utf8.contains(where: { isControl($0) || $0 == 0x22 || $0 == 0x5C || $0 >= 0xC2 }) { return text }
        var made = ""
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x0A: made += "\\n"
            case 0x0D: made += "\\r"
            case 0x09: made += "\\t"
            case 0x22 where quotes, 0x5C where quotes: made += "\\\(scalar)"
            case _ where scalar.commandsTerminals: made += "\\u{\(String(scalar.value, radix: 16))}"
            default: made.unicodeScalars.append(scalar)
            }
        }
        return made
    }
}
