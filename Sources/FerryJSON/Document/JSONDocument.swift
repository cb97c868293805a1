internal import CFerryJSON

/// The owner of a tape: what all views of one document share.
///
/// Sendable because a tape never changes once it is here, and is freed when nobody refers to it any more.
@usableFromInline
package final class JSONDocument: @unchecked Sendable {
    // The two parts of the tape, because other modules have no `ferry_json_tape`.
    @usableFromInline let words: UnsafePointer<UInt64>
    private let strings: UnsafePointer<UInt8>
    private let memory: Memory

    var tape: ferry_json_tape { ferry_json_tape(words: words, strings: strings) }

    private enum Memory {
        case parser(OpaquePointer)
        case own(UnsafeMutablePointer<UInt64>, UnsafeMutablePointer<UInt8>)
    }

    /// Takes over a document of the parser, and gives the parser back to its pool in the end.
    init(parsed: OpaquePointer) {
        ShortStrings.areSeen
        let tape = ferry_json_tape_of(parsed)
        words = tape.words
        strings = tape.strings
        memory = .parser(parsed)
    }

    /// A document that was built, not parsed.
    init(words: [UInt64], strings: [UInt8]) {
        ShortStrings.areSeen
        let wordCopy = UnsafeMutablePointer<UInt64>.allocate(capacity: words.count)
        wordCopy.initialize(from: words, count: words.count)
        wordCopy[0] = ferry_json_new_identity()
        // The search for a key reads up to 16 bytes after the last string.
        let stringCopy = UnsafeMutablePointer<UInt8>.allocate(capacity: strings.count + 16)
        stringCopy.initialize(from: strings, count: strings.count)
        (stringCopy + strings.count).initialize(repeating: 0, count: 16)
        self.words = UnsafePointer(wordCopy)
        self.strings = UnsafePointer(stringCopy)
        memory = .own(wordCopy, stringCopy)
    }

    deinit {
        switch memory {
        case .parser(let document): ferry_json_release(document)
        case .own(let words, let strings):
            words.deallocate()
            strings.deallocate()
        }
    }

    /// The parser's handle, if this document came from text.
    var parsed: OpaquePointer? {
        if case .parser(let document) = memory { document } else { nil }
    }
}

/// Strings of up to 15 bytes of ASCII, which Swift keeps within the two words of the string itself.
private enum ShortStrings {
    /// Checks once, for every length, whether Swift stores them as `ferry_json_short_words` assumes, and uses that if
    /// so.
    static let areSeen: Void = {
        let words: [UInt64] = [0, UInt64(JSONTag.string) << 56]
        let areAsThought = (0...15).allSatisfy { count in
            let text = String(decoding: (0..<count).map { UInt8(ascii: "a") + UInt8($0) }, as: UTF8.self)
            let length = withUnsafeBytes(of: UInt32(count), Array.init)
            let room = [UInt8](repeating: 0xff, count: 16)
            return (length + text.utf8 + room).withUnsafeBufferPointer { strings in
                words.withUnsafeBufferPointer { words in
                    let tape = ferry_json_tape(words: words.baseAddress!, strings: strings.baseAddress!)
                    var (low, high) = (UInt64(0), UInt64(0))
                    return ferry_json_short_words(tape, 1, &low, &high)
                        && unsafeBitCast(text, to: (UInt64, UInt64).self) == (low, high)
                }
            }
        }
        if areAsThought { ferry_json_use_short_words() }
    }()
}

/// The tags of the tape's words.
enum JSONTag {
    static let signed = UInt8(ascii: "l")
    static let unsigned = UInt8(ascii: "u")
    static let double = UInt8(ascii: "d")
    static let string = UInt8(ascii: "\"")
    static let yes = UInt8(ascii: "t")
    static let no = UInt8(ascii: "f")
    static let null = UInt8(ascii: "n")
    static let array = UInt8(ascii: "[")
    static let arrayEnd = UInt8(ascii: "]")
    static let object = UInt8(ascii: "{")
    static let objectEnd = UInt8(ascii: "}")
}

