import FerryJSON
import Testing

@Suite struct JSONTests {
    let user: JSON

    init() throws {
        user = try JSON(
            parsing:
                #"{"nick":"kim","level":7,"ratio":0.5,"on":true,"none":null,"tags":["a","b"],"deep":{"x":[1,{"y":2}]}}"#
        )
    }

    @Test func scalarsAreReadByKind() {
        #expect(user["nick"]?.string == "kim")
        #expect(user["level"]?.int == 7)
        #expect(user["level"]?.uint == 7)
        #expect(user["level"]?.double == 7)
        #expect(user["ratio"]?.double == 0.5)
        #expect(user["on"]?.bool == true)
        #expect(user["none"]?.isNull == true)
        #expect(user.object?.map(\.value.kind) == [.string, .number, .number, .bool, .null, .array, .object])
    }

    @Test func anotherKindIsNil() {
        #expect(user["nick"]?.int == nil)
        #expect(user["level"]?.string == nil)
        #expect(user["level"]?.bool == nil)
        #expect(user["on"]?.int == nil)
        #expect(user["none"]?.string == nil)
        #expect(user["tags"]?.object == nil)
        #expect(user["deep"]?.array == nil)
        #expect(user["ratio"]?.int == nil)
        #expect(user[0] == nil)
        #expect(user["tags"]?["a"] == nil)
        #expect(user["absent"] == nil)
        #expect(user["tags"]?[2] == nil)
        #expect(user["tags"]?[-1] == nil)
    }

