internal import CFerryJSON

/// The owner of a tape: what all views of one document share.
///
/// Sendable because a tape never changes once it is here, and is freed when nobody refers to it any more.
package final class JSONDocument: @unchecked Sendable {
    let tape: ferry_json_tape
    private let memory: Memory

    private enum Memory {
        case parser(OpaquePointer)
        case own(UnsafeMutablePointer<UInt64>, UnsafeMutablePointer<UInt8>)
    }

    /// Takes over a document of the parser, and gives the parser back to its pool in the end.
    init(parsed: OpaquePointer) {
        tape = ferry_json_tape_of(parsed)
        memory = .parser(parsed)
    }

    /// A document made by hand.
    init(words: [UInt64], strings: [UInt8]) {
        let wordCopy = UnsafeMutablePointer<UInt64>.allocate(capacity: words.count)
        wordCopy.initialize(from: words, count: words.count)
        wordCopy[0] = ferry_json_new_identity()
        // Looking for a key reads up to four bytes behind the last string.
        let stringCopy = UnsafeMutablePointer<UInt8>.allocate(capacity: strings.count + 4)
        stringCopy.initialize(from: strings, count: strings.count)
        (stringCopy + strings.count).initialize(repeating: 0, count: 4)
        tape = ferry_json_tape(words: wordCopy, strings: stringCopy)
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
