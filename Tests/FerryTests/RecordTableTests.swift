import Testing

@testable import Ferry
@testable import FerryTestSupport

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

    @Test func whatIsAnsweredCountsNoMoreAndIsFoundUntilItIsRemoved() {
        var table = RecordTable<String>()
        let (kept, left) = (table.insert("kept"), table.insert("left"))
        #expect(table.answer(kept) { _ in true } == "kept")
        #expect(table.answer(left) { _ in false } == "left")
        #expect(table.count == 0 && table.all == ["kept"] && table[kept] == "kept" && table[left] == nil)
        #expect(table.answer(kept) { _ in true } == nil && table.answer(left) { _ in true } == nil)
        let late = table.insertAnswered("late")
        #expect(table.count == 0 && Set(table.all) == ["kept", "late"])
        for id in [kept, late] {
            #expect(table.remove(id) != nil && table.remove(id) == nil)
        }
        #expect(table.count == 0 && table.all.isEmpty)
        // Their slots are reused by others, who count.
        let next = [table.insert("a"), table.insert("b")]
        #expect(table.count == 2 && Set(next).isDisjoint(with: [kept, left, late]))
        #expect(table.remove(next[0]) == "a" && table.count == 1)
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
