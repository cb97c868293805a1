public import Ferry
import FerrySynchronization
import FerryTransport

extension StubTransport {
    /// Creates a stub that responds from a recording. Each request gets the response of the first unused exchange with
    /// the same method, URL and body. When all of these were used, it gets that of the last one.
    ///
    ///     let stub = StubTransport(har: try HTTPArchive(contentsOf: path))
    ///
    /// A value recorded as `***` matches any value. Bodies are compared if the recording has one; the boundary of a
    /// multipart body does not matter. A request without a match fails with `connect`, and the message of the error
    /// names the closest recorded exchange. The same happens if the matching response has no recorded body. A recorded
    /// failure is replayed as a failure.
    public convenience init(har archive: HTTPArchive) {
        let player = ArchivePlayer(archive)
        self.init { request in player.response(to: request) }
    }
}

/// Chooses the recorded exchange whose response a request gets.
final class ArchivePlayer: Sendable {
    /// An exchange, and what of it is compared with requests.
    private struct Recorded: Sendable {
        var entry: HTTPArchive.Entry
        /// The address, and each argument of the query.
        var parts: [Substring]
        /// `nil` if there was none, or if it was not recorded.
        var body: [UInt8]?
    }

    private struct Address: Hashable {
        var method: String
        /// `nil` for recorded ones with a masked value, which may match any other.
        var url: Substring?
    }

    private let recorded: [Recorded]
    /// In the order of the recording.
    private let places: [Address: [Int]]
    private let used: Mutex<[Bool]>

    init(_ archive: HTTPArchive) {
        recorded = archive.entries.map { entry in
            Recorded(entry: entry, parts: Self.parts(of: entry.request.url), body: entry.request.postData?.bytes)
        }
        places = Dictionary(grouping: recorded.indices) { [recorded] place in
            let (url, method) = (recorded[place].parts[0], recorded[place].entry.request.method)
            return Address(method: method, url: url.contains("***") ? nil : url)
        }
        used = Mutex(Array(repeating: false, count: archive.entries.count))
    }

    func response(to request: StubTransport.Request) -> StubTransport.Response {
        let parts = Self.parts(of: request.url)
        let exact = places[Address(method: request.method.rawValue, url: parts[0])] ?? []
        let masked = places[Address(method: request.method.rawValue, url: nil)] ?? []
        let places = masked.isEmpty ? exact : (exact + masked).sorted()
        let chosen = used.withLock { used in
            let chosen =
                places.first { !used[$0] && matches(recorded[$0], parts, request) }
                ?? places.last { used[$0] && matches(recorded[$0], parts, request) }
            if let chosen { used[chosen] = true }
            return chosen
        }
        guard let chosen else { return .unmatched(unmatched(request, parts)) }
        return response(of: recorded[chosen].entry)
    }

    private func response(of entry: HTTPArchive.Entry) -> StubTransport.Response {
        let response = entry.response
        // Also if its head had arrived before.
        if response.status == 0 || entry._error != nil {
            return .unmatched("the recorded exchange failed: \(entry._error ?? "no reason was recorded")")
        }
        guard let body = response.content.bytes else {
            return .unmatched("the body of the response to \(entry.request.url) was not recorded")
        }
        var headers = Headers()
        for field in response.headers where Self.isName(field.name) && Self.isKept(field, of: entry, body) {
            // Browsers join several values of one name with line feeds.
            for value in field.value.split(separator: "\n", omittingEmptySubsequences: false) {
                if value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) {
                    headers.append(field.name, String(value))
                }
            }
        }
        return .response(status: response.status, headers: headers, body: body)
    }

    /// Whether a field is true of the replayed response, too. Bodies are recorded after decoding, and their secrets are
    /// masked. A response to HEAD, and a 304, describe a body that they do not have.
    private static func isKept(_ field: HTTPArchive.Pair, of entry: HTTPArchive.Entry, _ body: [UInt8]) -> Bool {
        let describesOther = entry.request.method == "HEAD" || entry.response.status == 304
        switch field.name.lowercased() {
        case "transfer-encoding": return false
        case "content-encoding": return describesOther || entry.response.content._isCoded == true
        case "content-length": return describesOther || field.value == String(body.count)
        default: return true
        }
    }

    /// HTTP/2 pseudo-fields, which begin with a colon, are part of the status line here.
    private static func isName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
    }

    // MARK: Matching

    private func matches(_ recorded: Recorded, _ parts: [Substring], _ request: StubTransport.Request) -> Bool {
        guard Self.matches(recorded.parts, parts) else { return false }
        guard let body = recorded.body, let data = recorded.entry.request.postData else { return true }
        let type = request.headers["Content-Type"] ?? data.mimeType
        return RecordedBody.matches(body, data.mimeType, request.body, type)
    }

    /// Compares part by part: the address, and each argument of the query in its position.
    private static func matches(_ left: [Substring], _ right: [Substring]) -> Bool {
        guard left.count == right.count, RecordedBody.matchesAround(left[0].utf8, right[0].utf8) else { return false }
        return zip(left, right).dropFirst().allSatisfy { RecordedBody.matchesArgument($0.utf8, $1.utf8) }
    }

    private static func parts(of url: String) -> [Substring] {
        let address = url.prefix { $0 != "?" && $0 != "#" }
        var bare = address
        if let scheme = address.firstRange(of: "://") {
            let rest = address[scheme.upperBound...]
            if let at = rest.prefix(while: { $0 != "/" }).lastIndex(of: "@") {
                bare = address[..<scheme.upperBound] + rest[rest.index(after: at)...]
            }
        }
        let query = url[address.endIndex...].dropFirst().prefix { $0 != "#" }
        return [bare] + query.split(separator: "&")
    }

    private func unmatched(_ request: StubTransport.Request, _ parts: [Substring]) -> String {
        let asked = "\(request.method) \(request.url)"
        guard let found = recorded.max(by: { closeness($0.entry, request) < closeness($1.entry, request) }) else {
            return "the recording is empty; asked for \(asked)"
        }
        let closest = found.entry
        let sameExceptBody =
            closest.request.method == request.method.rawValue && Self.matches(found.parts, parts)
        return "no recorded exchange matches \(asked); the closest is \(closest.request.method) \(closest.request.url)"
            + (sameExceptBody ? ", with another body" : "")
    }

    /// How much of the URL agrees from its start, and whether the method does.
    private func closeness(_ entry: HTTPArchive.Entry, _ request: StubTransport.Request) -> Int {
        let common = zip(entry.request.url.utf8, request.url.utf8).prefix { $0 == $1 }.count
        return common * 2 + (entry.request.method == request.method.rawValue ? 1 : 0)
    }
}

