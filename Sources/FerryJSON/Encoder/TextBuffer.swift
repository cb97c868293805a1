internal import CFerryJSON
package import FoundationEssentials

/// A byte buffer for a text that grows at its end.
package struct TextBuffer {
    package private(set) var count = 0
    private var capacity: Int
    private(set) var bytes: UnsafeMutablePointer<UInt8>

    package init(capacity: Int) {
        self.capacity = capacity
        bytes = .allocate(capacity: capacity)
    }

    package func deallocate() { bytes.deallocate() }

    /// A copy of the whole text.
    package func data() -> Data { Data(bytes: bytes, count: count) }

    @inline(__always)
    private mutating func reserve(_ more: Int) {
        if capacity - count < more { grow(more) }
    }

    @inline(never)
    private mutating func grow(_ more: Int) {
        capacity = max(2 * capacity, count + more)
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        larger.update(from: bytes, count: count)
        bytes.deallocate()
        bytes = larger
    }

    @inline(__always)
    mutating func append(_ byte: UInt8) {
        reserve(1)
        bytes[count] = byte
        count += 1
    }

    package mutating func append(_ other: UnsafeBufferPointer<UInt8>) {
        guard let start = other.baseAddress else { return }
        reserve(other.count)
        (bytes + count).update(from: start, count: other.count)
        count += other.count
    }

    @inline(__always)
    package mutating func append(_ text: StaticString) {
        append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    @inline(__always)
    mutating func append(plain text: String) {
        var text = text
        text.withUTF8 { append($0) }
    }

    /// A line break and two spaces for each level.
    mutating func append(lineBreakAtLevel level: Int) {
        reserve(1 + 2 * level)
        bytes[count] = UInt8(ascii: "\n")
        (bytes + count + 1).update(repeating: UInt8(ascii: " "), count: 2 * level)
        count += 1 + 2 * level
    }

    @inline(__always)
    mutating func append(integer: some FixedWidthInteger) {
        reserve(21)
        count += ferry_json_write_integer(bytes + count, UInt64(truncatingIfNeeded: integer.magnitude), integer < 0)
    }

    package mutating func append(number: Int64) { append(integer: number) }

    /// Appends this many bytes, which `fill` writes.
    package mutating func append(count more: Int, _ fill: (UnsafeMutableBufferPointer<UInt8>) -> Void) {
        reserve(more)
        fill(UnsafeMutableBufferPointer(start: bytes + count, count: more))
        count += more
    }

    /// Appends a string, quoted and escaped.
    package mutating func append(string: String, escapingSlashes: Bool) {
        var string = string
        string.withUTF8 { utf8 in
            append(UInt8(ascii: "\""))
            var rest = utf8[...]
            // Six bytes are reserved for each byte, which is a lot for a long text.
            while !rest.isEmpty {
                let part = UnsafeBufferPointer(rebasing: rest.prefix(4096))
                reserve(6 * part.count + 1)
                count += ferry_json_escape(bytes + count, part.baseAddress!, part.count, escapingSlashes)
                rest = rest.dropFirst(4096)
            }
            append(UInt8(ascii: "\""))
        }
    }

    /// Replaces the text from `place` on.
    mutating func replace(from place: Int, with other: TextBuffer) {
        count = place
        append(UnsafeBufferPointer(start: other.bytes, count: other.count))
    }

    mutating func removeLast(_ bytes: Int) { count -= bytes }

    /// Inserts bytes.
    mutating func insert(_ other: UnsafeBufferPointer<UInt8>, at place: Int) {
        guard let start = other.baseAddress else { return }
        reserve(other.count)
        memmove(bytes + place + other.count, bytes + place, count - place)
        (bytes + place).update(from: start, count: other.count)
        count += other.count
    }
}
