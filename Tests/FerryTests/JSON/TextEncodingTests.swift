import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Text in the charset that the server declares.
@Suite struct TextEncodingTests {
    private func value(_ type: String?, _ bytes: [UInt8]) async throws -> Reply<String> {
        let headers: Headers = type.map { ["Content-Type": $0] } ?? [:]
        let agent = NetworkAgent(
            configuration: .test, stub: StubTransport(always: .response(headers: headers, body: bytes)))
        return try await agent.send(HTTPRequest(.get, "/page", as: String.self))
    }

    @Test(
        arguments: [
            (nil, Array("na\u{EF}ve".utf8), "na\u{EF}ve"),
            ("text/plain", Array("na\u{EF}ve".utf8), "na\u{EF}ve"),
            ("text/plain; charset=utf-8", Array("\u{20AC}".utf8), "\u{20AC}"),
            ("text/plain; charset=ISO-8859-1", [0x6E, 0xEF, 0x80], "n\u{EF}\u{80}"),
            ("text/plain;charset=\"windows-1252\"", [0x80, 0x93, 0xEF, 0x81], "\u{20AC}\u{201C}\u{EF}\u{81}"),
            ("text/html; a=b; Charset = us-ascii", [0x61, 0xE4], "a\u{FFFD}"),
            ("text/plain; charset=utf-16", [0xFF, 0xFE, 0xAC, 0x20], "\u{20AC}"),
            ("text/plain; charset=utf-16", [0xFE, 0xFF, 0x20, 0xAC], "\u{20AC}"),
            ("text/plain; charset=utf-16", [0x20, 0xAC, 0x61], "\u{20AC}\u{FFFD}"),
            ("text/plain; charset=UTF-16LE", [0x3D, 0xD8, 0x00, 0xDE], "\u{1F600}"),
            ("text/plain; charset=iso-8859-15", [0xA4], "\u{20AC}"),
            ("text/plain; charset=Shift_JIS", [0x93, 0xFA, 0x96, 0x7B], "\u{65E5}\u{672C}"),
            // The last letter may have waited for an accent.
            ("text/html; charset=windows-1258", Array("Xin chao".utf8), "Xin chao"),
            ("text/html; charset=windows-1258", [0x61, 0xCC], "a\u{300}"),
            ("text/html; charset=windows-1258", [0x61], "a"),
            ("text/plain; charset=iso-2022-jp", [0x1B, 0x24, 0x42, 0x46, 0x7C, 0x4B, 0x5C], "\u{65E5}\u{672C}"),
            ("text/plain; charset=no-such-charset", Array("\u{20AC}".utf8), "\u{20AC}"),
            ("text/plain; charset=utf-7//IGNORE", Array("a".utf8), "a"),
            ("text/plain; charset=", Array("\u{20AC}".utf8), "\u{20AC}"),
        ] as [(String?, [UInt8], String)])
    func textIsDecodedByTheCharsetOfItsContentType(_ type: String?, _ bytes: [UInt8], _ text: String) async throws {
        let reply = try await value(type, bytes)
        #expect(reply.value == text)
        #expect(reply.text == text)
    }

    @Test func theCallerMayNameAnotherEncoding() async throws {
        let reply = try await value("text/plain; charset=utf-8", [0x80, 0xE4])
        #expect(reply.response.text(as: .windows1252) == "\u{20AC}\u{E4}")
        #expect(reply.response.text(as: .isoLatin1) == "\u{80}\u{E4}")
        #expect(reply.response.text(as: TextEncoding("iso-8859-15")) == "\u{80}\u{E4}")
        #expect(reply.response.text(as: .ascii) == "\u{FFFD}\u{FFFD}")
    }

    @Test func bytesThatAreNoTextAreRepairedAlsoByTheCLibrary() async throws {
        let long = Array(repeating: UInt8(0x61), count: 10_000)
        #expect(
            try await value("text/plain; charset=euc-jp", long + [0xFF] + long).value.unicodeScalars.count == 20_001)
        #expect(try await value("text/plain; charset=shift_jis", [0x61, 0x93]).value == "a\u{FFFD}")
    }
}
