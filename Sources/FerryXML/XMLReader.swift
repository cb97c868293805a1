public import FoundationEssentials

/// Reads XML documents with Foundation's parser (libxml2), and passes their content to a handler.
///
/// External entities and external document types are never loaded. The parser and `XMLLimits` limit the document's own
/// entities.
///
///     var titles = TitleCollector()            // an XMLHandler
///     try XMLReader().read(body, handler: &titles)
public struct XMLReader: Sendable {
    /// The limits for a document.
    public var limits: XMLLimits

    /// Creates a reader. The default limits are those of `XMLLimits`.
    public init(limits: XMLLimits = XMLLimits()) {
        self.limits = limits
    }

    /// Reads the whole document. Throws `XMLReadError`, or an error of the handler.
    public func read<Handler: XMLHandler>(_ document: Data, handler: inout Handler) throws {
        guard document.count <= limits.documentBytes else {
            throw XMLReadError(reason: .tooLarge, line: 0, column: 0)
        }
        let run = XMLRun(handler: handler, limits: limits)
        defer { handler = run.handler }
        try run.parse(document)
    }

    /// Checks whether the document is well-formed and within the limits.
    public func check(_ document: Data) throws {
        var nobody = Nobody()
        try read(document, handler: &nobody)
    }

    private struct Nobody: XMLHandler {}
}

/// Receives the content of an XML document in order. If a method throws, reading ends with that error. All methods have
/// empty default implementations.
public protocol XMLHandler {
    /// An element starts.
    mutating func startElement(_ element: XMLElementStart) throws
    /// An element ends; `name` is that of its start.
    mutating func endElement(_ name: String) throws
    /// Text within an element, including CDATA. One text may arrive in several pieces.
    mutating func characters(_ text: String) throws
}

extension XMLHandler {
    /// Does nothing.
    public mutating func startElement(_ element: XMLElementStart) throws {}
    /// Does nothing.
    public mutating func endElement(_ name: String) throws {}
    /// Does nothing.
    public mutating func characters(_ text: String) throws {}
}

/// The start of an element.
public struct XMLElementStart: Sendable, Hashable {
    /// The name without its prefix.
    public let name: String
    /// The namespace URI of the name's prefix, or of the default namespace; `nil` if there is none.
    public let namespace: String?
    /// The attributes by name as written, with prefixes.
    public let attributes: [String: String]
}

/// The limits for untrusted documents. Exceeding one fails with an `XMLReadError.Reason`.
public struct XMLLimits: Sendable, Hashable {
    /// The maximum nesting depth of elements. The default is 200; the parser itself refuses more than 256.
    public var depth = 200
    /// The maximum size of the document in bytes. The default is 64 MiB.
    public var documentBytes = 64 << 20
    /// The maximum size of text and attributes in UTF-8 bytes, with entities expanded. The default is 64 MiB.
    public var textBytes = 64 << 20

    /// Creates the default limits.
    public init() {}
}

/// The error for an XML document that could not be read completely.
public struct XMLReadError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The reason of the error.
    public enum Reason: Sendable, Hashable {
        /// The document is not well-formed. The number is libxml2's (`xmlParserErrors`), or 0 for an empty document.
        case malformed(code: Int)
        /// The elements are nested too deeply.
        case tooDeep
        /// The document or its text is too large.
        case tooLarge
    }

    /// The reason.
    public let reason: Reason
    /// The line of the error, counted from 1; 0 if it is unknown.
    public let line: Int
    /// The column of the error, counted from 1; 0 if it is unknown.
    public let column: Int

    /// Creates an error at a position in a document.
    public init(reason: Reason, line: Int, column: Int) {
        self.reason = reason
        self.line = line
        self.column = column
    }

    /// Position and reason in one line.
    public var description: String {
        let text =
            switch reason {
            case .malformed(let code): "not well-formed (\(code))"
            case .tooDeep: "nested too deeply"
            case .tooLarge: "too large"
            }
        return line > 0 ? "XML, line \(line), column \(column): \(text)" : "XML: \(text)"
    }
}
