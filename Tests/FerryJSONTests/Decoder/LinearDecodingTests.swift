import FerryJSON
import Foundation
import Testing

/// Decoding takes time proportional to the size of the document, even if paths and the texts of numbers are requested.
@Suite struct LinearDecodingTests {
    private func growth<T: Decodable>(
        _ type: T.Type, of element: String, _ decoder: FerryJSONDecoder = FerryJSONDecoder()
    ) throws -> Double {
        try growthOfEightfold(2000) { count in
            let text = Data("[\(repeatElement(element, count: count).joined(separator: ","))]".utf8)
            return {
                let decoded = try decoder.decode([T].self, from: text)
                #expect(decoded.count == count)
            }
        }
    }

    @Test func keysThatAreConverted() throws {
        struct Item: Decodable { let someId: Int }
        var decoder = FerryJSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        #expect(try growth(Item.self, of: #"{"some_id":1}"#, decoder) < mostGrowth)
        decoder.keyDecodingStrategy = .custom { path in
            PathKey(stringValue: path.last!.stringValue == "some_id" ? "someId" : path.last!.stringValue)
        }
        #expect(try growth(Item.self, of: #"{"some_id":1}"#, decoder) < mostGrowth)
    }

    private struct PathKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    @Test func valuesThatAreTriedAsOneTypeAndThenAsAnother() throws {
        struct Either: Decodable {
            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                if (try? container.decode(Int.self)) != nil { return }
                if (try? container.decode([String: Int].self)) != nil { return }
                _ = try container.decode(Double.self)
            }
        }
        #expect(try growth(Either.self, of: "0.5") < mostGrowth)
    }

    /// Reads two arrays alternately.
    private struct Turns<T: Decodable>: Decodable {
        enum Keys: CodingKey { case left, right }
        var count = 0

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            var left = try container.nestedUnkeyedContainer(forKey: .left)
            var right = try container.nestedUnkeyedContainer(forKey: .right)
            while !left.isAtEnd && !right.isAtEnd {
                if (try? left.superDecoder().singleValueContainer().decode(T.self)) != nil { count += 1 }
                if (try? right.superDecoder().singleValueContainer().decode(T.self)) != nil { count += 1 }
            }
        }
    }

    private func growthOfTurns<T: Decodable>(_ type: T.Type, of element: String, decoded: Int) throws -> Double {
        try growthOfEightfold(2000) { count in
            let list = "[\(repeatElement(element, count: count).joined(separator: ","))]"
            let text = Data("{\"left\":\(list),\"right\":\(list)}".utf8)
            return {
                let turns = try FerryJSONDecoder().decode(Turns<T>.self, from: text)
                #expect(turns.count == decoded * count)
            }
        }
    }

    @Test func errorsInAnotherOrderThanTheDocuments() throws {
        #expect(try growthOfTurns(Int.self, of: "\"x\"", decoded: 0) < mostGrowth)
        #expect(try growthOfTurns(Int.self, of: "[{\"a\":1}]", decoded: 0) < mostGrowth)
    }

    @Test func decimalsInTurns() throws {
        #expect(try growthOfTurns(Decimal.self, of: "1.25", decoded: 2) < mostGrowth)
    }

    @Test(arguments: [false, true]) func wideObjectsInAnyOrder(_ convertsKeys: Bool) throws {
        struct Reading: Decodable {
            var sum = 0
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Inspected.AnyKey.self)
                let keys = container.allKeys.reversed()
                for key in keys { sum += try container.decode(Int.self, forKey: key) }
                for key in keys.shuffled() { sum += try container.decode(Int.self, forKey: key) }
            }
        }
        var decoder = FerryJSONDecoder()
        if convertsKeys { decoder.keyDecodingStrategy = .convertFromSnakeCase }
        let growth = try growthOfEightfold(1000) { count in
            let text = Data("{\((0..<count).map { "\"some_key\($0)\":1" }.joined(separator: ","))}".utf8)
            return {
                let reading = try decoder.decode(Reading.self, from: text)
                #expect(reading.sum == 2 * count)
            }
        }
        #expect(growth < mostGrowth)
    }

    @Test func decimalsInAnotherOrderThanTheDocuments() throws {
        struct Order: Decodable {
            let price: Decimal
            let amount: Decimal
        }
        #expect(try growth(Order.self, of: #"{"amount":1.5,"price":9.99}"#) < mostGrowth)
        let text = #"[{"amount":-1.5,"a":[0.5,"1",2],"price":9.99},{"amount":1e2,"b":true,"price":7}]"#
        let orders = try FerryJSONDecoder().decode([Order].self, from: Data(text.utf8))
        #expect(orders.map(\.price) == [Decimal(string: "9.99")!, 7])
        #expect(orders.map(\.amount) == [Decimal(string: "-1.5")!, 100])
    }

    @Test func aPathIsRightWhereverTheLastOneWas() throws {
        let text = #"[{"a":[1,{"b":"x","c":[[],[null]]},"y"],"d":{"a":{"e":true}},"f":{}},[{"a":1},{"a":[2,"z"]}],"q"]"#
        let (foundation, ferry) = Strategies().outcomes(Wandering.self, text)
        #expect(foundation == ferry)
        let snake = Strategies(
            foundation: { $0.keyDecodingStrategy = .convertFromSnakeCase },
            ferry: { $0.keyDecodingStrategy = .convertFromSnakeCase })
        let (theirs, ours) = snake.outcomes(Wandering.self, text)
        #expect(theirs == ours)
    }

    /// Records the paths of all refusals, going through objects backwards and forwards.
    struct Wandering: Decodable, Equatable {
        struct Refusing: Decodable {
            init(from decoder: any Decoder) throws {
                throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: ""))
            }
        }
        var paths: [String] = []

        init(from decoder: any Decoder) throws {
            note { try decoder.singleValueContainer().decode(Refusing.self) }
            if let container = try? decoder.container(keyedBy: Inspected.AnyKey.self) {
                let keys = container.allKeys.sorted { $0.stringValue < $1.stringValue }
                for key in keys.reversed() + keys {
                    if let inner = try? container.decode(Wandering.self, forKey: key) { paths += inner.paths }
                    note { try container.decode(Bool.self, forKey: key) }
                    note { try container.decode(Refusing.self, forKey: key) }
                }
                note { try container.decode(Int.self, forKey: Inspected.AnyKey(stringValue: "absent")!) }
                paths.append(text(container.codingPath))
            } else if var list = try? decoder.unkeyedContainer() {
                while !list.isAtEnd {
                    note { try list.decode(Refusing.self) }
                    if let inner = try? list.decode(Wandering.self) { paths += inner.paths }
                    paths.append(text(list.codingPath))
                }
                note { try list.decode(Int.self) }
            }
            paths.append(text(decoder.codingPath))
        }

        private mutating func note<T>(_ body: () throws -> T) {
            do {
                _ = try body()
            } catch DecodingError.dataCorrupted(let context), DecodingError.keyNotFound(_, let context),
                DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context)
            {
                paths.append(text(context.codingPath))
            } catch {
                paths.append("\(error)")
            }
        }

        private func text(_ path: [any CodingKey]) -> String { path.map(\.stringValue).joined(separator: ".") }
    }
}