    @Test func theThrowingFormsSayWhereAndWhat() throws {
        func message(_ body: () throws -> some Any) -> String {
            do {
                _ = try body()
                return "no error"
            } catch {
                return "\(error)"
            }
        }
        #expect(message { try user["nick"]!.asInt() } == "$.nick: expected integer, found string")
        #expect(message { try user["ratio"]!.asInt() } == "$.ratio: expected Int, found number that does not fit")
        #expect(message { try JSON(parsing: "-1").asUInt() } == "$: expected UInt, found number that does not fit")
        #expect(try user["level"]!.asUInt() == 7)
        #expect(message { try user["level"]!.asString() } == "$.level: expected string, found number")
        #expect(message { try user["none"]!.asBool() } == "$.none: expected bool, found null")
        #expect(message { try user["deep"]!.asArray() } == "$.deep: expected array, found object")
        #expect(message { try user["tags"]!.asObject() } == "$.tags: expected object, found array")
        #expect(message { try user["tags"]![1]!.asDouble() } == "$.tags[1]: expected number, found string")
        #expect(
            message { try user["deep"]!["x"]![1]!["y"]!.asString() } == "$.deep.x[1].y: expected string, found number")
        #expect(message { try user.value("absent", as: Int.self) } == "$.absent: expected Int, found nothing")
        #expect(message { try user["tags"]!.value(at: 5, as: Int.self) } == "$.tags[5]: expected Int, found nothing")
        #expect(message { try user["nick"]!.value("x", as: Int.self) } == "$.nick: expected object, found string")
    }

    @Test func signedUnsignedAndDoubleStayApart() throws {
        let numbers = try JSON(
            parsing: "[9223372036854775807,18446744073709551615,-9223372036854775808,9007199254740993,1.0]")
        #expect(numbers[0]?.int == .max)
        #expect(numbers[0]?.uint == UInt(Int.max))
        #expect(numbers[1]?.int == nil)
        #expect(numbers[1]?.uint == .max)
        #expect(numbers[2]?.int == .min)
        #expect(numbers[2]?.uint == nil)
        #expect(numbers[3]?.int == 9_007_199_254_740_993)
        #expect(numbers[4]?.int == 1)
        #expect(
            numbers.description
                == "[9223372036854775807,18446744073709551615,-9223372036854775808,9007199254740993,1.0]")
    }

    @Test func anIntegerThatMayHaveBeenRoundedIsNone() throws {
        let numbers = try JSON(
            parsing:
                "[9007199254740993.0,12345678901234567e0,-9007199254740993.0,9007199254740992.0,1e18,9007199254740991.0]"
        )
        #expect(numbers.array?.map(\.int) == [nil, nil, nil, nil, nil, 9_007_199_254_740_991])
        #expect(numbers.array?.map(\.uint) == [nil, nil, nil, nil, nil, 9_007_199_254_740_991])
        #expect(throws: JSONMismatch.self) { try numbers[0]!.asInt() }
        #expect(throws: JSONMismatch.self) { try numbers.value(at: 1, as: Int64.self) }
        #expect(try numbers.value(at: 4, as: Double.self) == 1e18)
        #expect(try JSON(parsing: "1e18") == JSON(1_000_000_000_000_000_000))
        #expect(JSON(1e18).hashValue == JSON(1_000_000_000_000_000_000).hashValue)
    }

    @Test func aPlaceBehindTheLastEndsTheProgram() async {
        await #expect(processExitsWith: .failure) {
            let array = try JSON(parsing: "[[1],2]")[0]!.array!
            _ = array[array.endIndex]
        }
        await #expect(processExitsWith: .failure) {
            let object = try JSON(parsing: #"[{"a":1},2]"#)[0]!.object!
            _ = object[object.endIndex]
        }
        await #expect(processExitsWith: .failure) {
            let array = try JSON(parsing: "[[1],2]")[0]!.array!
            _ = array.index(array.startIndex, offsetBy: 2)
        }
        await #expect(processExitsWith: .failure) {
            let object = try JSON(parsing: #"[{"a":1},2]"#)[0]!.object!
            _ = object.index(object.startIndex, offsetBy: 2)
        }
    }

    @Test func anIntegerBeyond64BitsIsADoubleAndNoInteger() throws {
        let text = #"{"a":[1,18446744073709551616 ,-9223372036854775809],"b":184467440737095516150000,"c":7}"#
        for json in [try JSON(parsing: text), try JSON(parsing: Array(text.utf8))] {
            #expect(json["a"]?[1]?.double == 0x1p64 && json["a"]?[1]?.int == nil)
            #expect(json["a"]?[2]?.double == -0x1p63 && json["a"]?[2]?.int == nil)
            #expect(json["b"]?.double == Double("184467440737095516150000") && json["c"]?.int == 7)
            #expect(throws: JSONMismatch.self) { try json.value("b", as: Int.self) }
        }
        #expect(try JSON(parsing: "-18446744073709551616").double == -0x1p64)
        // The nearest double, considering all digits: one above the middle between two.
        #expect(try JSON(parsing: "36893488147419107329").double == 0x1.0000000000001p65)
    }

    @Test func aWrongNumberBesideOneIsFoundWhereItStands() {
        for (text, offset) in [
            (#"{"a":[18446744073709551616,01]}"#, 27), (#"[18446744073709551616,1e999]"#, 22),
            (#"[01,18446744073709551616]"#, 1), (#"[18446744073709551616,nul]"#, 22),
            ("[" + String(repeating: "9", count: 310) + "]", 1),
        ] {
            let error = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: text) }
            #expect(error?.offset == offset, "\(text)")
        }
    }

    @Test func ofAKeyThatStandsTwiceTheLastCounts() throws {
        let json = try JSON(parsing: #"{"a":1,"b":2,"a":{"c":3},"a":4}"#)
        #expect(json["a"]?.int == 4)
        #expect(json.object?["a"]?.int == 4)
        #expect(try [String: Int](json: JSON(parsing: #"{"a":1,"a":2}"#)) == ["a": 2])
        #expect(json.value(atPointer: "/a")?.int == 4)
    }

    @Test func membersAndElementsComeInTheOrderOfTheDocument() throws {
        let json = try JSON(parsing: #"{"z":[3,1,2],"a":{},"m":[]}"#)
        #expect(json.object?.keys == ["z", "a", "m"])
        #expect(json["z"]?.array?.map(\.int) == [3, 1, 2])
        #expect(json["z"]?.array?.count == 3)
        #expect(json["m"]?.array?.isEmpty == true)
        #expect(json["a"]?.object?.isEmpty == true)
        #expect(json["z"]?.array.map { $0.indices.map { json["z"]!.array![$0].int } } == [3, 1, 2])
    }

    @Test func aViewOutlivesTheTextAndTheOtherViews() throws {
        func inner() throws -> JSON {
            let text = String(repeating: " ", count: 100) + #"{"a":{"b":"still here"}}"#
            return try JSON(parsing: text)["a"]!["b"]!
        }
        let value = try inner()
        for _ in 0..<100 { _ = try JSON(parsing: #"{"other":"text in the same memory, perhaps"}"#) }
        #expect(value.string == "still here")
    }

    @Test func aDetachedValueIsTheSame() {
        let deep = user["deep"]!
        #expect(deep.detached() == deep)
        #expect(deep.detached().description == deep.description)
        #expect(user["tags"]!.detached()[1]?.string == "b")
    }

    @Test func bytesWithRoomBehindThemAreParsedWhereTheyStand() throws {
        let text = Array(#"["in place"]"#.utf8)
        let room = text + [UInt8](repeating: 0xff, count: 64)
        let json = try room.withUnsafeBytes {
            try JSON(parsing: UnsafeRawBufferPointer(rebasing: $0[..<text.count]), spare: 64)
        }
        #expect(json[0]?.string == "in place")
    }

    @Test func moreThan16MillionElementsAreCounted() throws {
        let count = 0x100_0000 + 5
        let text = "[" + String(repeating: "0,", count: count - 1) + "0]"
        #expect(try JSON(parsing: text).array?.count == count)
    }
}
