internal import FerryJSON
internal import Foundation

/// A document in the shape of a real one, generated here, and the ways to decode it.
struct JSONShape {
    let name: String
    /// Followed by 64 readable bytes, like bodies.
    private let bytes: [UInt8]
    let count: Int
    /// The ways, in the order of measuring.
    let ways: [(rival: JSONRival, run: (UnsafeRawBufferPointer, Data) throws -> Void)]
    /// How many times faster than JSONDecoder each should be.
    let goals: [JSONRival: Double]

    private init(
        _ name: String, _ text: String, goals: [JSONRival: Double],
        _ ways: [(rival: JSONRival, run: (UnsafeRawBufferPointer, Data) throws -> Void)]
    ) {
        self.name = name
        bytes = Array(text.utf8) + [UInt8](repeating: 0, count: JSONSample.spare)
        count = bytes.count - JSONSample.spare
        self.ways = ways
        self.goals = goals
    }

    /// Decoded by both decoders, with the same strategies.
    static func decodable<T: Decodable>(
        _ name: String, _ type: T.Type, _ text: String, goal: Double,
        foundation: JSONDecoder = JSONDecoder(), ferry: FerryJSONDecoder = FerryJSONDecoder()
    ) -> JSONShape {
        JSONShape(name, text, goals: [.codable: goal], ways(type, foundation, ferry))
    }

    /// Encoded by both encoders.
    static func encodable<T: Codable>(
        _ name: String, _ type: T.Type, _ text: String, ferry: FerryJSONEncoder = FerryJSONEncoder(),
        foundation: JSONEncoder = JSONEncoder()
    ) -> JSONShape {
        let value = Result { try FerryJSONDecoder().decode(type, from: Data(text.utf8)) }
        return JSONShape(
            name, text, goals: [.codable: 3],
            [
                (.foundation, { _, _ in _ = try foundation.encode(value.get()) }),
                (.codable, { _, _ in _ = try ferry.encode(value.get()) }),
            ])
    }

    /// Also decoded by hand.
    static func convertible<T: Decodable & JSONConvertible>(
        _ name: String, _ type: T.Type, _ text: String
    ) -> JSONShape {
        let own = ways(type, JSONDecoder(), FerryJSONDecoder())
        return JSONShape(
            name, text, goals: [.codable: 5, .convertible: 12],
            own + [
                (.parse, { text, _ in _ = try JSON(parsing: text, spare: JSONSample.spare) }),
                (.convertible, { text, _ in _ = try JSON(parsing: text, spare: JSONSample.spare).value(as: T.self) }),
            ])
    }

    private static func ways<T: Decodable>(
        _ type: T.Type, _ foundation: JSONDecoder, _ ferry: FerryJSONDecoder
    ) -> [(rival: JSONRival, run: (UnsafeRawBufferPointer, Data) throws -> Void)] {
        [
            (.foundation, { _, data in _ = try foundation.decode(type, from: data) }),
            (.codable, { text, _ in _ = try ferry.decode(type, from: text, spare: JSONSample.spare) }),
        ]
    }

    func withText<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }

    /// A value encoded by both encoders.
    var data: Data { withText { Data($0) } }
}

extension JSONShape {
    /// Documents like those of well-known services, and then one for each way to use a decoder.
    static var all: [JSONShape] { documents + widths + uses + encoded }

    private static var documents: [JSONShape] {
        [
            .convertible("posts, all of 23 and 40 keys", [Post].self, JSONShapeText.posts(60)),
            .convertible("posts, 7 of 23 keys", [PostHead].self, JSONShapeText.posts(60)),
            .convertible("authors, all of 40 keys", [Author].self, JSONShapeText.authors(100)),
            .convertible("authors, 7 of 40 keys", [AuthorHead].self, JSONShapeText.authors(100)),
            .decodable(
                "posts, keys from snake case", [Post].self, JSONShapeText.snake(JSONShapeText.posts(60)), goal: 3,
                foundation: foundation { $0.keyDecodingStrategy = .convertFromSnakeCase },
                ferry: ferry { $0.keyDecodingStrategy = .convertFromSnakeCase }),
            .convertible("catalog of events", Catalog.self, JSONShapeText.catalog(200)),
            .convertible("outline of points", Outline.self, JSONShapeText.outline(20_000)),
            .convertible("events of a repository", [HostingEvent].self, JSONShapeText.events(100)),
        ]
    }

    private static var widths: [JSONShape] {
        [4, 16, 17, 32, 64, 128, 256].flatMap { width in
            [
                JSONShape.convertible(
                    "\(width) members, all wanted", [AllMembers].self, JSONShapeText.members(width, 20_000 / width)),
                JSONShape.convertible(
                    "\(width) members, 3 wanted", [ThreeMembers].self, JSONShapeText.members(width, 20_000 / width)),
            ]
        }
    }

    /// Named by what is encoded: the rows name the coder, Foundation's or Ferry's.
    private static var encoded: [JSONShape] {
        let sorted = JSONEncoder()
        sorted.outputFormatting = .sortedKeys
        var ferrySorted = FerryJSONEncoder()
        ferrySorted.outputFormatting = .sortedKeys
        return [
            .encodable("posts, encoded", [Post].self, JSONShapeText.posts(60)),
            .encodable(
                "posts, encoded with sorted keys", [Post].self, JSONShapeText.posts(60), ferry: ferrySorted,
                foundation: sorted),
            .encodable("authors, encoded", [Author].self, JSONShapeText.authors(100)),
            .encodable("catalog, encoded", Catalog.self, JSONShapeText.catalog(200)),
            .encodable("outline, encoded", Outline.self, JSONShapeText.outline(20_000)),
            .encodable("events, encoded", [HostingEvent].self, JSONShapeText.events(100)),
            .encodable("questions, encoded", [Question].self, JSONShapeText.questions),
        ]
    }

