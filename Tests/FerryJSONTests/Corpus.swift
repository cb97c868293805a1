import Testing

/// Texts for testing a JSON parser.
enum Corpus {
    struct Bytes: Sendable, CustomTestStringConvertible {
        let bytes: [UInt8]
        let offset: Int
        var testDescription: String { bytes.map { String($0, radix: 16) }.joined(separator: " ") }
    }

    struct Choice: Sendable, CustomTestStringConvertible {
        let text: String
        let written: String
        var testDescription: String { text }
    }

    static let accepted: [String] =
        [
            "null", "true", "false", "0", "-0", "7", "-7", "10", "120", "\"\"", "\"a\"", "[]", "{}", " null ", "\t[]\n",
            "\r\n{}\r\n", "[ ]", "{ }", "[null]", "[true,false]", "[ 1 , 2 ]", "[[]]", "[[],[[]],{}]", "[{}]",
            #"{"":0}"#, #"{"a":1}"#, #"{ "a" : 1 }"#, #"{"a":{"a":{"a":[]}}}"#, #"{"a":1,"b":2,"c":3}"#,
            #"{"a":1,"a":2}"#, #"{"\u0061":1}"#, #"{"a\u0000b":1}"#, #"{"\"":1,"\\":2}"#,
        ] + numbers + strings

    private static let numbers = [
        "0.0", "-0.0", "1.5", "-1.5", "0.1", "1e2", "1E2", "1e+2", "1e-2", "1.5e2", "-1.5E-2", "0e0", "0e+0", "0.0e-0",
        "1e00002", "123456789", "1.7976931348623157e308", "5e-324", "2.2250738585072014e-308", "9007199254740993",
        "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615",
        "0.1234567890123456789012345678901234567890", "1.00000000000000000000000000000000000000000001",
        "123456789012345678901234567890.0", "0.000000000000000000000000000000000000000001", "[-1]", "[0]",
        "[1e1,1e2]", "{\"a\":-0.5}",
    ]

    private static let strings = [
        #""\"""#, #""\\""#, #""\/""#, #""\b\f\n\r\t""#, #""\u0020""#, #""\u0000""#, #""\u00e9""#, #""\u00E9""#,
        #""\ud83d\ude00""#, #""\uD83D\uDE00""#, #""\uffff""#, #""\udbff\udfff""#, #""/""#, #""\\u0000""#, #""\\\"""#,
        "\"\u{7f}\"", "\"é\"", "\"€\"", "\"\u{1F600}\"", "\"\u{FEFF}\"", "\"\u{FFFD}\"", "\"\u{10FFFF}\"",
        "\"\u{2028}\u{2029}\"", "\"e\u{301}\"", "\"// not a comment\"", "\"[{]}\"", "\" \"", "\"'\"", "\"0\"",
        "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"",
    ]

