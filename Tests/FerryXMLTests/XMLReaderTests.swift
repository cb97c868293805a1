import FerryXML
import Foundation
import Testing

@Suite struct XMLReaderTests {
    /// Records what it is told.
    struct Recorder: XMLHandler {
        var events: [String] = []
        var text = ""

        mutating func startElement(_ element: XMLElementStart) {
            let attributes = element.attributes.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
            events.append("<\(element.namespace.map { "{\($0)}" } ?? "")\(element.name)\(attributes)>")
        }

        mutating func endElement(_ name: String) {
            if !text.isEmpty { events.append(text) }
            text = ""
            events.append("</\(name)>")
        }

        mutating func characters(_ text: String) { self.text += text }
    }

    private func events(_ text: String, _ limits: XMLLimits = XMLLimits()) throws -> [String] {
        var recorder = Recorder()
        try XMLReader(limits: limits).read(Data(text.utf8), handler: &recorder)
        return recorder.events
    }

    private func reason(_ text: String, _ limits: XMLLimits = XMLLimits()) -> XMLReadError.Reason? {
        do {
            try XMLReader(limits: limits).check(Data(text.utf8))
            return nil
        } catch {
            return (error as? XMLReadError)?.reason
        }
    }

    @Test func theHandlerIsToldEverythingInOrder() throws {
        #expect(
            try events("<?xml version='1.0'?><a x='1' y='&lt;'><!-- c --><b>t&amp;ü<![CDATA[<&]]></b><c/></a>")
                == ["<a x=1 y=<>", "<b>", "t&ü<&", "</b>", "<c>", "</c>", "</a>"])
    }

    @Test func namespacesAreResolved() throws {
        #expect(
            try events("<n:a xmlns:n='urn:x'><b xmlns='urn:y'/></n:a>")
                == ["<{urn:x}a>", "<{urn:y}b>", "</b>", "</a>"])
    }

    @Test(
        "A document that is not well-formed fails",
        arguments: [
            "", " ", "x", "<", "<a", "<a>", "<a><b></a>", "<a></a><b/>", "<a/>x", "<a x></a>", "<a x='1' x='2'/>",
            "<a>&nope;</a>",
            "<a>\u{1}</a>", "<a>&#0;</a>", "</a>", "<1/>", "<a><![CDATA[</a>", "<a><!-- </a>", "<?xml version='1.0'?>",
            "<n:a/ >",
        ])
    func malformed(_ text: String) {
        guard case .malformed = reason(text) else {
            Issue.record("\(text.debugDescription) was read")
            return
        }
    }

    @Test func theErrorSaysLineAndColumn() throws {
        do {
            try XMLReader().check(Data("<a>\n  <b></c>\n</a>".utf8))
            Issue.record("it was read")
        } catch let error as XMLReadError {
            #expect(error.line == 2)
            #expect(error.column > 2)
            #expect(error.description.hasPrefix("XML, line 2, column"))
        }
    }

    @Test func bytesThatAreNotUTF8Fail() {
        let document = Data("<a>".utf8) + [0xff] + Data("</a>".utf8)
        #expect(throws: XMLReadError.self) { try XMLReader().check(document) }
    }

    @Test func nothingOutsideTheDocumentIsLoaded() throws {
        let secret = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).txt")
        try Data("secret".utf8).write(to: secret)
        defer { try? FileManager.default.removeItem(at: secret) }
        let document = "<!DOCTYPE a [<!ENTITY e SYSTEM '\(secret.absoluteString)'>]><a>x&e;y</a>"
        let read = (try? events(document)) ?? []
        #expect(!read.joined().contains("secret"))
        _ = try? events("<!DOCTYPE a SYSTEM '\(secret.absoluteString)'><a/>")
    }

    @Test func entitiesThatMultiplyAreStopped() {
        var document = "<!DOCTYPE a [<!ENTITY e0 'lollollollollollol'>"
        for level in 1..<12 {
            document += "<!ENTITY e\(level) '\(String(repeating: "&e\(level - 1);", count: 10))'>"
        }
        document += "]><a>&e11;</a>"
        var limits = XMLLimits()
        limits.textBytes = 10_000
        // Refused, or not expanded at all: never gigabytes.
        #expect(((try? events(document, limits).joined().utf8.count) ?? 0) < 20_000)
    }

    @Test func depthAndSizeAreBounded() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
        }
        #expect(reason(nested(200)) == nil)
        #expect(reason(nested(201)) == .tooDeep)
        #expect(reason(nested(100_000)) == .tooDeep)
        var limits = XMLLimits()
        limits.textBytes = 5
        #expect(reason("<a x='12'>34</a>", limits) == nil)
        #expect(reason("<a x='12'>345</a>", limits) == .tooLarge)
        limits = XMLLimits()
        limits.documentBytes = 10
        #expect(reason("<a>12345</a>", limits) == .tooLarge)
    }

    @Test func whatTheHandlerThrowsEndsTheReading() throws {
        struct Stop: Error, Equatable {}
        struct Handler: XMLHandler {
            var count = 0
            mutating func startElement(_ element: XMLElementStart) throws {
                count += 1
                if element.name == "stop" { throw Stop() }
            }
        }
        var handler = Handler()
        #expect(throws: Stop.self) { try XMLReader().read(Data("<a><b/><stop/><c/></a>".utf8), handler: &handler) }
        #expect(handler.count == 3)
    }
}