extension ferry_json_tape {
    /// The bytes of the string at `index`; they live as long as the tape.
    @inline(__always)
    func utf8(at index: Int) -> UnsafeBufferPointer<UInt8> {
        var count = 0
        let start = ferry_json_string(self, index, &count)
        return UnsafeBufferPointer(start: start, count: count)
    }

    /// The string at `index`.
    @inline(__always)
    func string(at index: Int) -> String {
        var words = (UInt64(0), UInt64(0))
        guard ferry_json_short_string(self, index, &words.0, &words.1) else { return copy(of: index) }
        // Moved, as a copy would count a reference that this string does not have.
        return withUnsafeMutablePointer(to: &words) { words in
            UnsafeMutableRawPointer(words).assumingMemoryBound(to: String.self).move()
        }
    }

    /// The parser, or a string of Swift's, has vouched for the UTF-8.
    @inline(never)
    private func copy(of index: Int) -> String {
        let bytes = utf8(at: index)
        let isASCII = ferry_json_is_ascii(bytes.baseAddress!, bytes.count)
        return String(copying: unsafe UTF8Span(unchecked: bytes.span, isKnownASCII: isASCII))
    }

    /// The number at `index` as an integer, if it is one that the type can hold; `1.0` and `1e2` are integers. A double
    /// from 2^53 on is not, because the text may have had another integer.
    @inline(__always)
    func integer<T: FixedWidthInteger>(at index: Int, as type: T.Type = T.self) -> T? {
        switch ferry_json_tag(self, index) {
        case JSONTag.signed: T(exactly: Int64(bitPattern: words[index + 1]))
        case JSONTag.unsigned: T(exactly: words[index + 1])
        case JSONTag.double:
            ferry_json_double(self, index).magnitude < 0x1p53 ? T(exactly: ferry_json_double(self, index)) : nil
        default: nil
        }
    }

    /// The number at `index`, rounded to the nearest double if it is an integer beyond 2^53.
    @inline(__always)
    func number(at index: Int) -> Double? {
        switch ferry_json_tag(self, index) {
        case JSONTag.signed: Double(Int64(bitPattern: words[index + 1]))
        case JSONTag.unsigned: Double(words[index + 1])
        case JSONTag.double: ferry_json_double(self, index)
        default: nil
        }
    }

    /// The value of the last member with this key in an object, or 0; also 0 in anything else.
    ///
    /// Most programs ask for the same keys in the same order. The thread's notes keep these strings alive, so that a
    /// string with the same two words has the same contents. It needs no comparison of its bytes.
    @inline(__always)
    func find(_ key: String, in object: Int) -> Int {
        let words = unsafeBitCast(key, to: (UInt64, UInt64).self)
        let found = ferry_json_expected(self, object, words.0, words.1)
        return found < 0 ? findLater(key, in: object) : found
    }

    @inline(never)
    private func findLater(_ key: String, in object: Int) -> Int {
        let words = unsafeBitCast(key, to: (UInt64, UInt64).self)
        let found = ferry_json_expected_later(self, object, words.0, words.1)
        return found < 0 ? search(for: key, in: object) : found
    }

    /// In bytes. No member of an object with noted keys has a longer key.
    private static var longestKept: Int { 256 }

    @inline(never)
    private func search(for key: String, in object: Int) -> Int {
        guard ferry_json_tag(self, object) == JSONTag.object else { return 0 }
        var copy = key
        let found = copy.withUTF8 { bytes in
            // An empty string may come without an address.
            ferry_json_find(self, object, bytes.baseAddress ?? strings, bytes.count)
        }
        // Keys that are expected are short; a thread does not keep others.
        if key.utf8.count > Self.longestKept { return found }
        var isKept = false
        let room = ferry_json_expect(
            self, object, found, { $0.assumingMemoryBound(to: String.self).deinitialize(count: 1) }, &isKept)
        guard let room else { return found }
        if isKept {
            room.assumingMemoryBound(to: String.self).pointee = key
        } else {
            room.initializeMemory(as: String.self, to: key)
        }
        return found
    }
}
