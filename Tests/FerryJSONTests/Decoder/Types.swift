import Foundation

// Types of every shape that Codable supports.

struct Plain: Codable, Equatable {
    var text: String
    var flag: Bool
    var int: Int
    var double: Double
    var maybe: String?
    var maybeInt: Int?
    var missing: Bool?
}

struct Numbers: Codable, Equatable {
    var a: Int8, b: UInt8, c: Int16, d: UInt16, e: Int32, f: UInt32, g: Int64, h: UInt64, i: UInt, j: Float
}

struct Nested: Codable, Equatable {
    struct Inner: Codable, Equatable {
        var id: Int
        var names: [String]
    }
    var inner: Inner
    var list: [Inner]
    var matrix: [[Int]]
    var byName: [String: Inner]
    var optional: Inner?
}

enum Kind: String, Codable, Equatable { case one, two }
enum Code: Int, Codable, Equatable { case one = 1, two = 2 }

struct Enums: Codable, Equatable {
    var kind: Kind
    var code: Code
    var kinds: [Kind]
}

enum Payload: Codable, Equatable {
    case none
    case one(Int)
    case labelled(name: String, count: Int?)
}

struct IntKeys: Codable, Equatable {
    var values: [Int: String]
    var lists: [Int: [Int]]
}

struct Foundations: Codable, Equatable {
    var date: Date
    var data: Data
    var url: URL
    var decimal: Decimal
    var uuid: UUID
    var dates: [Date]
    var urls: [String: URL]
}

/// Flattened by hand: nested containers of both kinds.
struct Flattened: Decodable, Equatable {
    enum Keys: String, CodingKey { case outer, list }
    enum InnerKeys: String, CodingKey { case value, deep }
    var value: Int
    var first: String
    var pair: [Int]
    var rest: Int?

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        let outer = try container.nestedContainer(keyedBy: InnerKeys.self, forKey: .outer)
        value = try outer.decode(Int.self, forKey: .value)
        var deep = try outer.nestedUnkeyedContainer(forKey: .deep)
        first = try deep.decode(String.self)
        var list = try container.nestedUnkeyedContainer(forKey: .list)
        var inner = try list.nestedUnkeyedContainer()
        pair = [try inner.decode(Int.self), try inner.decode(Int.self)]
        rest = try list.nestedContainer(keyedBy: InnerKeys.self).decodeIfPresent(Int.self, forKey: .value)
    }
}

class Base: Decodable {
    let id: Int
}

final class Derived: Base, Equatable {
    let name: String
    private enum Keys: String, CodingKey { case name }

    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        name = try container.decode(String.self, forKey: .name)
        try super.init(from: container.superDecoder())
    }

    static func == (a: Derived, b: Derived) -> Bool { a.id == b.id && a.name == b.name }
}

/// Reports what the containers say about themselves.
struct Inspected: Decodable, Equatable {
    struct AnyKey: CodingKey, Equatable {
        var stringValue: String
        var intValue: Int?
        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) {
            stringValue = "\(intValue)"
            self.intValue = intValue
        }
    }

    var facts: [String] = []

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        facts.append("keys \(container.allKeys.map(\.stringValue).sorted())")
        facts.append("contains \(container.contains(AnyKey(stringValue: "list")!))")
        var list = try container.nestedUnkeyedContainer(forKey: AnyKey(stringValue: "list")!)
        facts.append("list \(list.count ?? -1) \(list.isAtEnd) \(list.currentIndex) \(path(list.codingPath))")
        while !list.isAtEnd {
            if try list.decodeNil() {
                facts.append("null at \(list.currentIndex)")
            } else {
                let element = try list.superDecoder()
                facts.append("at \(list.currentIndex) \(path(element.codingPath))")
                if let text = try? element.singleValueContainer().decode(String.self) { facts.append(text) }
            }
        }
        let parent = try container.superDecoder(forKey: AnyKey(stringValue: "absent")!)
        facts.append("\(path(parent.codingPath)) \(try parent.singleValueContainer().decodeNil())")
        facts.append("\(try container.decodeIfPresent([Int].self, forKey: AnyKey(stringValue: "numbers")!) ?? [])")
        facts.append("\(decoder.userInfo[CodingUserInfoKey(rawValue: "k")!] ?? "none")")
        _ = try list.decode(Int.self)
    }

    private func path(_ path: [any CodingKey]) -> String { path.map(\.stringValue).joined(separator: ".") }
}

struct Snake: Codable, Equatable {
    var createdAt: Int
    var _lastSeenURL: String?
    var innerValue: [SnakeInner]
    var counts: [String: Int]
}

struct SnakeInner: Codable, Equatable {
    var someId: Int
    var deepValue: [String: [String: Int]]
}
