internal import CFerryJSON

/// The members of the object that a container is at, by the names that types ask for.
///
/// Types ask for the same keys in the same order, object after object. The place of each key is kept in that order.
/// While objects have the same keys, a key is found by one comparison.
final class ObjectMembers {
    private struct Asked {
        let name: String
        /// The member's place, or a negative number where there is none.
        let place: Int32
    }

    let session: DecodingSession
    /// Where the object stands on the tape.
    @exclusivity(unchecked) private(set) var index = 0
    /// Whether a key that was asked for has an integer, which coding paths say.
    @exclusivity(unchecked) private(set) var keysHaveIntegers = false
    @exclusivity(unchecked) private var layout = ferry_json_members()

    /// What was asked for, in order; one buffer that grows.
    @exclusivity(unchecked) private var asked: UnsafeMutablePointer<Asked>
    @exclusivity(unchecked) private var askedCount = 0
    @exclusivity(unchecked) private var askedCapacity = 16
    @exclusivity(unchecked) private var cursor = 0
    @exclusivity(unchecked) private var guess = 0
    /// Layouts that were dropped before they were used. If every object has other keys, keeping places is a waste.
    @exclusivity(unchecked) private var wasted = 0
    @exclusivity(unchecked) private var isUseful = false

    /// The names of all members where they are not those of the document, and their places.
    @exclusivity(unchecked) private var names: [String] = []
    @exclusivity(unchecked) private var places: [String: Int] = [:]
    @exclusivity(unchecked) private var hasPlaces = false

    private static let mostWasted = 4

    init(session: DecodingSession) {
        self.session = session
        asked = .allocate(capacity: askedCapacity)
    }

    deinit {
        asked.deinitialize(count: askedCount)
        asked.deallocate()
        ferry_json_members_free(&layout)
    }

    /// Goes on to the object at `index`.
    func move(to index: Int) {
        self.index = index
        cursor = 0
        guess = 0
        var isSame = ferry_json_members_fill(&layout, session.tape, index)
        if !session.usesDefaultKeys { isSame = convertNames(isSame) && isSame }
        if isSame {
            isUseful = askedCount > 0
            wasted = min(wasted, Self.mostWasted - 1)
        } else {
            forget()
        }
    }

    private func forget() {
        if askedCount > 0 {
            wasted = isUseful ? 0 : wasted + 1
            isUseful = false
            asked.deinitialize(count: askedCount)
            askedCount = 0
        }
        if hasPlaces {
            places.removeAll(keepingCapacity: true)
            hasPlaces = false
        }
    }

    /// The names of the members as the strategy makes them; whether they are those of the object before.
    private func convertNames(_ hasSameKeys: Bool) -> Bool {
        let converter = session.keyConverter
        if hasSameKeys && !converter.dependsOnPath { return true }
        var path = converter.dependsOnPath ? session.codingPath(to: index) : []
        let count = Int(layout.count)
        var isSame = hasSameKeys
        for place in 0..<count {
            let name = converter.convert(session.tape.string(at: value(at: place) - 1), path: &path)
            if place < names.count {
                guard names[place] != name else { continue }
                names[place] = name
            } else {
                names.append(name)
            }
            isSame = false
        }
        if names.count > count { names.removeLast(names.count - count) }
        return isSame
    }

    // MARK: Looking up

    @inline(__always)
    private func value(at place: Int) -> Int { Int(layout.values.unsafelyUnwrapped[place]) }

    /// The value for a key, or 0.
    @inline(__always)
    func find(_ key: some CodingKey) -> Int {
        let name = key.stringValue
        if cursor < askedCount, asked[cursor].name == name {
            let place = asked[cursor].place
            cursor += 1
            return place < 0 ? 0 : value(at: Int(place))
        }
        return find(name, hasInteger: key.intValue != nil)
    }

    @inline(never)
    private func find(_ name: String, hasInteger: Bool) -> Int {
        if hasInteger { keysHaveIntegers = true }
        let place = place(of: name)
        if let place { guess = place + 1 }
        note(name, place)
        return place.map(value) ?? 0
    }

    /// Keeps where the key is for the next object. Types that ask in another order each time find each key anew.
    private func note(_ name: String, _ place: Int?) {
        guard wasted < Self.mostWasted, cursor < 2 * Int(layout.count) + 16 else { return }
        let entry = Asked(name: name, place: place.map { Int32($0) } ?? -1)
        if cursor < askedCount {
            asked[cursor] = entry
        } else {
            if askedCount == askedCapacity { growAsked() }
            (asked + askedCount).initialize(to: entry)
            askedCount += 1
        }
        cursor += 1
    }

    private func growAsked() {
        let larger = UnsafeMutablePointer<Asked>.allocate(capacity: 2 * askedCapacity)
        larger.moveInitialize(from: asked, count: askedCount)
        asked.deallocate()
        asked = larger
        askedCapacity *= 2
    }

    private func place(of name: String) -> Int? {
        guard session.usesDefaultKeys else {
            fillPlaces()
            return places[name]
        }
        // Keys of other bytes may be canonically equivalent, which is how Foundation compares them. Some letters beyond
        // ASCII are equivalent to one of ASCII, so only the keys of the object decide.
        guard layout.is_ascii else {
            fillPlaces()
            return places[name]
        }
        var name = name
        let found = name.withUTF8 { bytes in
            ferry_json_members_find(
                &layout, session.tape, bytes.baseAddress ?? session.tape.strings, bytes.count, guess)
        }
        if found != Self.nowhere { return found }
        if name.utf8.allSatisfy({ $0 < 0x80 }) { return nil }
        fillPlaces()
        return places[name]
    }

    private static let nowhere = Int(bitPattern: UInt.max)

    private func fillPlaces() {
        guard !hasPlaces else { return }
        hasPlaces = true
        for place in 0..<Int(layout.count) { places[self.name(at: place)] = place }
    }

    private func name(at place: Int) -> String {
        session.usesDefaultKeys ? session.tape.string(at: value(at: place) - 1) : names[place]
    }

    /// The names in the order of the document, each once.
    var allNames: [String] {
        let all = (0..<Int(layout.count)).map(name)
        if session.usesDefaultKeys && layout.keys_differ && layout.is_ascii { return all }
        fillPlaces()
        return all.indices.filter { places[all[$0]] == $0 }.map { all[$0] }
    }
}
