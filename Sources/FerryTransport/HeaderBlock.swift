/// Header fields in the form in which the core takes them: one block of bytes, no object per field.
///
/// For each field two native 32-bit lengths, then the name's and the value's bytes. The lengths make a line break in a
/// value visible to the core, which refuses it; nothing is ever escaped or cut.
package struct HeaderBlock: Sendable, Equatable {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func append(_ name: String, _ value: String) {
        var name = name
        var value = value
        name.withUTF8 { name in
            value.withUTF8 { value in
                bytes.reserveCapacity(bytes.count + 8 + name.count + value.count)
                appendLength(name.count)
                appendLength(value.count)
                bytes.append(contentsOf: name)
                bytes.append(contentsOf: value)
            }
        }
    }

    private mutating func appendLength(_ length: Int) {
        withUnsafeBytes(of: UInt32(clamping: length)) { bytes.append(contentsOf: $0) }
    }
}
