internal import Foundation
internal import FoundationXML

/// The parser's delegate for one reading of one document.
final class XMLRun<Handler: XMLHandler>: NSObject, XMLParserDelegate {
    private(set) var handler: Handler
    private let limits: XMLLimits
    private var depth = 0
    private var textBytes = 0
    private var hasRoot = false
    /// The first error; the parser continues for a while after an error, and after it was stopped.
    private var failure: (any Error)?

    init(handler: Handler, limits: XMLLimits) {
        self.handler = handler
        self.limits = limits
    }

    /// The parser's own result is true after some errors, and for a text that is too short to be parsed.
    func parse(_ document: Data) throws {
        let parser = XMLParser(data: document)
        parser.delegate = self
        parser.shouldProcessNamespaces = true
        parser.shouldResolveExternalEntities = false
        parser.externalEntityResolvingPolicy = .never
        let isComplete = parser.parse()
        if let failure { throw failure }
        guard isComplete, parser.parserError == nil, hasRoot, depth == 0 else {
            throw malformed(parser, (parser.parserError as NSError?)?.code ?? 0)
        }
    }

    func parser(
        _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        hasRoot = true
        depth += 1
        attempt(parser) {
            guard depth <= limits.depth else { throw error(.tooDeep, parser) }
            for (name, value) in attributes { try count(name.utf8.count + value.utf8.count, parser) }
            let namespace = namespaceURI.flatMap { $0.isEmpty ? nil : $0 }
            try handler.startElement(XMLElementStart(name: name, namespace: namespace, attributes: attributes))
        }
    }

    func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
        depth -= 1
        attempt(parser) { try handler.endElement(name) }
    }

    func parser(_ parser: XMLParser, foundCharacters text: String) {
        attempt(parser) {
            try count(text.utf8.count, parser)
            try handler.characters(text)
        }
    }

    func parser(_ parser: XMLParser, foundCDATA block: Data) {
        attempt(parser) {
            try count(block.count, parser)
            try handler.characters(String(decoding: block, as: UTF8.self))
        }
    }

    func parser(_ parser: XMLParser, parseErrorOccurred error: any Error) {
        attempt(parser) { throw malformed(parser, (error as NSError).code) }
    }

    private func attempt(_ parser: XMLParser, _ body: () throws -> Void) {
        guard failure == nil else { return }
        do {
            try body()
        } catch {
            failure = error
            parser.abortParsing()
        }
    }

    private func count(_ bytes: Int, _ parser: XMLParser) throws {
        textBytes += bytes
        guard textBytes <= limits.textBytes else { throw error(.tooLarge, parser) }
    }

    private func malformed(_ parser: XMLParser, _ code: Int) -> XMLReadError {
        error(.malformed(code: code), parser)
    }

    private func error(_ reason: XMLReadError.Reason, _ parser: XMLParser) -> XMLReadError {
        XMLReadError(reason: reason, line: parser.lineNumber, column: parser.columnNumber)
    }
}
