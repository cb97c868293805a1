public import FoundationEssentials

/// Reads XML documents with Foundation's parser (libxml2) and tells a handler what stands there.
///
/// Nothing outside the document is ever loaded: external entities and external document types are left out. Entities of
/// the document itself are bounded by the parser and by `XMLLimits`.
///
///     var titles = TitleCollector()            // an XMLHandler
///     try XMLReader().read(body, handler: &titles)
public struct XMLReader: Sendable {
    /// What a document may have at most.
    public var limits: XMLLimits

    /// A reader with bounds; the defaults are those of `XMLLimits`.
    public init(limits: XMLLimits = XMLLimits()) {
        self.limits = limits
    }

    /// Reads the whole document. Throws `XMLReadError`, or what the handler throws.
    public func read<Handler: XMLHandler>(_ document: Data, handler: inout Handler) throws {
        guard document.count <= limits.documentBytes else {
            throw XMLReadError(reason: .tooLarge, line: 0, column: 0)
        }
        let run = XMLRun(handler: handler, limits: limits)
        defer { handler = run.handler }
        try run.parse(document)
    }

    /// Only looks whether the document is well-formed and within the limits.
    public func check(_ document: Data) throws {
        var nobody = Nobody()
        try read(document, handler: &nobody)
    }

    private struct Nobody: XMLHandler {}
}

/// Is told what stands in an XML document, in its order. Every call may throw, which ends the reading with that error.
/// All have empty defaults.
public protocol XMLHandler {
    /// An element begins.
    mutating func startElement(_ element: XMLElementStart) throws
    /// An element ends; `name` as at its beginning.
    mutating func endElement(_ name: String) throws
    /// Text within an element, CDATA included. One text may come in several pieces.
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

/// The beginning of an element.
public struct XMLElementStart: Sendable, Hashable {
    /// The name without its prefix.
    public let name: String
    /// The URI that the name's prefix, or the default namespace, stands for; nil when there is none.
    public let namespace: String?
    /// The attributes by their names as they are written, prefixes included.
    public let attributes: [String: String]
}

/// Bounds for documents of others. What goes beyond one fails with `XMLReadError.Reason`.
public struct XMLLimits: Sendable, Hashable {
    /// Elements within elements. The default is 200; the parser underneath refuses more than 256.
    public var depth = 200
    /// Bytes of the document. The default is 64 MiB.
    public var documentBytes = 64 << 20
    /// Bytes of text and attributes in UTF-8, entities expanded. The default is 64 MiB.
    public var textBytes = 64 << 20

    /// The default bounds.
    public init() {}
}

/// An XML document could not be read to its end.
public struct XMLReadError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Why not.
    public enum Reason: Sendable, Hashable {
        /// It is not well-formed; the number is libxml2's (`xmlParserErrors`), 0 when nothing stands there at all.
        case malformed(code: Int)
        /// More elements within one another than the limit.
        case tooDeep
        /// More bytes, or more text, than the limit.
        case tooLarge
    }

    /// What went wrong.
    public let reason: Reason
    /// Where it was found, counted from 1; 0 where that is not known.
    public let line: Int
    /// The column in that line, counted from 1; 0 where that is not known.
    public let column: Int

    /// An error at a place of a document.
    public init(reason: Reason, line: Int, column: Int) {
        self.reason = reason
        self.line = line
        self.column = column
    }

    /// Place and reason in one line.
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
