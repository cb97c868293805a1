import FerryJSON
import Foundation
import Testing

/// More than a hundred types, with random values and documents: both decoders, and both encoders, give the same
/// results.
@Suite struct RandomTypesTests {
    @Test func flags() throws { try checkAll(Bool.self) }
    @Test func integers() throws {
        try checkAll(Int.self)
        try checkAll(Int8.self)
        try checkAll(Int16.self)
        try checkAll(UInt8.self)
        try checkAll(UInt32.self)
        try checkAll(UInt64.self)
    }
    @Test func floatingPoint() throws {
        try checkAll(Double.self)
        try checkAll(Float.self)
    }
    @Test func texts() throws { try checkAll(String.self) }
    @Test func foundationsTypes() throws {
        try checkAll(Date.self)
        try checkAll(Data.self)
        try checkAll(URL.self)
        try checkAll(UUID.self)
        try checkAll(Decimal.self)
    }
    @Test func enumerations() throws {
        try checkAll(Kind.self)
        try checkAll(Code.self)
        try checkAll(FoundationBehaviourTests.Side.self)
        try checkAll(Payload.self)
    }
    @Test func structs() throws { try checkAll(RandomStruct.self) }

    /// Nine types of each: 19 × 9.
    private func checkAll<T: RandomValue>(_ type: T.Type) throws {
        try check(T.self)
        try check(T?.self)
        try check([T].self)
        try check([T?].self)
        try check([[T]].self)
        try check([String: T].self)
        try check([Int: T].self)
        try check([FoundationBehaviourTests.Side: T].self)
        try check(RandomPair<T, [String: T]>.self)
    }

    private func check<T: RandomValue>(_ type: T.Type) throws {
        var random = SeededRandom(seed: UInt64("\(type)".utf8.reduce(0) { $0 &* 31 &+ Int($1) } & 0xffff))
        for round in 0..<6 {
            let value = T.random(using: &random)
            let (foundation, ferry) = Self.encoders[round % Self.encoders.count]
            let theirs = Outcome { String(decoding: try foundation().encode(value), as: UTF8.self) }
            let ours = Outcome { String(decoding: try ferry.encode(value), as: UTF8.self) }
            #expect(theirs == ours, "\(type): \(value)")
            guard case .value(let text) = theirs else { continue }
            compareDecoders(type, text)
            guard let json = try? JSON(parsing: text) else { continue }
            for _ in 0..<8 { compareDecoders(type, json.changedSomewhere(using: &random).description) }
        }
    }

    private func compareDecoders<T: RandomValue>(_ type: T.Type, _ text: String) {
        let (foundation, ferry) = Strategies().outcomes(type, text)
        #expect(foundation == ferry, "\(type): \(text)")
    }

    private static let encoders: [(@Sendable () -> JSONEncoder, FerryJSONEncoder)] = [
        encoders([.sortedKeys], [.sortedKeys]),
        encoders([.sortedKeys, .prettyPrinted], [.sortedKeys, .prettyPrinted]),
        encoders([.sortedKeys, .withoutEscapingSlashes], [.sortedKeys, .withoutEscapingSlashes]),
    ]

    private static func encoders(
        _ theirs: JSONEncoder.OutputFormatting, _ ours: FerryJSONEncoder.OutputFormatting
    ) -> (@Sendable () -> JSONEncoder, FerryJSONEncoder) {
        var ferry = FerryJSONEncoder()
        ferry.outputFormatting = ours
        return (
            {
                let foundation = JSONEncoder()
                foundation.outputFormatting = theirs
                return foundation
            }, ferry
        )
    }
}

extension JSON {
    /// The value with one of its parts replaced by something else.
    func changedSomewhere(using random: inout SeededRandom) -> JSON {
        let others: [JSON] = [.null, true, 1, -1, 1.5, 300, "x", "", "1", [], [1], ["x"], [:], ["x": 1], [[]]]
        let stays = Int.random(in: 0..<4, using: &random) > 0
        if stays, let object, !object.isEmpty {
            var members = object.map { ($0.key, $0.value) }
            let place = members.indices.randomElement(using: &random)!
            if Int.random(in: 0..<5, using: &random) == 0 {
                members.remove(at: place)
            } else {
                members[place].1 = members[place].1.changedSomewhere(using: &random)
            }
            return JSON(members: members)
        }
        if stays, let array, !array.isEmpty {
            var elements = Array(array)
            let place = elements.indices.randomElement(using: &random)!
            elements[place] = elements[place].changedSomewhere(using: &random)
            return JSON(elements)
        }
        return others.randomElement(using: &random)!
    }
}

protocol RandomValue: Codable, Equatable {
    static func random(using random: inout SeededRandom) -> Self
}

struct RandomPair<First: RandomValue, Second: RandomValue>: RandomValue {
    var first: First
    var second: Second?
    var isLast: Bool

    static func random(using random: inout SeededRandom) -> Self {
        Self(first: .random(using: &random), second: .random(using: &random), isLast: .random(using: &random))
    }
}

struct RandomStruct: RandomValue {
    var name: String
    var level: Int?
    var scores: [Double]
    var kind: Kind
    var inner: RandomPair<Int, String>
    var byName: [String: [Code]]

