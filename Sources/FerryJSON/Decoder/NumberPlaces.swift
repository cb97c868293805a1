internal import CFerryJSON

/// Finds the text of numbers, in any order: where every so many words of the tape stand in the text is kept.
struct NumberPlaces {
    /// How many words one search goes at most.
    private static let distance = 1024

    private var last = ferry_json_cursor()
    /// The cursor at each multiple of the distance, as far as was looked.
    private var marks: [ferry_json_cursor] = []

    /// The bytes of the number at `index`, in the text that the document was parsed from.
    mutating func digits(
        of index: Int, in document: OpaquePointer, _ text: UnsafeRawBufferPointer
    ) -> UnsafeBufferPointer<UInt8>? {
        guard let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return nil }
        let mark = text.count >= 3 && start[0] == 0xef && start[1] == 0xbb && start[2] == 0xbf ? 3 : 0
        let offset = offset(of: index, in: document, start + mark)
        guard offset != Int(bitPattern: UInt.max) else { return nil }
        let begin = start + mark + offset
        let end = start + text.count
        var place = begin
        while place < end, Self.isPartOfNumber(place.pointee) { place += 1 }
        return UnsafeBufferPointer(start: begin, count: place - begin)
    }

    private mutating func offset(of index: Int, in document: OpaquePointer, _ text: UnsafePointer<UInt8>) -> Int {
        // From a little before or behind, the way is short; otherwise from the last mark before.
        if last.index == 0 || index > last.index + Self.distance || index + Self.distance / 2 < last.index {
            while marks.count <= index / Self.distance {
                var cursor = marks.last ?? ferry_json_cursor()
                _ = ferry_json_offset(document, text, max(1, marks.count * Self.distance), &cursor)
                marks.append(cursor)
            }
            last = marks[index / Self.distance]
        }
        return ferry_json_offset(document, text, index, &last)
    }

    @inline(__always)
    private static func isPartOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "+"),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }
}
