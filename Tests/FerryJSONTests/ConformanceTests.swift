import FerryJSON
import Testing

/// The texts that a JSON parser must accept, must refuse, or may treat as it likes (RFC 8259); for the last, the choice
/// is fixed here.
@Suite struct ConformanceTests {
    @Test("A text of the grammar is accepted, and has the same value when written again", arguments: Corpus.accepted)
    func accepted(_ text: String) throws {
        let json = try JSON(parsing: text)
        #expect(try JSON(parsing: json.description) == json)
        #expect(try JSON(parsing: json.bytes(pretty: true)) == json)
    }

    @Test("A text outside the grammar is refused, with an offset within it", arguments: Corpus.refused)
    func refused(_ text: String) {
        let error = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: text) }
        #expect((0...text.utf8.count).contains(error?.offset ?? -1))
    }

    @Test("Bytes that are not UTF-8 are refused at the first invalid one", arguments: Corpus.notUTF8)
    func notUTF8(_ sample: Corpus.Bytes) {
        let error = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: sample.bytes) }
        #expect(error == JSONSyntaxError(reason: .invalidUTF8, offset: sample.offset))
    }

    @Test("Where the grammar allows a choice, the documented one is made", arguments: Corpus.chosen)
    func chosen(_ sample: Corpus.Choice) throws {
        #expect(try JSON(parsing: sample.text).description == sample.written)
    }

    @Test func theCorpusIsLargeEnoughToMeanSomething() {
        #expect(Corpus.accepted.count + Corpus.refused.count + Corpus.notUTF8.count + Corpus.chosen.count >= 150)
    }

    @Test func aDocumentCutAnywhereIsRefused() throws {
        let whole = #"{"a":[1,-2.5e3,"x\u00e9\n",{"b":null}],"c":{"d":true,"e":false}}"#
        _ = try JSON(parsing: whole)
        for count in 0..<whole.utf8.count {
            let cut = Array(whole.utf8.prefix(count))
            let error = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: cut) }
            #expect((0...count).contains(error?.offset ?? -1))
        }
    }

    @Test func anyByteMayBeChangedWithoutHarm() {
        let whole = Array(#"{"a":[1,-2.5e3,"x\u00e9\n",{"b":null}],"c":{"d":true,"e":false}}"#.utf8)
        for place in whole.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = whole
                changed[place] = byte
                guard let json = try? JSON(parsing: changed) else { continue }
                #expect((try? JSON(parsing: json.bytes())) == json)
            }
        }
    }
}
