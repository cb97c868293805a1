internal import FerryJSON

/// The documents for measuring JSON: an array of questions, each with a list and an object in it.
struct JSONSample {
    let name: String
    /// Followed by 64 readable bytes, like bodies.
    private let bytes: [UInt8]
    let count: Int

    static let small = JSONSample(name: "2 KB", questions: 12)
    static let medium = JSONSample(name: "100 KB", questions: 600)
    static let large = JSONSample(name: "10 MB", questions: 58_000)
    static let all = [small, medium, large]

    /// The path of the small one on the servers.
    static let path = "/questions.json"

    static let spare = 64

    private init(name: String, questions: Int) {
        self.name = name
        let text = (0..<questions).map(Self.question).joined(separator: ",")
        bytes = Array("[\(text)]".utf8) + [UInt8](repeating: 0, count: Self.spare)
        count = bytes.count - Self.spare
    }

    private static func question(_ id: Int) -> String {
        """
        {"id":\(id),"title":"Question number \(id) of many","score":\(Double(id) * 1.25 + 0.5),"open":\(id % 2 == 0),\
        "tags":["swift","linux","json"],"owner":{"id":\(id * 77),"login":"user\(id)","active":true},"note":null}
        """
    }

    var text: [UInt8] { Array(bytes[..<count]) }

    func withText<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }
}

/// One element of the documents, decoded by both decoders and by hand.
struct Question: Codable, JSONConvertible {
    let id: Int
    let title: String
    let score: Double
    let open: Bool
    let tags: [String]
    let owner: Owner
    let note: String?

    static let schema: JSONSchema = [
        [
            "id": .integer, "title": .string, "score": .number, "open": .bool, "tags": [.string],
            "owner": ["id": .integer, "login": .string, "active": .bool], "note": .string.nullable.optional,
        ]
    ]
}

extension Question {
    init(json: JSON) throws {
        self.init(
            id: try json.value("id"), title: try json.value("title"), score: try json.value("score"),
            open: try json.value("open"), tags: try json.value("tags"), owner: try json.value("owner"),
            note: try json.value("note"))
    }
}

struct Owner: Codable, JSONConvertible {
    let id: Int
    let login: String
    let active: Bool
}

extension Owner {
    init(json: JSON) throws {
        self.init(id: try json.value("id"), login: try json.value("login"), active: try json.value("active"))
    }
}
