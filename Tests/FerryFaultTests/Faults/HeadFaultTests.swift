import FaultTable
import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// The head of a response (RFC 9112, 4 and 5): rows R11, R14, and the bombs R23 to R26.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct HeadFaultTests {
    @Test(
        "R11: an invalid field is malformed",
        arguments: [
            "X: a\0b", "no colon here", ": no name", "X : white space before the colon", "X Y: two words",
            " folded: at the start", "X: a\r\n folded", "X: a\rb", "X\0: b", "Ü: b", "X: a\r\n\tfolded",
        ])
    func badField(field: String) async throws {
        try await expectFault(
            [.expectHead, .send(head("200 OK", field + "\r\nContent-Length: 5\r\n") + "hello"), .keepOpen],
            .malformedResponse(.header), .head)
    }

    @Test("R11: a bare line feed does not end a line", arguments: ["X: a\n", "X: a\nY: b\r\n"])
    func bareLineFeed(fields: String) async throws {
        try await expectFault(
            [.expectHead, .send(head("200 OK", fields + "Content-Length: 5\r\n") + "hello"), .keepOpen],
            .malformedResponse(.header), .head)
    }

    @Test(
        "R11: an invalid field after the chunks is a malformed trailer",
        arguments: ["no colon\r\n", "X: a\0b\r\n", " X: a\r\n", "5\r\nhello\r\n0\r\n"])
    func badTrailer(trailer: String) async throws {
        let chunks = "5\r\nhello\r\n0\r\n" + trailer + "\r\n"
        try await expectFault(
            [.expectHead, .send(head("200 OK", "Transfer-Encoding: chunked\r\n") + chunks), .keepOpen],
            .malformedResponse(.trailer), .body)
    }

    @Test("R11: values beyond ASCII, empty values and repeated fields are kept unchanged")
    func oddFields() async throws {
        let fields = "X: gr\u{fc}n\r\nEmpty:\r\nTwice: 1\r\nTwice: 2\r\nContent-Length: 2\r\n"
        try await expectAnswer([.expectHead, .send(head("200 OK", fields) + "ok"), .serve]) { response, _ in
            #expect(response.headers["X"] == "gr\u{fc}n")
            #expect(response.headers["empty"] == "")
            #expect(response.headers.values(of: "Twice") == ["1", "2"])
        }
    }

    @Test(
        "R14: an invalid status line is malformed",
        arguments: [
            "hello world\n", "hello world\r\n\r\n", "HTTP/0.9 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "HTTP/3 200\r\n\r\n",
            "HTTP/1.2 200 OK\r\n\r\n", "http/1.1 200 OK\r\n\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n", "\0\0\0\0\0\0",
            "SSH-2.0-OpenSSH_9.2\r\n", "<html>no head at all</html>\n", "HTTP/1.1  200 OK\r\n\r\n",
            "HTTP/1.1 200\0OK\r\n\r\n", "HTTP/1.1 200 OK\n\n",
            "HTTP/2 200 OK\r\n\r\nabc", "HTTP/2 200\r\nContent-Length: 3\r\n\r\nabc",
        ])
    func badStatusLine(line: String) async throws {
        try await expectFault(
            [.expectHead, .send(line), .halfClose, .keepOpen], .malformedResponse(.statusLine), .waitingHead)
    }

    @Test("R14: a protocol switch that was not requested is refused")
    func upgrade() async throws {
        try await expectFault(
            [.expectHead, .send(head("101 Switching Protocols", "Upgrade: x\r\nConnection: upgrade\r\n")), .keepOpen],
            .malformedResponse(.upgrade), .head)
    }

    @Test("R14: a status line without a reason, and HTTP/1.0, are accepted")
    func oddStatusLines() async throws {
        for line in ["HTTP/1.1 200 ", "HTTP/1.1 200", "HTTP/1.0 200 OK"] {
            try await expectAnswer(
                [.expectHead, .send(line + "\r\nContent-Length: 2\r\n\r\nok"), .close]
            ) { response, _ in
                #expect(response.text == "ok")
                #expect(response.httpVersion == (line.contains("1.0") ? .http10 : .http11))
            }
        }
    }

    @Test(
        "R23: one field that is too large is refused with the right code",
        arguments: [65_536, 200_000, 2_000_000])
    func oneLargeField(size: Int) async throws {
        try await expectFault(
            [
                .expectHead, .send("HTTP/1.1 200 OK\r\nX: "), .repeating("x", times: size),
                .send("\r\nContent-Length: 0\r\n\r\n"), .keepOpen,
            ], .headersTooLarge(.bytes), .waitingHead, .head)
    }

    @Test(
        "R23: a status line, a name, and a line without an end are limited in the same way",
        arguments: ["HTTP/1.1 200 ", "HTTP/1.1 200 OK\r\n"])
    func endlessLine(start: String) async throws {
        try await expectFault(
            [.expectHead, .send(start), .repeating("x", times: 1_000_000), .keepOpen], .headersTooLarge(.bytes),
            .waitingHead, .head)
    }

    @Test("R24: many fields are limited together")
    func manyFields() async throws {
        let line = "X: " + String(repeating: "x", count: 1021) + "\r\n"
        try await expectFault(
            [.expectHead, .send("HTTP/1.1 200 OK\r\n"), .repeating(line, times: 1000), .send("\r\n"), .keepOpen],
            .headersTooLarge(.bytes), .head)
    }

    @Test("R24: the limit comes from the configuration", arguments: [100, 1_000, 300_000])
    func ownBound(bound: Int) async throws {
        let line = "X: 5678\r\n"
        let start = "HTTP/1.1 200 OK\r\n", end = "Content-Length: 0\r\n\r\n"
        let fits = (bound - start.utf8.count - end.utf8.count) / line.utf8.count
        // As many as libcurl and the table of fields allow.
        let count = min(fits, 900)
        try await expectAnswer(
            [.expectHead, .send(start), .repeating(line, times: count), .send(end), .serve],
            setUp: { $0.configuration.limits.headerBytes = max(bound, 200) }
        ) { response, _ in
            #expect(response.headers.count == count + 1)
        }
        try await expectFault(
            [
                .expectHead, .send(start), .repeating("X: \(String(repeating: "y", count: 500))\r\n", times: fits),
                .send(end),
                .keepOpen,
            ], .headersTooLarge(.bytes), .head
        ) { $0.configuration.limits.headerBytes = max(bound, 200) }
    }

    @Test("R24: trailers are limited, too")
    func manyTrailers() async throws {
        let chunks = head("200 OK", "Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n0\r\n"
        try await expectFault(
            [.expectHead, .send(chunks), .repeating("X: y\r\n", times: 100_000), .send("\r\n"), .keepOpen],
            .headersTooLarge(.bytes), .body)
    }

    @Test(
        "R26: endless informational responses are refused",
        arguments: [
            "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", "HTTP/1.1 199 x\r\n\r\n",
        ])
    func endlessInformational(answer: String) async throws {
        try await expectFault(
            [.expectHead, .repeating(answer, times: 200_000), .send(head("204 No Content")), .keepOpen],
            .headersTooLarge(.informational), .waitingHead, .head)
    }

    @Test("R26: a few of them are skipped")
    func fewInformational() async throws {
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
        try await expectAnswer(
            [.expectHead, .repeating(hints, times: 5), .send(answer("ok", "X: 1\r\n")), .serve]
        ) { response, _ in
            #expect(response.status == 200)
            #expect(response.headers["Link"] == nil)
            #expect(response.headers["X"] == "1")
            #expect(response.text == "ok")
        }
    }
}
