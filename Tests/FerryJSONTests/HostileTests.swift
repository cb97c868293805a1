import CFerryJSON
import FerryJSON
import Testing

@Suite struct HostileTests {
    private func nested(_ open: String, _ close: String, _ depth: Int) -> String {
        String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)
    }

    @Test func nestingEndsAt1023WithAnErrorNotACrash() throws {
        _ = try JSON(parsing: nested("[", "]", 1023))
        let error = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: nested("[", "]", 1024)) }
        #expect(error == JSONSyntaxError(reason: .tooDeep, offset: 1023))
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: nested("[", "]", 1_000_000)) }
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: String(repeating: "[", count: 1_000_000)) }
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: String(repeating: #"{"a":"#, count: 1_000_000)) }
    }

    /// The innermost container counts whether or not it is empty, and wherever the deepest one is.
    @Test(arguments: ["[]", "{}", "[1]", #"{"a":1}"#, "[1,[]]"])
    func anEmptyContainerCountsToo(_ innermost: String) throws {
        let levels = innermost == "[1,[]]" ? 2 : 1
        for (open, close) in [("[", "]"), (#"{"a":"#, "}"), (#"["x",1,"#, "]")] {
            func text(_ depth: Int) -> String {
                let around = depth - levels
                return String(repeating: open, count: around) + innermost + String(repeating: close, count: around)
            }
            #expect(try JSON(parsing: text(1023)).bytes().count > 1023)
            let error = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: text(1024)) }
            #expect(error?.reason == .tooDeep)
            #expect(error?.offset == open.utf8.count * 1023 + (levels == 2 ? -open.utf8.count + 3 : 0))
            // The parser that refused it returns to the pool unchanged.
            #expect(throws: JSONSyntaxError.self) { try JSON(parsing: text(1024)) }
            #expect(try JSON(parsing: text(1023)).bytes().count > 1023)
        }
    }

    @Test func aDocumentAtTheBoundMayHoldAnIntegerBeyond64Bits() throws {
        func text(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + "18446744073709551616" + String(repeating: "]", count: depth)
        }
        var value = try JSON(parsing: text(1023))
        while let inner = value[0] { value = inner }
        #expect(value.double == 0x1p64 && value.int == nil)
        let error = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: text(1024)) }
        #expect(error == JSONSyntaxError(reason: .tooDeep, offset: 1023))
        // At the deepest level, and before an invalid number, which is reported instead.
        #expect(try JSON(parsing: "[\(text(1022)),99999999999999999999]")[1]?.double == 1e20)
        let wrong = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: "[\(text(1022)),01]") }
        #expect(wrong == JSONSyntaxError(reason: .invalidNumber, offset: 2 * 1022 + 22))
    }

    @Test func theDeepestDocumentCanBeUsed() throws {
        let json = try JSON(parsing: nested("[", "]", 1023))
        #expect(json.description.utf8.count == 2047)
        #expect(json.detached() == json)
        #expect(json.hashValue == json.detached().hashValue)
        var value = json
        while let inner = value[0] { value = inner }
        #expect(value.int == 1)
        let error = #expect(throws: JSONMismatch.self) { try value.asString() }
        #expect(error?.path.utf8.count == 1 + 3 * 1023)
    }

    @Test(
        "An error is named, with the offset where it begins",
        arguments: [
            ("", .empty, 0), ("  \n ", .empty, 4), (#"{"a":"b}"#, .unterminatedString, 8),
            ("[\"a\u{1}b\"]", .controlCharacter, 3),
            (#"["ok","\ud800"]"#, .invalidEscape, 6), (#"["ok","\q"]"#, .invalidEscape, 6),
            ("[1,2,03]", .invalidNumber, 5),
            ("[1,2,1e999]", .invalidNumber, 5), ("[true,nulL]", .invalidLiteral, 6), ("[1,2", .structure, 4),
            ("[1]x", .structure, 3),
            (#"{"a":1,}"#, .structure, 7), (#"{"a":1 "b":2}"#, .structure, 7), ("[1,]", .structure, 3),
            ("\u{FEFF}[1,]", .structure, 6),
        ] as [(String, JSONSyntaxError.Reason, Int)])
    func named(_ text: String, _ reason: JSONSyntaxError.Reason, _ offset: Int) {
        let error = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: text) }
        #expect(error == JSONSyntaxError(reason: reason, offset: offset))
    }

    @Test func aMillionDigitsAreReadOrRefused() throws {
        let digits = String(repeating: "9", count: 1_000_000)
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: digits) }
        #expect(try JSON(parsing: "0." + digits).double == 1)
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: "1e" + digits) }
    }

    @Test func aNULWithinAKeyIsPartOfIt() throws {
        let json = try JSON(parsing: #"{"a\u0000b":1,"a":2}"#)
        #expect(json["a"]?.int == 2)
        #expect(json["a\u{0}b"]?.int == 1)
        #expect(json.object?.keys == ["a\u{0}b", "a"])
    }

    @Test(
        "A lone surrogate is refused in keys and values, wherever it is",
        arguments: [
            #"\ud800"#, #"\udc00"#, #"\ud800\ud800"#, #"\udc00\ud800"#, #"\ud83d\u0041"#, #"\ud83dx"#, #"\ud83d\"#,
            #"\uD83D\n"#,
        ])
    func loneSurrogates(_ half: String) {
        for text in [#"["\#(half)"]"#, #"{"\#(half)":1}"#, #"{"a":"b\#(half)c"}"#, #"[[],"\#(half)"]"#] {
            #expect(throws: JSONSyntaxError.self, "\(text)") { try JSON(parsing: text) }
            #expect(throws: DecodingError.self) { try FerryJSONDecoder().decode(JSON.self, from: Array(text.utf8)) }
        }
        #expect(try! JSON(parsing: #"["\ud83d\ude00"]"#)[0]?.string == "\u{1F600}")
    }

    @Test(
        "Bytes that are not UTF-8 are refused at their place",
        arguments: [
            [0x80], [0xc0, 0x80], [0xc1, 0xbf], [0xe0, 0x80, 0x80], [0xed, 0xa0, 0x80], [0xf0, 0x80, 0x80, 0x80],
            [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xff], [0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x98],
        ] as [[UInt8]])
    func invalidUTF8(_ bytes: [UInt8]) {
        let begin = Array(#"{"key":["plain","#.utf8) + [UInt8(ascii: "\"")]
        for (before, after) in [(begin, #""]}"#), (Array(#"{""#.utf8), #"":1}"#), (Array("[1,".utf8), "]")] {
            let error = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: before + bytes + Array(after.utf8)) }
            #expect(error?.reason == .invalidUTF8)
            #expect((before.count..<before.count + bytes.count).contains(error?.offset ?? -1), "\(bytes)")
        }
    }

    /// The parser of a document stays with its views, whatever the pool does meanwhile.
    @Test func viewsLiveOnWhileThePoolIsEmptied() throws {
        let text = #"{"list":[{"name":"first"},{"name":"second"}],"pad":"\#(String(repeating: "x", count: 2 << 20))"}"#
        var inner = try JSON(parsing: text)["list"]
        let names = try #require(inner?.array).map { $0["name"] }
        for _ in 0..<20 {
            ferry_json_pool_look(120)
            let others = try (0..<10).map { try JSON(parsing: #"[{"name":"other \#($0)","pad":\#($0)}]"#) }
            #expect(others[3][0]?["name"]?.string == "other 3")
        }
        #expect(names.map { $0?.string } == ["first", "second"])
        #expect(inner?[1]?["name"] == names[1])
        inner = inner?[0]?.detached()
        ferry_json_pool_look(120)
        #expect(inner?.description == #"{"name":"first"}"#)
    }
}
