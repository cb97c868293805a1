internal import Ferry
internal import FerryMeasurement
internal import Glibc

/// The exit codes of the command, on which scripts rely.
enum ExitCode: Int32, Sendable, CaseIterable {
    case success = 0
    case usage = 1
    /// An input file could not be read or is invalid.
    case badInput = 2
    /// Also: the output could not be written to standard output, or the server could not listen on its port.
    case transferFailed = 3
    /// A response did not meet an expectation, or a condition of `--fail-if` was met.
    case validationFailed = 4
    case statusNotAccepted = 5
    /// Ended by ctrl-C: 128 + SIGINT, as in shells.
    case interrupted = 130
    /// Ended by SIGTERM: 128 + SIGTERM.
    case terminated = 143

    /// A short description for the help.
    var meaning: String {
        switch self {
        case .success: "success"
        case .usage: "wrong usage"
        case .badInput: "invalid input file"
        case .transferFailed: "transfer failed or output not written"
        case .validationFailed: "validation failed or condition met"
        case .statusNotAccepted: "status not accepted"
        case .interrupted: "interrupted"
        case .terminated: "terminated"
        }
    }
}

/// The error for a file that the command line names.
struct InputError: Error, Equatable {
    var message: String

    init(_ message: String) {
        self.message = message
    }
}

/// A mistake on the command line; one line for stderr.
struct UsageError: Error, Equatable {
    var message: String

    init(_ message: String) {
        self.message = message
    }
}

/// The error message for a person at a terminal: what is wrong, with the name and the limit.
enum FailureText {
    /// One sentence without secrets. `request` has the limits that were set.
    static func of(_ error: RequestError, _ request: any Request) -> String {
        if let text = explanation(of: error, request) { return text }
        // The code says what part of the library refused the request.
        if error.isWrongUsage && !error.message.isEmpty { return error.message }
        return [error.code.description, error.message].filter { !$0.isEmpty }.joined(separator: ": ")
    }

    /// `nil` if the code and the message of the error are enough.
    static func explanation(of error: RequestError, _ request: any Request) -> String? {
        let place = place(of: error.url)
        switch error.code {
        case .dns(.notFound): return "could not resolve \"\(place.host)\""
        case .dns(.temporary): return "could not resolve \"\(place.host)\" now: no name server has answered"
        case .connect(.refused): return "could not connect to \(place.authority): connection refused"
        case .connect: return "could not connect to \(named(error.message) ?? "\(place.authority): \(error.message)")"
        case .proxy(.unreachable):
            let reason = error.errno == 0 ? error.message : String(cString: strerror(Int32(error.errno)))
            return "could not connect to the proxy: \(reason)"
        case .tls: return "no TLS connection to \(place.authority): \(openSSLReason(error.message))"
        case .timeout(.deadline):
            guard let deadline = request.deadline else { break }
            return "no complete response within \(text(deadline)) (deadline)"
        case .timeout(.total):
            guard let total = request.timeouts?.total else { break }
            return "no complete response within \(text(total)) (timeout)"
        case .timeout(.connect), .timeout(.tls), .timeout(.dns):
            // Without a limit of its own, connecting has that of an idle transfer.
            let timeouts = request.timeouts ?? Timeouts()
            guard let limit = timeouts.connect ?? timeouts.idle else { break }
            let name = timeouts.connect == nil ? "idle timeout" : "connect timeout"
            return "no connection to \(place.authority) within \(text(limit)) (\(name))"
        case .timeout(.read):
            guard let idle = (request.timeouts ?? Timeouts()).idle else { break }
            return "no byte of the body for \(text(idle)) (idle timeout)"
        case .timeout(.lowSpeed):
            guard let bound = request.timeouts?.lowSpeed else { break }
            return "slower than \(bound.bytesPerSecond) bytes per second for \(text(bound.time)) (--low-speed)"
        case .responseTooLarge:
            let limit = request.maxBodyBytes ?? NetworkConfiguration().limits.maxBodyBytes
            let option = request is FetchRequest ? " (--max-body)" : ""
            return "the body is larger than \(grouped(UInt64(max(limit, 1)))) bytes\(option)"
        case .headersTooLarge:
            let limit = NetworkConfiguration().limits.headerBytes
            return "the head of the response has more than \(grouped(UInt64(limit))) bytes or 1,000 fields"
        case .invalidStatusCode:
            guard let status = error.status else { break }
            return "status \(status) is not accepted"
        case .invalidJSON where error.message.hasPrefix("not JSON"): return "the body is \(error.message)"
        case .schemaMismatch: return "the body does not match the schema: \(error.message)"
        case .invalidURL:
            // The position refers to the displayed text, if the character is part of it.
            let url = shown(request.path, isBroken: true)
            let reason = fault(in: url) ?? fault(in: request.path, hidden: true) ?? fault(inAuthorityOf: request.path)
            return "invalid URL \"\(url)\": \(reason ?? error.message)"
        case .unsupportedScheme:
            return "\"\(shown(request.path, isBroken: true))\" cannot be fetched: a URL begins with http:// or https://"
        case .incompleteBody: return "\(error.message) (\(error.code.detail ?? ""))"
        default: break
        }
        return nil
    }

