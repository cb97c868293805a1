import Testing

@testable import Ferry

@Suite struct RecordTableTests {
    @Test func idsAreNeverUsedTwice() {
        var table = RecordTable<Int>()
        var seen: Set<UInt64> = []
        for round in 0..<100 {
            let ids = (0..<10).map { table.insert(round * 10 + $0) }
            for id in ids { #expect(seen.insert(id).inserted) }
            for (offset, id) in ids.enumerated() { #expect(table.remove(id) == round * 10 + offset) }
        }
        #expect(table.count == 0)
        #expect(seen.allSatisfy { $0 > UInt64(UInt32.max) })
    }

    @Test func lateIdsFindNothing() {
        var table = RecordTable<String>()
        let id = table.insert("a")
        #expect(table[id] == "a")
        #expect(table.remove(id) == "a")
        #expect(table.remove(id) == nil)
        let next = table.insert("b")
        #expect(table[id] == nil)
        #expect(table[next] == "b")
        #expect(table[0] == nil)
        #expect(table[.max] == nil)
        #expect(table.all == ["b"])
    }
}
