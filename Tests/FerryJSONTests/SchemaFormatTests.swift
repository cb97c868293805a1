import FerryJSON
import Testing

/// `format`, which is an annotation unless it is asserted.
@Suite struct SchemaFormatTests {
    private static let fitting: [(JSONSchema.Format, [String])] = [
        (
            .dateTime,
            [
                "2024-02-29T23:59:59Z", "1985-04-12t23:20:50.52z", "1990-12-31T15:59:60-08:00",
                "2024-01-01T00:00:00+23:59",
            ]
        ),
        (.date, ["2024-02-29", "2000-02-29", "2023-12-31", "0000-01-01"]),
        (.time, ["00:00:00Z", "23:59:60Z", "01:29:60.5+01:30", "12:00:00-00:00"]),
        (.duration, ["P1Y", "P1Y2M3DT4H5M6S", "PT36H", "P4W", "P1D", "PT1M", "P0D", "P1MT1S"]),
        (
            .email,
            [
                "a@b", "a.b+c@example.com", "\"a b\\\"@\"@example.com", "a@[127.0.0.1]", "a@[IPv6:::1]",
                "o'neil/x=y@a-b.de",
            ]
        ),
        (.hostname, ["a", "www.example.com", "1.2", "xn--nxasmq6b", String(repeating: "a", count: 63), "a-b.c--d"]),
        (.ipv4, ["0.0.0.0", "255.255.255.255", "192.0.2.1"]),
        (.ipv6, ["::", "::1", "2001:db8::8a2e:370:7334", "::ffff:192.0.2.1", "1:2:3:4:5:6:7:8", "FE80::A"]),
        (
            .uri,
            [
                "http://a", "urn:isbn:1", "mailto:a@b.de", "http://u:p@[::1]:80/a;b=c/%20?q=/?#f/?", "a:", "file:///x",
                "http://[v1.a:b]/", "x://?y", "tel:+1-2", "http://a:/",
            ]
        ),
        (.uriReference, ["", "a", "/a/b", "//h/a", "?q", "#f", "../x", "./a:b", "a/b:c", "http://a"]),
        (
            .uuid,
            [
                "123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000",
                "ABCDEF01-2345-6789-abcd-ef0123456789",
            ]
        ),
        (.jsonPointer, ["", "/", "/a/0", "/a~0b/~1", "//", "/ä"]),
        (.regex, ["", "^a$", "(?=a)b", #"(a)\1"#, #"\p{L}"#, "a{1001}", "a{"]),
    ]

    private static let others: [(JSONSchema.Format, [String])] = [
        (
            .dateTime,
            [
                "", "2024-02-30T00:00:00Z", "2024-01-01 00:00:00Z", "2024-01-01T00:00:00", "2024-01-01T24:00:00Z",
                "2024-01-01T12:00:60Z", "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00Z ", "24-01-01T00:00:00Z",
            ]
        ),
        (
            .date,
            [
                "2023-02-29", "1900-02-29", "2024-13-01", "2024-00-10", "2024-01-00", "2024-1-1", "2024-01-01T",
                "２０24-01-01",
            ]
        ),
        (
            .time,
            [
                "24:00:00Z", "12:60:00Z", "12:00:61Z", "12:00:00", "12:00:00+24:00", "12:00Z", "23:59:60+01:00",
                "12:00:00.5",
            ]
        ),
        (.duration, ["", "P", "PT", "1D", "P1", "P1D2Y", "P1Y2D", "P1W1D", "PT1D", "P1DT", "P1.5D", "P-1D", "p1d"]),
        (
            .email,
            [
                "", "a", "@b", "a@", "a@b@c", "a..b@c", ".a@b", "a.@b", "a b@c", "a@-b", "a@[1.2.3]", "\"a@b", "\"\"",
                "ä@b",
                String(repeating: "a", count: 65) + "@b",
            ]
        ),
        (
            .hostname,
            [
                "", ".", "a.", ".a", "a..b", "-a", "a-", "a_b", "ä", "a b", String(repeating: "a", count: 64),
                Array(repeating: "abcdefg", count: 40).joined(separator: "."),
            ]
        ),
        (
            .ipv4,
            ["", "1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "1.2.3.4 ", "1.2.3.4\u{0}", "0x1.2.3.4", "1.2.3.٤"]
        ),
        (.ipv6, ["", ":", "1::2::3", "12345::", "::1%eth0", "1:2:3:4:5:6:7", "::1.2.3", "::g", "[::1]", "::1\u{0}"]),
        (
            .uri,
            [
                "", "a", "/a", "//h", "1a:b", ":b", "http://a b", "http://a/%zz", "http://a/%2", "http://[::1",
                "http://[x]",
                "http://a/<b>", "http://a\\b", "http://ä", "http://a:x", "http://a@b@c", "a:[", "http://a/#b#c",
                "http://[v1.]/",
            ]
        ),
        (.uriReference, ["a:b c", ":a", "1:b", "a b", "%", "\\a", "//[", "^"]),
        (
            .uuid,
            [
                "", "123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400",
                "g23e4567-e89b-12d3-a456-426614174000", "{123e4567-e89b-12d3-a456-426614174000}",
            ]
        ),
        (.jsonPointer, ["a", "/~", "/~2", "/a~", "#/a"]),
        (.regex, ["(", "a)", "[", "*", #"\"#, "(?<a", #"\p"#, "a{2,1}", #"\A"#]),
    ]

    @Test func everyFormatIsTried() {
        #expect(
            Self.fitting.map(\.0) == JSONSchema.Format.allCases && Self.others.map(\.0) == JSONSchema.Format.allCases)
    }

    @Test(arguments: fitting) func fits(_ format: JSONSchema.Format, _ texts: [String]) throws {
        let schema = try JSONSchema(document: ["format": .init(format.rawValue)], assertingFormats: true)
        for text in texts {
            #expect(throws: Never.self, "\(text)") { try schema.check(JSON(text)) }
            #expect(throws: Never.self, "\(text)") { try JSONSchema.string(format: format).check(JSON(text)) }
        }
        try schema.check(1)
    }

    @Test(arguments: others) func doesNotFit(_ format: JSONSchema.Format, _ texts: [String]) throws {
        let schema = try JSONSchema(document: ["format": .init(format.rawValue)], assertingFormats: true)
        for text in texts {
            let error = #expect(throws: JSONMismatch.self, "\(text)") { try schema.check(JSON(text)) }
            #expect(error?.description == "$: expected string of the format \(format.rawValue), found another string")
        }
        try JSONSchema(document: ["format": .init(format.rawValue)]).check(JSON(texts[0]))
    }

    @Test func aFormatThatCannotBeAssertedIsNamed() throws {
        try JSONSchema(document: ["format": "iri"]).check("x")
        let error = #expect(throws: JSONSchemaError.self) {
            try JSONSchema(document: ["items": ["format": "iri"]], assertingFormats: true)
        }
        #expect(error?.description == "$.items.format: iri is not one of the formats that can be asserted")
    }
}
