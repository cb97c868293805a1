import FaultTable
import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Where a body ends (RFC 9112, 6 and 7): rows R01 to R09.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct FramingFaultTests {
    @Test(
        "R01: the error of a truncated body says how much is missing",
        arguments: [(100, "abc"), (5, Canary.body.prefix(4) + ""), (1, "")])
    func cutShort(length: Int, body: String) async throws {
        let head = head("200 OK", "Content-Length: \(length)\r\n")
        try await expectFault(
            [.expectHead, .send(head + body), .close], .incompleteBody(expected: Int64(length), got: Int64(body.count)),
            .body, received: head.utf8.count + body.utf8.count)
    }

    @Test("R01: a large truncated body is an error, however much of it arrived")
    func cutShortLate() async throws {
        let head = head("200 OK", "Content-Length: 1000000\r\n")
        try await expectFault(
            [.expectHead, .send(head), .pattern(bytes: 999_999), .close],
            .incompleteBody(expected: 1_000_000, got: 999_999), .body, received: head.utf8.count + 999_999)
    }

    @Test(
        "R02: chunks without the last one are an incomplete body",
        arguments: [
            ("5\r\nhello\r\n", 5), ("5\r\nhe", 2), ("5\r\nhello", 5), ("5", 0), ("", 0), ("5\r\nhello\r\n0\r\n", 5),
        ])
    func chunksCutShort(chunks: String, got: Int64) async throws {
        try await expectFault(
            [.expectHead, .send(head("200 OK", "Transfer-Encoding: chunked\r\n") + chunks), .close],
            .incompleteBody(expected: nil, got: got), .body)
    }

    @Test(
        "R03, R04: an invalid chunk size is malformed",
        arguments: [
            "ZZ\r\nhello\r\n0\r\n\r\n", "\r\nhello\r\n", "-5\r\nhello\r\n0\r\n\r\n",
            " 5\r\nhello\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\nQ\r\n\r\n",
            "5\r\nhelloX\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
        ])
    func badChunk(chunks: String) async throws {
        try await expectFault(
            [.expectHead, .send(head("200 OK", "Transfer-Encoding: chunked\r\n") + chunks), .keepOpen],
            .malformedResponse(.chunk), .body)
    }

    @Test("R03: a bad chunk after good ones fails the response and closes the connection")
    func badChunkLate() async throws {
        let good = "5\r\nhello\r\n"
        try await expectFault(
            [
                .expectHead, .send(head("200 OK", "Transfer-Encoding: chunked\r\n")), .repeating(good, times: 10_000),
                .send("G\r\n"), .keepOpen,
            ], .malformedResponse(.chunk), .body
        ) { _ in
        } after: { server in
            #expect(server.connectionCount == 2)
        }
    }

    @Test(
        "R06: two different lengths are refused, in one field or in two",
        arguments: ["Content-Length: 3\r\nContent-Length: 5\r\n", "Content-Length: 5\r\nX: y\r\ncontent-length: 3\r\n"])
    func conflictingLengths(fields: String) async throws {
        try await expectFault(
            [.expectHead, .send(head("200 OK", fields) + "hello"), .keepOpen], .malformedResponse(.conflictingLength),
            .head
        ) { _ in
        } after: { server in
            #expect(server.connectionCount == 2)
        }
    }

    @Test("R06: two equal lengths count as one")
    func agreeingLengths() async throws {
        let fields = "Content-Length: 5\r\nContent-Length: 5\r\n"
        try await expectAnswer([.expectHead, .send(head("200 OK", fields) + "hello"), .serve]) { response, _ in
            #expect(response.text == "hello")
        }
    }

    @Test(
        "R08: an invalid length is malformed",
        arguments: [
            "-3", "+3", "3 3", "0x10", "3,5", "3, 3", "abc", "", "3.0", "99999999999999999999", "1e3",
            "9223372036854775808",
        ])
    func badLength(value: String) async throws {
        try await expectFault(
            [.expectHead, .send(head("200 OK", "Content-Length: \(value)\r\n") + "abc"), .keepOpen],
            .malformedResponse(.length), .head)
    }

    @Test(
        "R09: a length and chunks together are refused",
        arguments: [
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        ])
    func lengthAndChunks(fields: String) async throws {
        try await expectFault(
            [.expectHead, .send(head("200 OK", fields) + "5\r\nhello\r\n0\r\n\r\n"), .keepOpen],
            .malformedResponse(.conflictingLength), .head
        ) { _ in
        } after: { server in
            #expect(server.connectionCount == 2)
        }
    }

    @Test(
        "R09: a transfer coding that was not requested is refused",
        arguments: [
            "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: xchunked\r\n",
            "Transfer-Encoding: identity\r\n", "Transfer-Encoding:\r\n",
        ])
    func badTransferCoding(fields: String) async throws {
        try await expectFault(
            [.expectHead, .send(head("200 OK", fields) + "5\r\nhello\r\n0\r\n\r\n"), .keepOpen],
            .malformedResponse(.transferEncoding), .head)
    }
}
