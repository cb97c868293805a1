public import FoundationEssentials

/// Reads XML documents with Foundation's parser (libxml2) and tells a handler what stands there.
///
/// Nothing outside the document is ever loaded: external entities and external document types are left out. Entities of
/// the document itself are bounded by the parser and by `XMLLimits`.
///
///     var titles = TitleCollector()            // an XMLHandler
///     try XMLReader().read(body, handler: &titles)
public struct XMLReader: Sendable {
    public var limits: XMLLimits

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
