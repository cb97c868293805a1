extension RequestError.Part: CustomStringConvertible, CustomReflectable {
    /// How much there is; never what.
    public var description: String { "\(status), \(headers.count) header fields, \(body.count) bytes of the body" }

    /// Likewise.
    public var customMirror: Mirror {
        Mirror(self, children: ["status": status, "headers": headers.count, "body": body.count])
    }
}
