package import FerryTransport

extension Headers {
    /// The fields of a block, unpacked.
    package init(_ block: HeaderBlock) {
        var fields: [Field] = []
        var rest = block.bytes[...]
        while rest.count >= 8 {
            let (name, value) = (Self.length(rest), Self.length(rest.dropFirst(4)))
            rest = rest.dropFirst(8)
            let field = Field(
                name: String(decoding: rest.prefix(name), as: UTF8.self),
                value: String(decoding: rest.dropFirst(name).prefix(value), as: UTF8.self))
            fields.append(field)
            rest = rest.dropFirst(name + value)
        }
        self.init(fields)
    }

    private static func length(_ bytes: ArraySlice<UInt8>) -> Int {
        Int(bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) })
    }
}