    static func random(using random: inout SeededRandom) -> Self {
        Self(
            name: .random(using: &random), level: .random(using: &random), scores: .random(using: &random),
            kind: .random(using: &random), inner: .random(using: &random), byName: .random(using: &random))
    }
}

extension FixedWidthInteger {
    static func randomInteger(using random: inout SeededRandom) -> Self {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: .max
        case 1: .min
        default: .random(in: 0...100, using: &random)
        }
    }
}
extension Int: RandomValue {
    static func random(using random: inout SeededRandom) -> Int { randomInteger(using: &random) }
}
extension Int8: RandomValue {
    static func random(using random: inout SeededRandom) -> Int8 { randomInteger(using: &random) }
}
extension Int16: RandomValue {
    static func random(using random: inout SeededRandom) -> Int16 { randomInteger(using: &random) }
}
extension UInt8: RandomValue {
    static func random(using random: inout SeededRandom) -> UInt8 { randomInteger(using: &random) }
}
extension UInt32: RandomValue {
    static func random(using random: inout SeededRandom) -> UInt32 { randomInteger(using: &random) }
}
extension UInt64: RandomValue {
    static func random(using random: inout SeededRandom) -> UInt64 { randomInteger(using: &random) }
}
extension Bool: RandomValue {
    static func random(using random: inout SeededRandom) -> Bool { Int.random(in: 0...1, using: &random) == 1 }
}
extension Double: RandomValue {
    static func random(using random: inout SeededRandom) -> Double {
        let all = [
            0, -0.0, 1, -1, 0.1, 1e-7, 1.5e300, 123_456_789.125, 1e15, 1e16, 1e17, 1e-300, -2.5, .infinity, .nan,
        ]
        return all.randomElement(using: &random)! * (Int.random(in: 0...1, using: &random) == 1 ? 1 : 3)
    }
}
extension Float: RandomValue {
    static func random(using random: inout SeededRandom) -> Float {
        [0, -0.0, 1, 0.5, 0.1, 1e-7, 1e7, 1e8, 3.25e30, 16_777_216].randomElement(using: &random)!
    }
}
extension String: RandomValue {
    static func random(using random: inout SeededRandom) -> String {
        let all = [
            "", "a", "text", "a/b\\c\"d", "\u{0}\u{1}\u{8}\u{c}\n\r\t\u{1f}\u{7f}", "ünïcode",
            "\u{1F600}\u{2028}\u{2029}",
            "e\u{301}", "a text of more than fifteen bytes", "</script>", "\u{FEFF}",
        ]
        let text = all.randomElement(using: &random)!
        return Int.random(in: 0..<20, using: &random) == 0 ? String(repeating: text, count: 1000) : text
    }
}
extension Date: RandomValue {
    static func random(using random: inout SeededRandom) -> Date {
        Date(timeIntervalSinceReferenceDate: Double(Int.random(in: -4_000_000_000...4_000_000_000, using: &random)) / 4)
    }
}
extension Data: RandomValue {
    static func random(using random: inout SeededRandom) -> Data {
        Data((0..<Int.random(in: 0...20, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) })
    }
}
extension URL: RandomValue {
    static func random(using random: inout SeededRandom) -> URL {
        URL(string: ["http://h/a?b=c#d", "x://y", "/a/b", "a%20b", "mailto:a@b"].randomElement(using: &random)!)!
    }
}
extension UUID: RandomValue {
    static func random(using random: inout SeededRandom) -> UUID {
        UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A\(Int.random(in: 100_000...999_999, using: &random))")!
    }
}
extension Decimal: RandomValue {
    static func random(using random: inout SeededRandom) -> Decimal {
        let all = ["0", "1", "-1.5", "19.99", "1e18", "0.12345678901234567890123456789", "-1e-10", "123456789012"]
        return Decimal(string: all.randomElement(using: &random)!)!
    }
}
extension Kind: RandomValue {
    static func random(using random: inout SeededRandom) -> Kind { [.one, .two].randomElement(using: &random)! }
}
extension Code: RandomValue {
    static func random(using random: inout SeededRandom) -> Code { [.one, .two].randomElement(using: &random)! }
}
extension FoundationBehaviourTests.Side: RandomValue {
    static func random(using random: inout SeededRandom) -> Self {
        [.left, .right, .leFt].randomElement(using: &random)!
    }
}
extension Payload: RandomValue {
    static func random(using random: inout SeededRandom) -> Payload {
        let all: [Payload] = [
            .none, .one(.random(using: &random)), .labelled(name: .random(using: &random), count: nil),
        ]
        return all.randomElement(using: &random)!
    }
}
extension Optional: RandomValue where Wrapped: RandomValue {
    static func random(using random: inout SeededRandom) -> Wrapped? {
        Int.random(in: 0..<3, using: &random) == 0 ? nil : .some(.random(using: &random))
    }
}
extension Array: RandomValue where Element: RandomValue {
    static func random(using random: inout SeededRandom) -> [Element] {
        (0..<Int.random(in: 0...4, using: &random)).map { _ in .random(using: &random) }
    }
}
extension Dictionary: RandomValue where Key: RandomValue, Value: RandomValue {
    /// With one member or none: the order of refusals among several is not defined.
    static func random(using random: inout SeededRandom) -> [Key: Value] {
        Int.random(in: 0...3, using: &random) == 0 ? [:] : [.random(using: &random): .random(using: &random)]
    }
}
