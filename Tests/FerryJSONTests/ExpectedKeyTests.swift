import FerryJSON
import Foundation
import Testing

/// A thread notes which keys a program asks for, in objects with the same keys, also of other documents: nobody may
/// notice.
@Suite struct ExpectedKeyTests {
    /// The result of a search through all members.
    private func last(_ key: String, in object: JSON) -> JSON? {
        object.object.flatMap { members in Array(members).last { $0.key == key }?.value }
    }

    private func text(_ keys: [String], from value: Int = 0) -> String {
        "{" + keys.enumerated().map { "\(JSON($1)):\(value + $0)" }.joined(separator: ",") + "}"
    }

    /// Two objects of one shape whose keys differ in one byte, whatever their length and wherever the byte is.
    @Test func keysThatDifferInOneByteAreToldApart() throws {
        for length in 1...60 {
            let key = String(repeating: "k", count: length)
            for place in 0..<length {
                let other = String(key.prefix(place) + "x" + key.dropFirst(place + 1))
                for keys in [["a", key, "z"], [key, "a", "z"], ["a", "b", key]] {
                    let others = keys.map { $0 == key ? other : $0 }
                    let document = try JSON(parsing: "[\(text(keys)),\(text(keys)),\(text(others)),\(text(keys))]")
                    let found = document.array!.map { $0[key]?.int }
                    let expected = keys.firstIndex(of: key)
                    #expect(found == [expected, expected, nil, expected], "\(length) bytes, \(place)")
                    #expect(document[2]?[other]?.int == expected)
                }
            }
        }
    }

    @Test(arguments: [1, 2, 3, 12, 20, 64, 65, 100, 256, 257]) func documentsOfOneShapeAreSearchedAlike(
        _ width: Int
    ) throws {
        let keys = (0..<width).map { "key\($0)" }
        for round in 0..<4 {
            let json = try JSON(parsing: text(keys, from: round * 1000))
            for (place, key) in keys.enumerated() { #expect(json[key]?.int == round * 1000 + place) }
            #expect(json["absent"] == nil)
        }
        let twice = try JSON(parsing: text(keys.dropLast() + [keys[0]], from: 7))
        #expect(twice[keys[0]]?.int == 7 + width - 1)
        #expect(width == 1 || twice[keys[width - 1]] == nil)
    }

    @Test func aKeyThatWasAbsentIsFoundInTheObjectThatHasIt() throws {
        let without = #"{"id":1,"name":"a","size":3}"#, with = #"{"id":2,"note":5,"size":4}"#
        let document = try JSON(parsing: "[\(without),\(without),\(with),\(without),\(with)]")
        #expect(document.array?.map { $0["note"]?.int } == [nil, nil, 5, nil, 5])
        #expect(document.array?.map { $0["name"]?.string } == ["a", "a", nil, "a", nil])
        #expect(document.array?.map { $0["size"]?.int } == [3, 3, 4, 3, 4])
    }

    /// Strings that are made anew each time, and so are never the ones that were kept.
    @Test func keysThatAreMadeForEachSearch() throws {
        let keys = (0..<30).map { "a key that is long, number \($0)" }
        let document = try JSON(parsing: "[\((0..<50).map { text(keys, from: $0) }.joined(separator: ","))]")
        for (round, object) in document.array!.enumerated() {
            for number in 0..<30 { #expect(object["a key that is long, number \(number)"]?.int == round + number) }
        }
    }

    /// One storage, changed where it is, after it was searched for.
    @Test func aKeyMayChangeAtTheSamePlace() throws {
        let keys = (0..<26).map { "a key that is kept elsewhere, \(Character(UnicodeScalar(UInt8(97 + $0))))" }
        let document = try JSON(parsing: "[\(text(keys)),\(text(keys))]")
        var key = keys[0]
        key.reserveCapacity(100)
        for object in document.array! {
            for place in 0..<26 {
                key.removeLast()
                key.append(keys[place].last!)
                #expect(object[key]?.int == place)
            }
        }
    }

    @Test func moreKeysThanAreNoted() throws {
        let json = try JSON(parsing: #"{"a":1,"b":2,"c":3}"#)
        for round in 0..<3 {
            for number in 0..<200 { #expect(json["absent \(round) \(number)"] == nil) }
            #expect(json["a"] == 1 && json["b"] == 2 && json["c"] == 3)
        }
    }

    /// Objects of several shapes, in any order and in turns, more than are noted at once.
    @Test func manyObjectsInTurns() throws {
        var random = SystemRandomNumberGenerator()
        let names = (0..<12).map { "k\($0)" } + (0..<6).map { "a key of more than sixteen bytes, \($0)" }
        let values = ["1", "null", "\"text\"", "[1,2]", "{}", "-2.5", "\"k1\""]
        let shapes = (0..<12).map { _ in
            (0..<Int.random(in: 1...8, using: &random)).map { _ in names.randomElement(using: &random)! }
        }
        let objects = (0..<200).map { _ in
            let members = shapes.randomElement(using: &random)!.map {
                "\(JSON($0)):\(values.randomElement(using: &random)!)"
            }
            return "{\(members.joined(separator: ","))}"
        }
        for _ in 0..<3 {
            let elements = Array(try JSON(parsing: "[\(objects.joined(separator: ","))]").array!)
            for _ in 0..<10_000 {
                let object = elements.randomElement(using: &random)!
                let key = names.randomElement(using: &random)!
                #expect(object[key]?.description == last(key, in: object)?.description)
            }
        }
    }

    /// Objects of other shapes, which are asked for the same keys, take the place of a shape that is still searched.
    @Test func aShapeIsForgottenWhileAnObjectOfItIsSearched() throws {
        let keys = (0..<10).map { "k\($0)" }
        for round in 0..<3 {
            let json = try JSON(parsing: text(keys))
            #expect(json["k0"] == 0)
            for number in 0..<(round == 2 ? 200 : 0) {
                let others = ["shape \(number)"] + keys.dropFirst().reversed()
                // At another place than the object above.
                let other = try JSON(parsing: "[1,\(text(others, from: 100))]")[1]
                for key in keys { #expect(other?[key]?.int == others.firstIndex(of: key).map { 100 + $0 }) }
            }
            for (place, key) in keys.enumerated().dropFirst() { #expect(json[key]?.int == place) }
        }
    }

    /// The strings that a thread keeps end with it; whether they do is for the sanitizers.
    @Test func threadsThatEnd() throws {
        let keys = (0..<20).map { "a key that is long, number \($0)" }
        let json = try JSON(parsing: text(keys))
        for _ in 0..<20 {
            let ended = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                for (place, key) in keys.enumerated() { #expect(json[key]?.int == place) }
                for place in 0..<20 { #expect(json["a key that is long, number \(place)"]?.int == place) }
                ended.signal()
            }
            ended.wait()
        }
    }

    /// Short strings are made by way of their two words.
    @Test func stringsOfEveryLength() throws {
        for count in 0...40 {
            for tail in ["", "é", "\u{0}", "😀"] {
                let expected = String((0..<count).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) }) + tail
                let document: JSON = [JSON(expected), "next"]
                let text = document[0]!.string!
                #expect(text == expected && text.hashValue == expected.hashValue)
                #expect(Array(text.utf8) == Array(expected.utf8) && text.utf8.count == expected.utf8.count)
                #expect(text + "more" == expected + "more")
                #expect(try JSON(parsing: document.description).value(at: 0, as: String.self) == expected)
            }
        }
    }
}
