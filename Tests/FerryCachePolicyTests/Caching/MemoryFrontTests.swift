import Ferry
import FerryCache
import Testing

@testable import FerryTestSupport

@Suite struct MemoryFrontTests {
    private func key(_ number: Int) -> CacheKey { CacheKey(Array("\(number)".utf8)) }

    @Test func aValueIsFoundUnderItsKey() {
        let front = MemoryFront<Int>(maxBytes: 100)
        front.insert(1, for: key(1), bytes: 10)
        #expect(front.value(for: key(1)) == 1)
        #expect(front.value(for: key(2)) == nil)
    }

    @Test func theLeastRecentlyUsedGoesFirst() {
        let front = MemoryFront<Int>(maxBytes: 30)
        for number in 1...3 { front.insert(number, for: key(number), bytes: 10) }
        #expect(front.value(for: key(1)) == 1)
        front.insert(4, for: key(4), bytes: 10)
        #expect(front.value(for: key(2)) == nil)
        #expect([1, 3, 4].allSatisfy { front.value(for: key($0)) == $0 })
        #expect(front.size.bytes == 30)
    }

    @Test func whatIsReplacedCountsNoMore() {
        let front = MemoryFront<Int>(maxBytes: 30)
        for round in 0..<100 { front.insert(round, for: key(1), bytes: 20) }
        #expect(front.value(for: key(1)) == 99)
        #expect(front.size.entries == 1)
        #expect(front.size.bytes == 20)
    }

    @Test func whatDoesNotFitIsNotKeptAndTakesTheOldOneAlong() {
        let front = MemoryFront<Int>(maxBytes: 30)
        front.insert(1, for: key(1), bytes: 10)
        front.insert(2, for: key(1), bytes: 31)
        #expect(front.value(for: key(1)) == nil)
        #expect(front.size.bytes == 0)
    }

    @Test func whatWasReadBeforeARemovalIsNotKept() {
        let front = MemoryFront<Int>(maxBytes: 30)
        let before = front.removals(of: key(1))
        front.remove(key(1))
        front.insert(1, for: key(1), bytes: 1, since: before) { _ in false }
        #expect(front.value(for: key(1)) == nil)
        front.insert(1, for: key(1), bytes: 1, since: front.removals(of: key(1))) { _ in false }
        #expect(front.value(for: key(1)) == 1)
        front.insert(2, for: key(1), bytes: 1, since: front.removals(of: key(1))) { _ in false }
        #expect(front.value(for: key(1)) == 1)
        // An older one is evicted.
        front.insert(2, for: key(1), bytes: 1, since: front.removals(of: key(1))) { $0 < 2 }
        #expect(front.value(for: key(1)) == 2 && front.size.bytes == 1)
        let later = front.removals(of: key(1))
        front.removeAll()
        front.insert(1, for: key(1), bytes: 1, since: later) { _ in false }
        #expect(front.size.entries == 0)
    }

    /// A few keys are in the same group as this one.
    @Test func theRemovalOfAnotherKeyDiscardsNothing() {
        let front = MemoryFront<Int>(maxBytes: 30)
        let before = front.removals(of: key(1))
        let others = (2...50).filter { number in
            let own = front.removals(of: key(1))
            front.remove(key(number))
            return front.removals(of: key(1)) == own
        }
        #expect(others.count > 25)
        #expect(front.removals(of: key(1)) == before + UInt64(49 - others.count))
    }

    /// Compared with the simplest structure that keeps an order.
    @Test func itKeepsTheOrderOfAListWhateverIsDone() {
        let front = MemoryFront<Int>(maxBytes: 100)
        var list: [(key: Int, bytes: Int)] = []
        var state: UInt64 = 7
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        for _ in 0..<5000 {
            let number = random(20)
            switch random(10) {
            case 0:
                front.remove(key(number))
                list.removeAll { $0.key == number }
            case 1...4:
                let bytes = 1 + random(40)
                front.insert(number, for: key(number), bytes: bytes)
                list.removeAll { $0.key == number }
                list.append((number, bytes))
                while list.reduce(0, { $0 + $1.bytes }) > 100 { list.removeFirst() }
            default:
                let found = front.value(for: key(number))
                let index = list.firstIndex { $0.key == number }
                #expect((found != nil) == (index != nil))
                if let index { list.append(list.remove(at: index)) }
            }
            #expect(front.size.bytes == list.reduce(0) { $0 + $1.bytes })
        }
    }

    @Test func aValueIsRemovedByTheDigestOfItsKey() {
        let front = MemoryFront<Int>(maxBytes: 30, findsByDigest: true)
        for number in 1...3 { front.insert(number, for: key(number), bytes: 10) }
        front.remove(key(2).digest)
        #expect((1...3).map { front.value(for: key($0)) } == [1, nil, 3])
        // Evicted and stored again, it has another place.
        front.insert(4, for: key(4), bytes: 10)
        front.insert(5, for: key(5), bytes: 10)
        front.insert(1, for: key(1), bytes: 10)
        front.remove(key(1).digest)
        front.remove(key(5).digest)
        #expect([1, 3, 4, 5].map { front.value(for: key($0)) } == [nil, nil, 4, nil])
        #expect(front.size.entries == 1 && front.size.bytes == 10)
        // One that is on its way is not stored either.
        let before = front.removals(of: key(1))
        front.remove(key(1).digest)
        front.insert(1, for: key(1), bytes: 10, since: before) { _ in true }
        #expect(front.value(for: key(1)) == nil)
    }

    @Test func aReplacedValueIsTheMostRecentlyUsed() {
        let front = MemoryFront<Int>(maxBytes: 30)
        for number in 1...3 { front.insert(number, for: key(number), bytes: 10) }
        front.insert(10, for: key(1), bytes: 15)
        #expect((1...3).map { front.value(for: key($0)) } == [10, nil, 3])
        #expect(front.size.bytes == 25)
    }
}
