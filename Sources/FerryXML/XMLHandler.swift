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
    public mutating func startElement(_ element: XMLElementStart) throws {}
    public mutating func endElement(_ name: String) throws {}
    public mutating func characters(_ text: String) throws {}
}