/// Compares bodies with recorded ones, in which a masked value matches any value.
package enum RecordedBody {
    /// `type` and `otherType` are the media types of the two: a multipart body may have another boundary.
    package static func matches(_ recorded: [UInt8], _ type: String, _ body: [UInt8], _ otherType: String) -> Bool {
        if recorded == body { return true }
        switch BodyFormat(type: type) {
        case .form:
            // It may also be JSON that was sent as a form.
            if SecretBodies.isJSONForm(recorded) {
                if SecretBodies.matchesJSON(recorded, body, comparingTexts: matchesText) { return true }
                return recorded.contains(Array("***".utf8)) && matchesLines(recorded, body, matchesText)
            }
            let (left, right) = (arguments(recorded), arguments(body))
            return left.count == right.count && zip(left, right).allSatisfy(matchesArgument)
        case .json: return SecretBodies.matchesJSON(recorded, body)
        case .lines: return matchesLines(recorded, body)
        case .events: return matchesAround(recorded, body)
        case .parts(let boundary?, _):
            guard case .parts(let otherBoundary?, _) = BodyFormat(type: otherType),
                let left = BodyFormat.parts(of: recorded, between: boundary),
                let right = BodyFormat.parts(of: body, between: otherBoundary)
            else { return false }
            return left.count == right.count && zip(left, right).allSatisfy(matchesPart)
        case .parts, .message, .other: return false
        }
    }

    private static func arguments(_ form: [UInt8]) -> [ArraySlice<UInt8>] {
        form.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
    }

    /// The masked values of a URL or a form match any value.
    private static func matchesText(_ recorded: String, _ text: String) -> Bool {
        matchesAround(recorded.utf8, text.utf8)
    }

    private static func matchesLines(
        _ recorded: [UInt8], _ body: [UInt8], _ comparison: SecretBodies.Comparison? = nil
    ) -> Bool {
        let (left, right) = (BodyFormat.lines(of: recorded), BodyFormat.lines(of: body))
        return left.count == right.count && zip(left, right).allSatisfy { matchesLine($0.text, $1.text, comparison) }
    }

    /// A masked line was written anew, so that its spaces may differ.
    private static func matchesLine(
        _ recorded: ArraySlice<UInt8>, _ line: ArraySlice<UInt8>, _ comparison: SecretBodies.Comparison?
    ) -> Bool {
        if recorded == line { return true }
        // A record of RFC 7464 begins with 0x1E.
        let (left, right) = (recorded.drop { $0 <= 0x20 }, line.drop { $0 <= 0x20 })
        return SecretBodies.matchesJSON(Array(left), Array(right), comparingTexts: comparison)
    }

    private static func matchesPart(_ recorded: BodyFormat.Part, _ part: BodyFormat.Part) -> Bool {
        guard recorded.head == part.head else { return false }
        if recorded.content == part.content || recorded.content.elementsEqual("***".utf8) { return true }
        let type = recorded.field("Content-Type") ?? ""
        // Parts within parts are never masked.
        if case .parts = BodyFormat(type: type) { return false }
        return matches(Array(recorded.content), type, Array(part.content), type)
    }

    /// Compares an argument of a query or a form. After a masked value, arguments that are separated by semicolons may
    /// follow or be missing.
    static func matchesArgument(_ recorded: some Collection<UInt8>, _ argument: some Collection<UInt8>) -> Bool {
        if recorded.elementsEqual(argument) { return true }
        return recorded.firstRange(of: Array("=***".utf8)) != nil && matchesAround(recorded, argument)
    }

    /// Whether a text agrees with a recorded one outside of the marks in that, each of which stands for any text.
    static func matchesAround(_ recorded: some Collection<UInt8>, _ text: some Collection<UInt8>) -> Bool {
        let mark = Array("***".utf8)
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
}

extension StubTransport.Response {
    /// A failed connection with this message.
    static func unmatched(_ message: String) -> StubTransport.Response {
        var failure = TransferFailure(.connect, .connectFailed)
        failure.message = message
        return .failure(failure)
    }
}