    private static var uses: [JSONShape] {
        [
            .decodable("array, elements with try?", [Lenient].self, JSONShapeText.lenient(2000), goal: 2),
            .decodable("cascade of types", [AnyValue].self, JSONShapeText.posts(20), goal: 2),
            .decodable("Decimal of 30 digits", [Decimal].self, JSONShapeText.decimals(2000, digits: 30), goal: 2),
            .decodable("Decimal of 7 digits", [Decimal].self, JSONShapeText.decimals(2000, digits: 7), goal: 2),
            .decodable("[String: Int]", [[String: Int]].self, JSONShapeText.counts(50, of: 40), goal: 2),
            .decodable("[String: String]", [[String: String]].self, JSONShapeText.texts(50, of: 40), goal: 2),
            .decodable("[Enum: Int]", [[CountKey: Int]].self, JSONShapeText.enumCounts(400), goal: 2),
            .decodable("[Enum]", [CountKey].self, JSONShapeText.enums(4000), goal: 2),
            .decodable(
                "posts, keys by a closure", [Post].self, JSONShapeText.upper(JSONShapeText.posts(60)), goal: 2,
                foundation: foundation { $0.keyDecodingStrategy = .custom { lowered($0) } },
                ferry: ferry { $0.keyDecodingStrategy = .custom { lowered($0) } }),
            .decodable("URL", [URL].self, JSONShapeText.urls(1000), goal: 2),
            .decodable("UUID", [UUID].self, JSONShapeText.uuids(1000), goal: 2),
            .decodable(
                "dates of ISO 8601", [Date].self, JSONShapeText.dates(1000), goal: 2,
                foundation: foundation { $0.dateDecodingStrategy = .iso8601 },
                ferry: ferry { $0.dateDecodingStrategy = .iso8601 }),
            .decodable("two arrays in turns, all refused", Refused.self, JSONShapeText.refused(2000), goal: 2),
        ]
    }

    private static func foundation(_ configure: (JSONDecoder) -> Void) -> JSONDecoder {
        let decoder = JSONDecoder()
        configure(decoder)
        return decoder
    }

    private static func ferry(_ configure: (inout FerryJSONDecoder) -> Void) -> FerryJSONDecoder {
        var decoder = FerryJSONDecoder()
        configure(&decoder)
        return decoder
    }

    private static func lowered(_ path: [any CodingKey]) -> any CodingKey {
        let name = path[path.count - 1].stringValue
        return MemberKey(stringValue: name.prefix(1).lowercased() + name.dropFirst())
    }
}

/// A key of any name.
struct MemberKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }

    static let all = (0..<256).map { MemberKey(stringValue: "member\($0)") }
}

/// Every member of an object, in order.
struct AllMembers: Decodable, JSONConvertible {
    var sum = 0

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: MemberKey.self)
        let width = try container.decode(Int.self, forKey: MemberKey.all[0])
        for place in 1..<width { sum &+= try container.decode(Int.self, forKey: MemberKey.all[place]) }
    }

    init(json: JSON) throws {
        let width: Int = try json.value("member0")
        for place in 1..<width { sum &+= try json.value(MemberKey.all[place].stringValue, as: Int.self) }
    }
}

/// The first, the middle and the last member of an object, whatever their number.
struct ThreeMembers: Decodable, JSONConvertible {
    var sum = 0

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: MemberKey.self)
        let width = try container.decode(Int.self, forKey: MemberKey.all[0])
        for place in [width / 2, width - 1] { sum &+= try container.decode(Int.self, forKey: MemberKey.all[place]) }
    }

    init(json: JSON) throws {
        let width: Int = try json.value("member0")
        for place in [width / 2, width - 1] { sum &+= try json.value(MemberKey.all[place].stringValue, as: Int.self) }
    }
}

/// A number, or a text in its place.
struct Lenient: Decodable {
    let number: Int?

    init(from decoder: any Decoder) throws {
        number = try? decoder.singleValueContainer().decode(Int.self)
    }
}

/// Two arrays whose elements are refused alternately.
struct Refused: Decodable {
    enum Keys: CodingKey { case left, right }
    var count = 0

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        var left = try container.nestedUnkeyedContainer(forKey: .left)
        var right = try container.nestedUnkeyedContainer(forKey: .right)
        while !left.isAtEnd && !right.isAtEnd {
            if (try? left.superDecoder().singleValueContainer().decode(Int.self)) == nil { count += 1 }
            if (try? right.superDecoder().singleValueContainer().decode(Int.self)) == nil { count += 1 }
        }
    }
}

/// Any value, found by trying one type after another.
enum AnyValue: Decodable {
    case null, bool(Bool), int(Int), double(Double), string(String), array([AnyValue]), object([String: AnyValue])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .int(value)
        } else if let value = try? container.decode(Double.self) {
            self = .double(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([AnyValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: AnyValue].self))
        }
    }
}

/// Keys and values of a dictionary.
enum CountKey: String, Codable, CodingKeyRepresentable {
    case first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth
    static let all: [CountKey] = [
        .first, .second, .third, .fourth, .fifth, .sixth, .seventh, .eighth, .ninth, .tenth,
    ]
}
