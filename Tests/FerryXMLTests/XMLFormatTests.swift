import Ferry
import FerryTesting
import FerryXML
import Testing

/// XML as the format of a response.
@Suite struct XMLFormatTests {
    private struct Titles: XMLHandler {
        var titles: [String] = []
        private var text = ""
        mutating func startElement(_ element: XMLElementStart) { text = "" }
        mutating func characters(_ text: String) { self.text += text }
        mutating func endElement(_ name: String) { if name == "title" { titles.append(text) } }
    }

    private struct Feed: Request {
        typealias Value = [String]
        var path: String { "/feed" }
        var responseFormat: ResponseFormat = .xml
        func value(from response: Response) throws -> [String] { try response.readXML(by: Titles()).titles }
    }

    private struct Plain: Request {
        var path: String { "/feed" }
        var responseFormat: ResponseFormat { .xml }
    }

    private func agent(_ body: String) -> NetworkAgent {
        NetworkAgent(configuration: .init(baseURL: "http://h"), stub: StubTransport(always: .response(body: body)))
    }

    private func fault<R: Request>(_ request: R, _ body: String) async -> RequestError? {
        do throws(RequestError) {
            try await agent(body).send(request)
            return nil
        } catch {
            return error
        }
    }

    @Test func valuesAreMadeOfXML() async throws {
        let body = "<feed><title>a</title><title>b &amp; c</title></feed>"
        #expect(try await agent(body).send(Feed()).value == ["a", "b & c"])
        #expect(try await agent(body).send(Plain()).text == body)
    }

    @Test func malformedXMLFailsBeforeTheValue() async throws {
        for body in ["<feed><title>canary</feed>", "canary", "{}", "<a/><b/>"] {
            for error in [await fault(Feed(), body), await fault(Plain(), body)] {
                let error = try #require(error)
                #expect(error.code == .decoding)
                #expect(error.cause is XMLReadError)
                #expect(error.message.hasPrefix("XML"))
                #expect(!error.description.contains("canary"))
                #expect(error.response?.status == 200 && error.phase == .processing)
            }
        }
    }

    @Test func boundsAreTheFormats() async throws {
        var limits = XMLLimits()
        limits.depth = 2
        let format = ResponseFormat.xml(limits: limits)
        #expect(await fault(Feed(responseFormat: format), "<a><b/></a>") == nil)
        let error = try #require(await fault(Feed(responseFormat: format), "<a><b><c/></b></a>"))
        #expect((error.cause as? XMLReadError)?.reason == .tooDeep)
    }

    @Test func anEmptyBodyHasNoFormat() async throws {
        #expect(await fault(Plain(), "") == nil)
        #expect(await fault(Feed(), "")?.code == .decoding, "a value cannot be made of it")
    }
}
