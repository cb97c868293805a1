import FerryTesting
import FerryTransport
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The encoding of form parts, byte by byte.
@Suite(.timeLimit(.minutes(2))) struct MultipartTests {
    private func text(_ form: Multipart) async throws -> String {
        let source = try form.makeSource()
        let bytes = try #require(await drained(source))
        source.close()
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func partsStandInTheirOrderEachWithItsHead() async throws {
        let file = try TemporaryFile(Array("file".utf8))
        var form = Multipart(boundary: "B")
        form.append("text", "täxt")
        form.append("bytes", [1, 2].map { UInt8($0) + 0x60 })
        form.append(
            "data", Data("data".utf8), filename: "d.json", contentType: "application/json", headers: ["X-Mark": "1"])
        form.append("file", file: file.path, filename: "f.txt", contentType: "text/plain")
        form.append("stream", filename: "s", stream: { Pieces(pieces: [Array("st".utf8), Array("ream".utf8)]) })
        #expect(form.count == 5)
        #expect(
            try await text(form) == """
                --B\r
                Content-Disposition: form-data; name="text"\r
                \r
                täxt\r
                --B\r
                Content-Disposition: form-data; name="bytes"\r
                Content-Type: application/octet-stream\r
                \r
                ab\r
                --B\r
                Content-Disposition: form-data; name="data"; filename="d.json"\r
                Content-Type: application/json\r
                X-Mark: 1\r
                \r
                data\r
                --B\r
                Content-Disposition: form-data; name="file"; filename="f.txt"\r
                Content-Type: text/plain\r
                \r
                file\r
                --B\r
                Content-Disposition: form-data; name="stream"; filename="s"\r
                Content-Type: application/octet-stream\r
                \r
                stream\r
                --B--\r\n
                """)
        #expect(try form.makeSource().length == nil)
    }

    @Test func aFormWithoutPartsIsItsEnd() async throws {
        let form = Multipart(boundary: "B")
        #expect(form.isEmpty)
        #expect(try await text(form) == "--B--\r\n")
        #expect(try form.makeSource().length == 7)
    }

    @Test func theLengthIsKnownWhenAllPartsKnowTheirs() async throws {
        let file = try TemporaryFile(LoopbackServer.pattern(0..<300_000))
        var form = Multipart()
        form.append("a", "1")
        form.append("b", [UInt8](repeating: 0x62, count: 100_000))
        form.append("c", file: file.path)
        form.append("d", length: 3, stream: { Pieces(pieces: [[1, 2], [3]]) })
        form.append("e", Data())
        let source = try form.makeSource()
        let bytes = try #require(await drained(source, piece: 1000))
        #expect(source.length == UInt64(bytes.count))
        #expect(try #require(await drained(try form.makeSource())) == bytes)
        form.append("f", stream: { Pieces(pieces: []) })
        #expect(try form.makeSource().length == nil)
    }

    @Test func namesAreEscapedAndNeverBreakOutOfTheirLine() async throws {
        var form = Multipart(boundary: "B")
        form.append("a\"b\r\nEvil: 1\r\n\r\nc", "v")
        form.append("é\\;", Data(), filename: "x\"; name=\"y\r\nEvil: 1.txt")
        let lines = try await text(form).components(separatedBy: "\r\n")
        #expect(lines[1] == "Content-Disposition: form-data; name=\"a%22b%0D%0AEvil: 1%0D%0A%0D%0Ac\"")
        #expect(
            lines[5] == "Content-Disposition: form-data; name=\"é\\;\"; "
                + "filename=\"x%22; name=%22y%0D%0AEvil: 1.txt\"")
        #expect(lines.count == 11)
    }

    @Test func valuesAreSentAsTheyStand() async throws {
        var form = Multipart(boundary: "B")
        form.append("a", "1\n2\r\n3\r\n--C\"")
        #expect(try await text(form).contains("\r\n\r\n1\n2\r\n3\r\n--C\"\r\n--B--\r\n"))
    }

    @Test func ofAPathTheLastNameIsSent() async throws {
        let file = try TemporaryFile()
        var form = Multipart()
        form.append("a", file: file.path)
        let name = try #require(file.path.split(separator: "/").last)
        let sent = try await text(form)
        #expect(sent.contains("; filename=\"\(name)\"\r\n"))
        #expect(!sent.contains(NSTemporaryDirectory()))
    }

    @Test(
        "A part's header that would break out of its line is refused",
        arguments: [
            (["X": "1\r\nEvil: 1"], .headerValue), (["X\r\nEvil": "1"], .headerName), (["": "1"], .headerName),
            (["content-disposition": "x"], .headerName), (["Content-Type": "x"], .headerName),
            (["X": "\0"], .headerValue),
        ] as [(Headers, RequestError.Code.RequestPart)])
    func headers(headers: Headers, part: RequestError.Code.RequestPart) {
        var form = Multipart()
        form.append("a", Data(), headers: headers)
        let fault = #expect(throws: BodyFault.self) { try form.makeSource() }
        #expect(fault?.code == .invalidRequest(part))
    }

    @Test func aContentTypeThatWouldBreakOutIsRefused() {
        var form = Multipart()
        form.append("a", Data(), contentType: "a/b\r\nEvil: 1")
        let fault = #expect(throws: BodyFault.self) { try form.makeSource() }
        #expect(fault?.code == .invalidRequest(.headerValue))
    }

    @Test func boundariesDifferAndAreTokens() {
        let boundaries = (0..<1000).map { _ in Multipart().boundary }
        #expect(Set(boundaries).count == 1000)
        #expect(boundaries.allSatisfy { $0.utf8.count == 31 && $0.utf8.allSatisfy(ByteSet.token.contains) })
    }

    @Test func aBoundaryIsCheckedAndQuotedWhereItHasTo() throws {
        #expect(Multipart(boundary: "a-b").contentType == "multipart/form-data; boundary=a-b")
        #expect(Multipart(boundary: "a:b").contentType == "multipart/form-data; boundary=\"a:b\"")
        _ = try Multipart(boundary: String(repeating: "x", count: 70)).makeSource()
        for bad in ["", "a b", "a\"b", "a\r\nb", "ä", String(repeating: "x", count: 71)] {
            let fault = #expect(throws: BodyFault.self) { try Multipart(boundary: bad).makeSource() }
            #expect(fault?.code == .invalidRequest(.body))
        }
    }

    @Test func argumentsBecomeFieldsNestedAsInForms() {
        let arguments: Arguments = [
            "b": ["x", ["y": 1.5]], "a": true, "c": ["k": nil, "j": ["i": 2.0]], "d": "ä &=[]", "e": [], "f": -7,
        ]
        let fields = arguments.fields.map { "\($0.name)=\($0.value)" }
        #expect(fields == ["a=true", "b[]=x", "b[][y]=1.5", "c[j][i]=2", "c[k]=", "d=ä &=[]", "f=-7"])
    }

    @Test func argumentsComeBeforeTheParts() async throws {
        var form = Multipart(boundary: "B")
        form.append("p", "part")
        let sent = try await text(form.following(["z": "last", "a": "first"]))
        let names = sent.components(separatedBy: "name=\"").dropFirst().map { $0.prefix { $0 != "\"" } }
        #expect(names == ["a", "z", "p"])
        #expect(form.count == 1)
    }

    @Test func allFilesAreOpenBeforeAnythingIsSentAndNoneStaysOpen() throws {
        let file = try TemporaryFile([1])
        var form = Multipart()
        form.append("a", file: file.path)
        form.append("b", file: file.path + "-missing")
        #expect(throws: BodyFault.self) { try form.makeSource() }
        #expect(openDescriptors(of: file.path).isEmpty)
    }

    @Test func aPartThatFailsFailsTheForm() async throws {
        var form = Multipart()
        form.append("a", "1")
        form.append("b", stream: { Pieces(pieces: [[1]], failsAtEnd: true) })
        form.append("c", "2")
        let source = try form.makeSource()
        #expect(await drained(source) == nil)
        #expect(source.failure is Oops)
    }
}
