import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The checks of a response, in order: transport, status, content type, format, schema, value.
@Suite struct ValidationOrderTests {
    private struct Checked: Request {
        typealias Value = Int
        var acceptedContentTypes: [String]?
        var formatFails = false
        var jsonSchema: JSONSchema?
        var valueFails = false
        let asked = Asked()

        /// The checks that were made.
        final class Asked: Sendable {
            private let list = Mutex<[String]>([])
            func note(_ name: String) { list.withLock { $0.append(name) } }
            var all: [String] { list.withLock { $0 } }
        }

        var path: String { "/x" }
        var statusValidation: StatusValidation? {
            .custom { [asked] status in
                asked.note("status")
                return status == 200
            }
        }
        var responseFormat: ResponseFormat {
            ResponseFormat("picky") { [asked, formatFails] response throws(RequestError) in
                asked.note("format")
                if formatFails { throw RequestError(.decoding, message: "not of the format") }
            }
        }
        func value(from response: Response) throws -> Int {
            asked.note("value")
            if valueFails { throw Oops() }
            return 1
        }
    }

    private func code(_ request: Checked, _ answer: StubTransport.Response) async -> RequestError.Code? {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: answer))
        return await FerryTestSupport.code { () throws(RequestError) in try await agent.send(request) }
    }

    private let body = "body"
    private var all: Checked {
        Checked(acceptedContentTypes: ["text/html"], formatFails: true, jsonSchema: [.string], valueFails: true)
    }

    @Test func theTransportComesFirst() async {
        let request = all
        #expect(await code(request, .failure(.connectionReset)) == .connectionReset)
        #expect(request.asked.all.isEmpty)
    }

    @Test func thenTheStatus() async {
        let request = all
        #expect(await code(request, .response(status: 500, body: body)) == .invalidStatusCode(500))
        #expect(request.asked.all == ["status"])
    }

    @Test func thenTheContentType() async {
        let request = all
        #expect(await code(request, .response(body: body)) == .invalidContentType)
        #expect(request.asked.all == ["status"])
    }

    @Test func thenTheFormat() async {
        let request = all
        let answer = StubTransport.Response.response(headers: ["Content-Type": "text/html"], body: body)
        #expect(await code(request, answer) == .decoding)
        #expect(request.asked.all == ["status", "format"])
    }

    @Test func thenTheSchema() async {
        var request = all
        request.formatFails = false
        let headers: Headers = ["Content-Type": "text/html"]
        #expect(await code(request, .response(headers: headers, body: "body")) == .invalidJSON)
        #expect(await code(request, .response(headers: headers, body: "[1]")) == .schemaMismatch)
        #expect(await code(request, .response(headers: headers)) == .invalidJSON, "an empty body fits no schema")
        #expect(request.asked.all == ["status", "format", "status", "format", "status"])
    }

    @Test func thenTheValue() async {
        var request = all
        request.formatFails = false
        let answer = StubTransport.Response.response(headers: ["Content-Type": "text/html"], body: #"["body"]"#)
        #expect(await code(request, answer) == .applicationError)
        #expect(request.asked.all == ["status", "format", "value"])
        request.valueFails = false
        #expect(await code(request, answer) == nil)
    }

    @Test func anEmptyBodyHasNoTypeAndNoFormat() async {
        var request = all
        request.valueFails = false
        request.jsonSchema = nil
        #expect(await code(request, .response()) == nil)
        #expect(request.asked.all == ["status", "value"])
    }

    @Test func theErrorSaysWhatWasNotAsked() async throws {
        let answer = StubTransport.Response.response(headers: ["Content-Type": "Text/Plain; x=canary"], body: "canary")
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: answer))
        do throws(RequestError) {
            try await agent.send(all)
            Issue.record("it was accepted")
        } catch {
            #expect(error.message.contains("text/plain"))
            #expect(!error.description.contains("canary"))
            #expect(error.phase == .processing && error.mayHaveBeenProcessed && error.attempts == 1)
            #expect(error.response?.status == 200)
            #expect(error.response?.body == Array("canary".utf8))
        }
    }

    @Test(arguments: [
        (["text/html"], "text/html", true), (["text/html"], "TEXT/HTML;charset=utf-8", true),
        (["text/html"], " text/html ; charset=utf-8", true), (["text/*"], "text/html", true),
        (["*/*"], "image/png", true), (["application/*+json"], "application/problem+json", true),
        (["application/json", "text/plain"], "text/plain", true), (["application/*+json"], "application/json", false),
        (["text/*"], "texts/html", false), (["text/html"], "text/htmlx", false), ([], "text/html", false),
        (["text/html"], "", false), (["*/*"], "text", false), (["*/*"], "text/ht ml", false),
        (["nonsense"], "a/b", false),
    ])
    func typesAreCompared(_ accepted: [String], _ type: String, _ isAccepted: Bool) async {
        let headers: Headers = type.isEmpty ? [:] : ["Content-Type": type]
        let request = Checked(acceptedContentTypes: accepted)
        let found = await code(request, .response(headers: headers, body: body))
        #expect(found == (isAccepted ? nil : .invalidContentType))
    }

    @Test func typesAreReadWithoutTheirParameters() {
        #expect(MediaType("Application/JSON; charset=\"a;b\"")?.description == "application/json")
        for text in ["", "/", "a/", "/b", "a", "a/b/c", "a b/c", "a/\u{1}", "a,b/c"] { #expect(MediaType(text) == nil) }
    }

    @Test func anyTypeIsAcceptedByDefault() async {
        var request = Checked()
        #expect(await code(request, .response(headers: ["Content-Type": "nonsense"], body: body)) == nil)
        request.acceptedContentTypes = ["*/*"]
        #expect(await code(request, .response(body: body)) == .invalidContentType, "a body of no type is of no range")
    }
}
