import FerryJSON
import Foundation
import Testing

/// Containers are reused from one object to the next, which must not be noticeable.
@Suite struct ContainerReuseTests {
    private enum Name: String, CodingKey { case id, next }

    /// Counts how often a container was the previous one, which only the decoder held in between.
    private final class Watch: @unchecked Sendable {
        static let key = CodingUserInfoKey(rawValue: "watch")!
        private weak var last: AnyObject?
        private(set) var again = 0

        func sees(_ object: AnyObject) {
            if object === last { again += 1 }
            last = object
        }
    }

    private struct Passing: Decodable {
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Name.self)
            let box = try #require(Mirror(reflecting: container).children.first).value as AnyObject
            try #require(decoder.userInfo[Watch.key] as? Watch).sees(box)
        }
    }

    /// Keeps its container after it was decoded.
    private struct Holding: Decodable {
        let container: KeyedDecodingContainer<Name>

        init(from decoder: any Decoder) throws { container = try decoder.container(keyedBy: Name.self) }
        var id: Int? { try? container.decode(Int.self, forKey: .id) }
    }

    @Test func elementsHaveOneContainerAfterTheOther() throws {
        let watch = Watch()
        var decoder = FerryJSONDecoder()
        decoder.userInfo[Watch.key] = watch
        _ = try decoder.decode([Passing].self, from: Data("[{},{},{}]".utf8))
        #expect(watch.again == 2)
    }

    @Test func whoKeepsAContainerHasItsOwnMembers() throws {
        let text = Data(#"[{"id":1},{"id":2},{"id":3}]"#.utf8)
        let held = try FerryJSONDecoder().decode([Holding].self, from: text)
        for _ in 0..<50 { _ = try FerryJSONDecoder().decode([Holding].self, from: Data(#"[{"id":7}]"#.utf8)) }
        #expect(held.map(\.id) == [1, 2, 3])
        #expect(throws: DecodingError.self) { try held[1].container.decode(String.self, forKey: .id) }
        #expect(held.map { $0.container.allKeys } == [[.id], [.id], [.id]])
    }

    /// An outer object is read further after the inner ones, whose keys have the same type.
    private final class Link: Decodable {
        let next: Link?
        let again: Link?
        let id: Int

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Name.self)
            next = try container.decodeIfPresent(Link.self, forKey: .next)
            again = try container.decodeIfPresent(Link.self, forKey: .next)
            id = try container.decode(Int.self, forKey: .id)
        }

        var ids: [Int] { [id] + (next?.ids ?? []) }
    }

    @Test func objectsWithinObjectsOfTheirType() throws {
        let text = Data(#"[{"id":1,"next":{"next":{"id":3},"id":2}},{"next":{"id":5},"id":4}]"#.utf8)
        let links = try FerryJSONDecoder().decode([Link].self, from: text)
        #expect(links.map(\.ids) == [[1, 2, 3], [4, 5]])
        #expect(links.map { $0.again?.ids } == [[2, 3], [5]])
    }

    /// More types of keys than there is room for.
    private struct Many: Decodable {
        enum A: CodingKey { case a }
        enum B: CodingKey { case a }
        enum C: CodingKey { case a }
        enum D: CodingKey { case a }
        enum E: CodingKey { case a }
        enum F: CodingKey { case a }
        enum G: CodingKey { case a }
        enum H: CodingKey { case a }
        enum I: CodingKey { case a }
        enum J: CodingKey { case a }
        let sum: Int

        init(from decoder: any Decoder) throws {
            sum =
                try decoder.container(keyedBy: A.self).decode(Int.self, forKey: .a)
                + decoder.container(keyedBy: B.self).decode(Int.self, forKey: .a)
                + decoder.container(keyedBy: C.self).decode(Int.self, forKey: .a)
                + decoder.container(keyedBy: D.self).decode(Int.self, forKey: .a)
                + decoder.container(keyedBy: E.self).decode(Int.self, forKey: .a)
                + decoder.container(keyedBy: F.self).decode(Int.self, forKey: .a)
                + decoder.container(keyedBy: G.self).decode(Int.self, forKey: .a)
                + decoder.container(keyedBy: H.self).decode(Int.self, forKey: .a)
                + decoder.container(keyedBy: I.self).decode(Int.self, forKey: .a)
                + decoder.container(keyedBy: J.self).decode(Int.self, forKey: .a)
        }
    }

    @Test func manyTypesOfKeys() throws {
        let many = try FerryJSONDecoder().decode([Many].self, from: Data(#"[{"a":1},{"a":10},{"a":100}]"#.utf8))
        #expect(many.map(\.sum) == [10, 100, 1000])
    }

    /// One type of keys for objects with few members, with many, and for keys with and without conversion.
    @Test func smallAndWideObjectsTakeTurns() throws {
        let wide = (0..<40).map { #""k\#($0)":0"# }.joined(separator: ",")
        let text = Data(#"[{"id":1},{\#(wide),"id":2},{"id":3},{"id":4,\#(wide)}]"#.utf8)
        struct Item: Decodable { let id: Int }
        #expect(try FerryJSONDecoder().decode([Item].self, from: text).map(\.id) == [1, 2, 3, 4])
        var snake = FerryJSONDecoder()
        snake.keyDecodingStrategy = .convertFromSnakeCase
        struct Mixed: Decodable {
            let ownId: Int
            let counts: [String: Int]
        }
        let mixed = Data(#"[{"own_id":1,"counts":{"own_id":2}},{"counts":{"a_b":3},"own_id":4}]"#.utf8)
        let decoded = try snake.decode([Mixed].self, from: mixed)
        #expect(decoded.map(\.ownId) == [1, 4])
        #expect(decoded.map(\.counts) == [["own_id": 2], ["a_b": 3]])
    }

    /// Knowledge about types and objects is shared by threads, or belongs to each thread.
    @Test func manyThreadsDecodeAndLookUpAtOnce() async throws {
        struct Row: Codable, Equatable {
            let id: Int
            let names: [String: [Int]]
            let more: [Row]?
        }
        let row = #"{"more":[{"names":{},"id":1}],"id":2,"names":{"a":[1,2]},"x":null}"#
        let text = Data("[\(repeatElement(row, count: 50).joined(separator: ","))]".utf8)
        let json = try JSON(parsing: text)
        let expected = try JSONDecoder().decode([Row].self, from: text)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<20 {
                        #expect((try? FerryJSONDecoder().decode([Row].self, from: text)) == expected)
                        #expect((try? FerryJSONDecoder().decode([Row].self, from: json)) == expected)
                        #expect(json.array?.allSatisfy { $0["id"]?.int == 2 && $0["y"] == nil } == true)
                        #expect((try? FerryJSONEncoder().encode(expected[0]))?.isEmpty == false)
                    }
                }
            }
        }
    }

    private final class Told: Sendable {}

    /// Keeps its decoder, and makes containers from it after decoding.
    private struct Lazily: Decodable {
        let decoder: any Decoder

        init(from decoder: any Decoder) throws {
            self.decoder = decoder
            _ = try decoder.container(keyedBy: Name.self)
        }
    }

    @Test func nothingIsKeptForLongerThanWhatWasDecoded() throws {
        weak var told: Told?
        try {
            var decoder = FerryJSONDecoder()
            let own = Told()
            told = own
            decoder.userInfo[try #require(CodingUserInfoKey(rawValue: "told"))] = own
            let lazily = try decoder.decode(Lazily.self, from: Data(#"{"id":5}"#.utf8))
            let held = try decoder.decode(Holding.self, from: Data(#"{"id":6}"#.utf8))
            enum Other: CodingKey { case id }
            for _ in 0..<3 {
                #expect(try lazily.decoder.container(keyedBy: Name.self).decode(Int.self, forKey: .id) == 5)
                #expect(try lazily.decoder.container(keyedBy: Other.self).decode(Int.self, forKey: .id) == 5)
            }
            #expect(held.id == 6)
            #expect(throws: DecodingError.self) { try decoder.decode([Holding].self, from: Data(#"[{},4]"#.utf8)) }
        }()
        #expect(told == nil)
    }
}