    static let refused: [String] =
        [
            "", " ", "\n", ",", ":", "[", "]", "{", "}", "[1", "1]", "[1,", "[,1]", "[1,,2]", "[1,]", "[,]", "[1 2]",
            "[1:2]", "[1}", "{1}", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{,}", "{\"a\"}",
            "{\"a\":}",
            "{\"a\" 1}", "{\"a\",1}", "{\"a\"::1}", "{:1}", "{a:1}", "{1:1}", "{null:1}", "{'a':1}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":1]", "[\"a\":1]", "[] []", "[]]", "{}}", "1 2", "null null", "\"a\" \"b\"", "[1]x", "[1]\u{0}",
            "\u{0}", "\u{0}[1]", "[1\u{0}]", "/* */1", "[1] // end", "# 1", "\u{FEFF}", "\u{FEFF}\u{FEFF}1", "\u{A0}1",
            "\u{2028}1", "\u{B}1", "\u{C}1", "<a/>", "a", "undefined",
        ] + literals + numbersRefused + stringsRefused

    private static let literals = [
        "nul", "nulL", "Null", "NULL", "nulll", "tru", "True", "truee", "fals", "False", "falsee", "nan", "NaN",
        "Infinity", "-Infinity", "inf", "[nul]", "[true1]", "t", "f", "n", "truefalse", "[nulltrue]",
    ]

    private static let numbersRefused = [
        "-", "+", "+1", "--1", "-+1", "01", "-01", "00", "0x1", "0b1", "1.", ".1", "-.1", "1.e1", ".e1", "1e", "1e+",
        "1e-",
        "1ee1", "1e1.5", "1..2", "1.2.3", "1_000", "1,000", "1a", "1 000.", "１", "1e999", "-1e999", "1.8e308",
        "18446744073709551616a", "-09223372036854775809", "99999999999999999999 9", "[-]", "[1.]", "[1e]",
    ]

    private static let stringsRefused = [
        "\"", "\"a", "'a'", "\"\\\"", "\"\\", #""\a""#, #""\x41""#, #""\0""#, #""\'""#, #""\u""#, #""\u1""#, #""\u12""#,
        #""\u123""#, #""\u123g""#, #""\U0041""#, #""\ud800""#, #""\ud800x""#, #""\ud800\n""#, #""\ud800\ud800""#,
        #""\udc00""#, #""\udfff\ud800""#, #""\uD83Dx\uDE00""#, "\"\n\"", "\"\t\"", "\"\u{0}\"", "\"\u{1f}\"",
        "\"a\rb\"",
        "[\"a]", "{\"a:1}", "{\"a\":\"b}", "\"\\u00\\n00\"", #"["\u{61}"]"#,
    ]

    static let notUTF8: [Bytes] = [
        Bytes(bytes: [0xff], offset: 0), Bytes(bytes: [0x22, 0xff, 0x22], offset: 1),
        Bytes(bytes: [0x22, 0x80, 0x22], offset: 1), Bytes(bytes: [0x22, 0x61, 0xc3, 0x22], offset: 2),
        Bytes(bytes: [0x22, 0xc0, 0xaf, 0x22], offset: 1), Bytes(bytes: [0x22, 0xe0, 0x80, 0x80, 0x22], offset: 1),
        Bytes(bytes: [0x22, 0xed, 0xa0, 0x80, 0x22], offset: 1),
        Bytes(bytes: [0x22, 0xf0, 0x80, 0x80, 0x80, 0x22], offset: 1),
        Bytes(bytes: [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22], offset: 1),
        Bytes(bytes: [0x22, 0xf8, 0x88, 0x80, 0x80, 0x80, 0x22], offset: 1),
        Bytes(bytes: [0x22, 0xe2, 0x82, 0x22], offset: 1), Bytes(bytes: [0x5b, 0xe9, 0x5d], offset: 1),
        Bytes(bytes: [0x7b, 0x22, 0xc3, 0xa9, 0xfe, 0x22, 0x7d], offset: 4),
        Bytes(bytes: [0xff, 0xfe, 0x31, 0x00], offset: 0), Bytes(bytes: [0xfe, 0xff, 0x00, 0x31], offset: 0),
    ]

    static let chosen: [Choice] = [
        Choice(text: "\u{FEFF}[1]", written: "[1]"), Choice(text: "1e-999", written: "0.0"),
        Choice(text: "-1e-999", written: "-0.0"), Choice(text: "-0", written: "0"),
        Choice(text: "1.0", written: "1.0"), Choice(text: "100.0", written: "100.0"),
        Choice(text: "0.1000000000000000055511151231257827", written: "0.1"),
        Choice(text: "123456789012345678901234567890.0", written: "1.2345678901234568e+29"),
        Choice(text: #""\u0041\/""#, written: "\"A/\""), Choice(text: #""\uFFFE""#, written: "\"\u{FFFE}\""),
        Choice(text: #"{"a":1,"a":2}"#, written: #"{"a":1,"a":2}"#),
    ]
}