    /// `2 s`, `500 ms`
    static func text(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        if attoseconds == 0 { return "\(seconds) s" }
        let milliseconds = Double(seconds) * 1000 + Double(attoseconds) / 1e15
        return milliseconds < 1000 ? "\(plain(milliseconds)) ms" : "\(plain(milliseconds / 1000)) s"
    }

    private static func plain(_ number: Double) -> String {
        number == number.rounded() ? String(Int(number)) : String(number)
    }

    /// The first character that is not permitted in a URL, with its position from 1.
    private static func fault(in url: String, hidden: Bool = false) -> String? {
        for (index, scalar) in url.unicodeScalars.enumerated() {
            let place = hidden ? "in a part that is not shown" : "at position \(index + 1)"
            if scalar == " " { return "space \(place)" }
            if scalar.value < 0x20 || scalar.value == 0x7F { return "control character \(place)" }
        }
        return nil
    }

    /// What is wrong with the host and the port. With an `@` in the URL, the port may be a part of the password.
    private static func fault(inAuthorityOf url: String) -> String? {
        let authority = place(of: url).authority.utf8
        if authority.isEmpty || authority.first == UInt8(ascii: ":") { return "no host" }
        let isBracketed = authority.first == UInt8(ascii: "[")
        if isBracketed && !authority.contains(UInt8(ascii: "]")) { return "no ] after the address" }
        let rest = isBracketed ? authority.drop { $0 != UInt8(ascii: "]") } : authority[...]
        guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let port = String(decoding: rest[rest.index(after: colon)...], as: UTF8.self)
        if UInt16(port) != nil { return nil }
        let isHidden = url.utf8.contains(UInt8(ascii: "@"))
        return "\(isHidden ? "the port" : "port \(port)") is not a number up to 65535"
    }

    /// libcurl and the core name the socket or the address before the reason.
    private static func named(_ message: String) -> String? {
        let start = "Failed to connect to "
        return message.hasPrefix(start) ? String(message.dropFirst(start.count)) : nil
    }

    /// `wrong version number` of `OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number`.
    private static func openSSLReason(_ message: String) -> Substring {
        let isQueued = message.contains("error:")
        guard isQueued, let colons = message.ranges(of: "::").last else { return message[...] }
        return message[colons.upperBound...]
    }

    /// `200-299, 404`
    static func text(_ ranges: [ClosedRange<Int>]) -> String {
        ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ", ")
    }

    /// Without user, password and query values. Of a URL that cannot be parsed, everything before an `@` may be a
    /// password, in which nothing was escaped.
    private static func shown(_ url: String, isBroken: Bool = false) -> String {
        let begin = CommandURL.schemeEnd(url) ?? url.startIndex
        // By bytes: each of these and a combining mark after it are one character.
        let bytes = url.utf8
        let end = isBroken ? url.endIndex : bytes[begin...].firstIndex { "/?#".utf8.contains($0) } ?? url.endIndex
        let at = bytes[begin..<end].lastIndex(of: UInt8(ascii: "@"))
        let rest = bytes[(at.map(bytes.index(after:)) ?? begin)...].prefix { !"?#".utf8.contains($0) }
        return String(decoding: bytes[..<begin], as: UTF8.self) + String(decoding: rest, as: UTF8.self)
    }

    private static func place(of url: String) -> (host: String, authority: String) {
        let bare = shown(url)
        let rest = bare.utf8[(CommandURL.schemeEnd(bare) ?? bare.startIndex)...]
        let authority = rest.prefix { $0 != UInt8(ascii: "/") }
        let isBracketed = authority.first == UInt8(ascii: "[")
        let host = isBracketed ? authority : authority.prefix { $0 != UInt8(ascii: ":") }
        return (String(decoding: host, as: UTF8.self), String(decoding: authority, as: UTF8.self))
    }
}
