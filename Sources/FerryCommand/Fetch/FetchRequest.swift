internal import Ferry
internal import FoundationEssentials
internal import Glibc

/// The request that the command line describes.
struct FetchRequest: Request {
    var path: String
    var method = HTTPMethod.get
    var headers = Headers()
    var body: RequestBody?
    var authorization: Authorization?
    var timeouts: Timeouts?
    var deadline: Duration?
    var maxBodyBytes: Int?

    /// Every status is let through: the command itself judges, as it wants to print the body all the same.
    var statusValidation: StatusValidation? { .any }

    init(url: String, _ arguments: ParsedArguments) throws {
        path = Self.appending(try arguments.pairs("query"), to: url)
        for field in try arguments.headerFields("header") { headers.append(field.name, field.value) }
        body = try Self.body(arguments)
        method = HTTPMethod(arguments.last("request") ?? (body == nil ? "GET" : "POST"))
        authorization = try Self.authorization(arguments)
        timeouts = try Self.timeouts(arguments)
        deadline = try arguments.seconds("deadline")
        maxBodyBytes = try arguments.integer("max-body", in: 1...Int.max)
    }

    private static func body(_ arguments: ParsedArguments) throws -> RequestBody? {
        let kinds = ["data", "form", "json-body"].filter(arguments.has)
        switch kinds.first {
        case _ where kinds.count > 1: throw UsageError("--\(kinds[0]) and --\(kinds[1]) exclude each other")
        case "data":
            let parts = try arguments.all("data").map(content)
            return .bytes(Array(parts.joined(separator: [UInt8(ascii: "&")])), contentType: formType)
        case "form":
            return .string(formEncoded(try arguments.pairs("form")), contentType: formType)
        case "json-body":
            let json = try content(arguments.last("json-body") ?? "")
            guard (try? JSONDecoder().decode(AnyJSON.self, from: Data(json))) != nil else {
                throw UsageError("--json-body is not JSON")
            }
            return .bytes(json, contentType: "application/json")
        default: return nil
        }
    }

    private static let formType = "application/x-www-form-urlencoded"

    private static func authorization(_ arguments: ParsedArguments) throws -> Authorization? {
        if let token = arguments.last("bearer") {
            if arguments.has("basic") { throw UsageError("--basic and --bearer exclude each other") }
            return .bearer(token)
        }
        guard let pair = arguments.last("basic") else { return nil }
        guard let colon = pair.firstIndex(of: ":") else { throw UsageError("--basic wants USER:PASSWORD") }
        return .basic(String(pair[..<colon]), String(pair[pair.index(after: colon)...]))
    }

    private static func timeouts(_ arguments: ParsedArguments) throws -> Timeouts? {
        var timeouts = Timeouts()
        timeouts.connect = try arguments.seconds("connect-timeout")
        if let total = try arguments.seconds("timeout") {
            // Whoever allows 120 seconds also allows 120 seconds of silence.
            timeouts.total = total
            timeouts.idle = nil
        }
        if let rate = try arguments.integer("low-speed", in: 1...Int.max) {
            timeouts.lowSpeed = .init(bytesPerSecond: rate, time: .seconds(10))
        }
        return timeouts
    }

    /// The value itself, or the content of the file it names.
    private static func content(_ value: String) throws -> [UInt8] {
        guard value.hasPrefix("@") else { return Array(value.utf8) }
        let path = value == "@-" ? "/dev/stdin" : String(value.dropFirst())
        do {
            return Array(try Data(contentsOf: URL(filePath: path)))
        } catch {
            throw InputError("\(path): cannot be read")
        }
    }

    /// Before a fragment, after a query that is already there.
    private static func appending(_ pairs: [(name: String, value: String)], to url: String) -> String {
        if pairs.isEmpty { return url }
        let fragment = url.firstIndex(of: "#") ?? url.endIndex
        let start = url[..<fragment]
        let separator = start.contains("?") ? (start.hasSuffix("?") || start.hasSuffix("&") ? "" : "&") : "?"
        return start + separator + formEncoded(pairs) + url[fragment...]
    }

    /// In the order given, and a name as often as it was given: both may matter to a server.
    private static func formEncoded(_ pairs: [(name: String, value: String)]) -> String {
        pairs.map { "\(percentEncoded($0.name))=\(percentEncoded($0.value))" }.joined(separator: "&")
    }

    /// All but the unreserved characters of RFC 3986, 2.3.
    private static func percentEncoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var encoded: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.append(byte)
            default:
                encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }
}

/// Any JSON: the decoder has read it to the end before it asks what to make of it.
private struct AnyJSON: Decodable {
    init(from decoder: any Decoder) {}
}
