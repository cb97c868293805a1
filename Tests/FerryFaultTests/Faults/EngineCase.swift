import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// A response, and its outcome on both engines.
struct EngineCase: Sendable, CustomTestStringConvertible {
    let name: String
    let steps: [LoopbackScript.Step]
    let outcome: String
    /// The outcome on libcurl's engine, if different.
    let libcurl: String?
    var request = HTTPRequest(.get, "/fault")

    var testDescription: String { name }

    init(
        _ name: String, _ outcome: String, libcurl: String? = nil, _ steps: LoopbackScript.Step...,
        method: HTTPMethod = .get
    ) {
        (self.name, self.outcome, self.libcurl, self.steps) = (name, outcome, libcurl, steps)
        request.statusValidation = .any
        request.method = method
        if method == .post { request.body = .bytes(Array(repeating: 0x70, count: 1_000)) }
    }

    private static func ok(_ fields: String, _ body: String = "") -> LoopbackScript.Step {
        .send("HTTP/1.1 200 OK\r\n" + fields + "\r\n" + body)
    }

    private static func chunked(_ body: String) -> LoopbackScript.Step {
        ok("Transfer-Encoding: chunked\r\n", body)
    }

    static let all = chunks + heads + lengths + informational + ends

    private static let chunks = [
        EngineCase("extension", "200 hello", chunked("5;a=b;c=\"d\"\r\nhello\r\n0\r\n\r\n"), .serve),
        EngineCase("padded size", "200 hello", chunked("5  \r\nhello\r\n0\r\n\r\n"), .serve),
        EngineCase("leading zeros", "200 hello", chunked("0005\r\nhello\r\n000\r\n\r\n"), .serve),
        EngineCase("upper case", "200 hellohello", chunked("A\r\nhellohello\r\n0\r\n\r\n"), .serve),
        EngineCase("trailer", "200 hello", chunked("5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"), .serve),
        EngineCase("no digits", "malformedResponse(chunk) body true", chunked("ZZ\r\nhello\r\n0\r\n\r\n"), .keepOpen),
        EngineCase("empty size", "malformedResponse(chunk) body true", chunked("\r\nhello\r\n0\r\n\r\n"), .keepOpen),
        EngineCase(
            "negative size", "malformedResponse(chunk) body true", chunked("-5\r\nhello\r\n0\r\n\r\n"), .keepOpen),
        EngineCase(
            "hexadecimal sign", "malformedResponse(chunk) body true", libcurl: "malformedResponse(trailer) body true",
            chunked("0x5\r\nhello\r\n0\r\n\r\n"), .keepOpen),
        EngineCase(
            "endless size", "malformedResponse(chunk) body true", chunked("FFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n"),
            .keepOpen),
        EngineCase("no line end", "malformedResponse(chunk) body true", chunked("5\r\nhelloXX0\r\n\r\n"), .keepOpen),
        EngineCase(
            "trailer without a colon", "malformedResponse(trailer) body true",
            chunked("5\r\nhello\r\n0\r\nno colon\r\n\r\n"), .keepOpen),
        EngineCase(
            "folded trailer", "malformedResponse(trailer) body true", chunked("5\r\nhello\r\n0\r\nX: a\r\n b\r\n\r\n"),
            .keepOpen),
    ]

