extension Response: CustomStringConvertible, CustomReflectable {
    /// One line without secrets, like `200 http://h/x?token=***, 12 bytes`.
    public var description: String { "\(status) \(Redaction.url(url)), \(bodyLength) bytes" }

    /// Likewise; header fields and body are left out.
    public var customMirror: Mirror {
        Mirror(self, children: ["status": status, "url": Redaction.url(url), "bodyLength": bodyLength])
    }
}
