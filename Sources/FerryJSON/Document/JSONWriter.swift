internal import CFerryJSON

extension JSON: CustomStringConvertible {
    /// The value as JSON text, without white space.
    public var description: String { String(decoding: bytes(), as: UTF8.self) }

    /// The value as JSON text in UTF-8 (RFC 8259), members in their order; `pretty` gives each its own line, indented
    /// by two spaces.
    public func bytes(pretty: Bool = false) -> [UInt8] {
        var writer = JSONWriter(pretty: pretty, tape: document.tape)
        writer.write(from: index)
        return writer.bytes
    }
}

/// Writes a value of a tape as text (RFC 8259).
struct JSONWriter {
    private(set) var bytes: [UInt8] = []
    private let pretty: Bool
    private let tape: ferry_json_tape
    /// The open containers: whether each is an object, and whether it is still empty.
    private var open: [(isObject: Bool, isEmpty: Bool)] = []

    init(pretty: Bool, tape: ferry_json_tape) {
        self.pretty = pretty
        self.tape = tape
    }

    mutating func write(from start: Int) {
        let end = ferry_json_after(tape, start)
        var index = start
        while index < end {
            let tag = ferry_json_tag(tape, index)
            if tag == JSONTag.arrayEnd || tag == JSONTag.objectEnd {
                close(tag)
                index += 1
                continue
            }
            separate()
            if open.last?.isObject == true {
                write(string: tape.utf8(at: index))
                bytes.append(UInt8(ascii: ":"))
                if pretty { bytes.append(UInt8(ascii: " ")) }
                index += 1
            }
            index = writeWord(at: index)
        }
    }

    /// Writes a scalar or the beginning of a container; returns the index after it.
    private mutating func writeWord(at index: Int) -> Int {
        switch ferry_json_tag(tape, index) {
        case JSONTag.string: write(string: tape.utf8(at: index))
        case JSONTag.signed: write(Int64(bitPattern: tape.words[index + 1]).description)
        case JSONTag.unsigned: write(tape.words[index + 1].description)
        case JSONTag.double: write(ferry_json_double(tape, index).description)
        case JSONTag.yes: write("true")
        case JSONTag.no: write("false")
        case let tag where tag == JSONTag.array || tag == JSONTag.object:
            bytes.append(tag)
            open.append((tag == JSONTag.object, true))
            return index + 1
        default: write("null")
        }
        return ferry_json_after(tape, index)
    }

    private mutating func separate() {
        guard let container = open.last else { return }
        if !container.isEmpty { bytes.append(UInt8(ascii: ",")) }
        open[open.count - 1].isEmpty = false
        breakLine()
    }

    private mutating func close(_ tag: UInt8) {
        let container = open.removeLast()
        if !container.isEmpty { breakLine() }
        bytes.append(tag)
    }

    private mutating func breakLine() {
        guard pretty else { return }
        bytes.append(UInt8(ascii: "\n"))
        bytes.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * open.count))
    }

    private mutating func write(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    private mutating func write(string: UnsafeBufferPointer<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        var rest = string[...]
        while let special = rest.firstIndex(where: { $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }
        ) {
            bytes.append(contentsOf: rest[..<special])
            write(escaped: rest[special])
            rest = rest[(special + 1)...]
        }
        bytes.append(contentsOf: rest)
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func write(escaped byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): write("\\\"")
        case UInt8(ascii: "\\"): write("\\\\")
        case UInt8(ascii: "\n"): write("\\n")
        case UInt8(ascii: "\r"): write("\\r")
        case UInt8(ascii: "\t"): write("\\t")
        default: write((byte < 16 ? "\\u000" : "\\u00") + String(byte, radix: 16))
        }
    }
}