    private static let heads = [
        EngineCase("no words", "200 ", .send("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"), .serve),
        EngineCase("HTTP/1.0", "200 ok", .send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"), .close),
        EngineCase(
            "folded field", "malformedResponse(header) head true", ok("X: a\r\n b\r\nContent-Length: 0\r\n"), .keepOpen),
        EngineCase(
            "folded first", "malformedResponse(header) head true", ok(" X: a\r\nContent-Length: 0\r\n"), .keepOpen),
        EngineCase(
            "no colon", "malformedResponse(header) head true", ok("nocolon\r\nContent-Length: 0\r\n"), .keepOpen),
        EngineCase(
            "blank before the colon", "malformedResponse(header) head true", ok("X : a\r\nContent-Length: 0\r\n"),
            .keepOpen),
        EngineCase("no name", "malformedResponse(header) head true", ok(": a\r\nContent-Length: 0\r\n"), .keepOpen),
        EngineCase("NUL", "malformedResponse(header) head true", ok("X: a\0b\r\nContent-Length: 0\r\n"), .keepOpen),
        EngineCase("lone CR", "malformedResponse(header) head true", ok("X: a\rb\r\nContent-Length: 0\r\n"), .keepOpen),
        EngineCase(
            "lone LF", "malformedResponse(statusLine) waitingHead true",
            .send("HTTP/1.1 200 OK\nContent-Length: 0\n\n"), .keepOpen),
        EngineCase(
            "long field", "headersTooLarge(bytes) head true",
            ok("X: " + String(repeating: "a", count: 200_000) + "\r\n"), .keepOpen),
        EngineCase(
            "many fields", "headersTooLarge(bytes) head true",
            ok((0..<2_000).map { "X\($0): " + String(repeating: "a", count: 90) + "\r\n" }.joined()),
            .keepOpen),
        EngineCase(
            "upgrade", "malformedResponse(upgrade) head true",
            .send("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), .keepOpen),
    ]

    private static let lengths = [
        EngineCase("two equal lengths", "200 ok", ok("Content-Length: 2\r\nContent-Length: 2\r\n", "ok"), .serve),
        EngineCase(
            "two lengths", "malformedResponse(conflictingLength) head true",
            ok("Content-Length: 3\r\nContent-Length: 5\r\n", "abcde"), .keepOpen),
        EngineCase(
            "list of lengths", "malformedResponse(length) head true", ok("Content-Length: 2, 2\r\n", "ok"), .keepOpen),
        EngineCase(
            "negative length", "malformedResponse(length) head true", ok("Content-Length: -3\r\n", "abc"), .keepOpen),
        EngineCase(
            "signed length", "malformedResponse(length) head true", ok("Content-Length: +3\r\n", "abc"), .keepOpen),
        EngineCase(
            "endless length", "malformedResponse(length) head true",
            ok("Content-Length: 99999999999999999999\r\n", "abc"), .keepOpen),
        EngineCase("empty length", "malformedResponse(length) head true", ok("Content-Length: \r\n", "abc"), .keepOpen),
        EngineCase(
            "length and chunks", "malformedResponse(conflictingLength) head true",
            ok("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
            .keepOpen),
        EngineCase(
            "chunks twice", "malformedResponse(transferEncoding) head true",
            ok("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), .keepOpen),
        EngineCase(
            "other coding", "malformedResponse(transferEncoding) head true",
            ok("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), .keepOpen),
        EngineCase(
            "unknown coding", "malformedResponse(transferEncoding) head true", ok("Transfer-Encoding: x\r\n", "abc"),
            .close),
        EngineCase("204 with a length", "204 ", .send("HTTP/1.1 204 No\r\n\r\n"), .serve),
        EngineCase("304", "304 ", .send("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), .serve),
        EngineCase("HEAD", "200 ", ok("Content-Length: 500\r\n"), .serve, method: .head),
        EngineCase(
            "broken gzip", "contentDecoding(corrupt) body true",
            ok("Content-Encoding: gzip\r\nContent-Length: 11\r\n", "\u{1f}\u{8}\u{0}garbage!"),
            .keepOpen),
    ]

    private static let informational = [
        EngineCase(
            "five hints", "200 ok",
            .send(String(repeating: "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", count: 5)),
            ok("Content-Length: 2\r\n", "ok"), .serve),
        EngineCase(
            "flood", "headersTooLarge(informational) head true",
            .repeating("HTTP/1.1 100 Continue\r\n\r\n", times: 2_000),
            ok("Content-Length: 2\r\n", "ok"), .keepOpen),
        EngineCase(
            "nothing behind", "connectionClosed waitingHead true", .send("HTTP/1.1 100 Continue\r\n\r\n"), .close),
    ]

    private static let ends = [
        EngineCase("nothing", "connectionClosed waitingHead true", .close),
        EngineCase("reset", "connectionReset waitingHead true", .reset),
        EngineCase("half a line", "connectionClosed waitingHead true", .send("HTTP/1.1 2"), .close),
        EngineCase("half a head", "connectionClosed head true", .send("HTTP/1.1 200 OK\r\nCont"), .close),
        EngineCase(
            "inside the length", "incompleteBody(expected: 100, got: 3) body true",
            ok("Content-Length: 100\r\n", "abc"), .close),
        EngineCase(
            "inside a chunk", "incompleteBody(expected: unknown, got: 3) body true", chunked("5\r\nhel"), .close),
        EngineCase(
            "between chunks", "incompleteBody(expected: unknown, got: 5) body true", chunked("5\r\nhello\r\n"), .close),
        EngineCase(
            "inside a trailer", "incompleteBody(expected: unknown, got: 5) body true",
            chunked("5\r\nhello\r\n0\r\nX: y\r\n"), .close),
        EngineCase("until the close", "200 abc", ok("", "abc"), .close),
        EngineCase("silent", "timeout(responseHead) waitingHead true", .keepOpen),
        EngineCase("silent in the head", "timeout(responseHead) head true", .send("HTTP/1.1 200 OK\r\n"), .keepOpen),
        EngineCase("silent in the body", "timeout(read) body true", ok("Content-Length: 10\r\n", "abc"), .keepOpen),
        EngineCase("upload and nothing", "connectionClosed waitingHead true", .expectBody, .close, method: .post),
        EngineCase("upload and reset", "connectionReset waitingHead true", .expectBody, .reset, method: .post),
        EngineCase(
            "upload refused", "413 no",
            .send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"),
            .close, method: .post),
    ]
}
