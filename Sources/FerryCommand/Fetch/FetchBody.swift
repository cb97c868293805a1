internal import Ferry
internal import FoundationEssentials

/// The body that the command line describes. Files are read as the socket takes them.
enum FetchBody {
    static func make(_ arguments: ParsedArguments, isRepeated: Bool = false) throws -> RequestBody? {
        let kinds = ["data", "form", "multipart", "json-body"].filter(arguments.has)
        if kinds.count > 1 { throw UsageError("--\(kinds[0]) and --\(kinds[1]) exclude each other") }
        switch kinds.first {
        case "data": return try data(arguments.all("data"), isSentOnce: try !isRepeated && isSentOnce(arguments))
        case "form": return .string(URLQuery.encoded(try arguments.pairs("form")), contentType: formType)
        case "multipart": return .multipart(try multipart(arguments.pairs("multipart")))
        case "json-body": return try json(arguments.last("json-body") ?? "")
        default: return nil
        }
    }

    private static let formType = "application/x-www-form-urlencoded"

    /// Standard input can be read once: where it may be needed again it is held in memory. A redirect may ask for it
    /// (307, 308), and redirects are followed unless they are turned off.
    private static func isSentOnce(_ arguments: ParsedArguments) throws -> Bool {
        let follows = try arguments.integer("max-redirects", in: 0...Int.max) != 0
        return !follows && !["repeat", "retries", "digest"].contains(where: arguments.has)
    }

    /// One value is sent as it is; several are parted by `&`.
    private static func data(_ values: [String], isSentOnce: Bool) throws -> RequestBody {
        if values.count == 1, values[0].hasPrefix("@") {
            let path = String(values[0].dropFirst())
            if InputFile.isRegular(path) { return .file(try InputFile.readable(path), contentType: formType) }
            if path == "-" && isSentOnce { return .stream(once: StandardInput(), contentType: formType) }
        }
        let parts = try values.map(content)
        return .bytes(Array(parts.joined(separator: [UInt8(ascii: "&")])), contentType: formType)
    }

    private static func json(_ value: String) throws -> RequestBody {
        let json = try content(value)
        guard (try? JSONDecoder().decode(AnyJSON.self, from: Data(json))) != nil else {
            throw UsageError("--json-body is not JSON")
        }
        return .bytes(json, contentType: "application/json")
    }

    /// `name=text`, or `name=@path`, behind which `;type=` and `;filename=` may follow in any order.
    private static func multipart(_ pairs: [(name: String, value: String)]) throws -> Multipart {
        var form = Multipart()
        for (name, value) in pairs {
            guard value.hasPrefix("@") else {
                form.append(name, value)
                continue
            }
            let words = value.dropFirst().split(separator: ";", omittingEmptySubsequences: false)
            var path = String(words[0])
            var type = "application/octet-stream"
            var filename: String?
            for word in words.dropFirst() {
                if word.hasPrefix("type=") {
                    type = String(word.dropFirst(5))
                } else if word.hasPrefix("filename=") {
                    filename = String(word.dropFirst(9))
                } else {
                    // It belongs to the path.
                    path += ";" + word
                }
            }
            if InputFile.isRegular(path) {
                form.append(name, file: try InputFile.readable(path), filename: filename, contentType: type)
            } else {
                form.append(name, try InputFile.bytes(at: path), filename: filename ?? "-", contentType: type)
            }
        }
        return form
    }

    /// The value itself, or the content of the file it names.
    private static func content(_ value: String) throws -> [UInt8] {
        guard value.hasPrefix("@") else { return Array(value.utf8) }
        return try InputFile.bytes(at: String(value.dropFirst()))
    }
}

/// Any JSON: the decoder has read it to the end before it asks what to make of it.
private struct AnyJSON: Decodable {
    init(from decoder: any Decoder) {}
}
