public import FoundationEssentials

/// Reads XML documents with Foundation's parser (libxml2) and reports their contents to a handler.
///
/// Nothing outside the document is ever loaded: external entities and external document types are ignored. Entities of
/// the document itself are limited by the parser and by `XMLLimits`.
///
///     var titles = TitleCollector()            // an XMLHandler
///     try XMLReader().read(body, handler: &titles)
public struct XMLReader: Sendable {
    /// The limits of a document.
    public var limits: XMLLimits

    /// Creates a reader with limits; the defaults are those of `XMLLimits`.
    public init(limits: XMLLimits = XMLLimits()) {
        self.limits = limits
    }

    /// Reads the whole document. Throws `XMLReadError`, or the error of the handler.
    public func read<Handler: XMLHandler>(_ document: Data, handler: inout Handler) throws {
        guard document.count <= limits.documentBytes else {
            throw XMLReadError(reason: .tooLarge, line: 0, column: 0)
        }
        let run = XMLRun(handler: handler, limits: limits)
        defer { handler = run.handler }
        try run.parse(document)
    }

    /// Checks whether the document is well-formed and within the limits. Throws `XMLReadError` if not.
    public func check(_ document: Data) throws {
        var nobody = Nobody()
        try read(document, handler: &nobody)
    }

    private struct Nobody: XMLHandler {}
}

/// Receives the contents of an XML document, in order. Every method may throw, which ends the reading with that error.
/// The default implementations do nothing.
public protocol XMLHandler {
    /// An element starts.
    mutating func startElement(_ element: XMLElementStart) throws
    /// An element ends; `name` is that of its start.
    mutating func endElement(_ name: String) throws
    /// Text within an element, including CDATA. One text may be delivered in several pieces.
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
    /// The URI of the name's prefix, or of the default namespace; `nil` if there is none.
    public let namespace: String?
    /// The attributes by their names as written, including prefixes.
    public let attributes: [String: String]
}

/// Limits for untrusted documents. A document that exceeds one fails with `XMLReadError.Reason`.
public struct XMLLimits: Sendable, Hashable {
    /// The maximum depth of nested elements. The default is 200; the underlying parser refuses more than 256.
    public var depth = 200
    /// The maximum size of the document in bytes. The default is 64 MiB.
    public var documentBytes = 64 << 20
    /// The maximum size of text and attributes in bytes of UTF-8, with entities expanded. The default is 64 MiB.
    public var textBytes = 64 << 20

    /// Creates the default limits.
    public init() {}
}

/// The error of an XML document that could not be read to its end.
public struct XMLReadError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The reason for an error.
    public enum Reason: Sendable, Hashable {
        /// The document is not well-formed. The number is libxml2's (`xmlParserErrors`), or 0 if the document is empty.
        case malformed(code: Int)
        /// Elements are nested more deeply than the limit.
        case tooDeep
        /// The document, or its text, is larger than the limit.
        case tooLarge
    }

    /// The reason for the error.
    public let reason: Reason
    /// The line of the error, counted from 1; 0 if unknown.
    public let line: Int
    /// The column in that line, counted from 1; 0 if unknown.
    public let column: Int

    /// Creates an error at a position of a document.
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
