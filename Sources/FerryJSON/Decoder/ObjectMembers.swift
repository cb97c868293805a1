internal import CFerryJSON

/// The members of the current object of a container, by the names that types ask for.
///
/// Types ask for the same keys in the same order, object after object. The place of each key is stored in that order,
/// so while objects have the same keys, one comparison finds a key.
final class ObjectMembers {
    private struct Asked {
        let name: String
        /// The place of the member; negative if there is none.
        let place: Int32
    }

    let session: DecodingSession
    /// The index of the object on the tape.
    @exclusivity(unchecked) private(set) var index = 0
    /// Whether a requested key has an integer value, which coding paths must show.
    @exclusivity(unchecked) private(set) var keysHaveIntegers = false
    @exclusivity(unchecked) private var layout = ferry_json_members()

    /// The requested keys, in order; one buffer that grows.
    @exclusivity(unchecked) private var asked: UnsafeMutablePointer<Asked>
    @exclusivity(unchecked) private var askedCount = 0
    @exclusivity(unchecked) private var askedCapacity = 16
    @exclusivity(unchecked) private var cursor = 0
    @exclusivity(unchecked) private var guess = 0
    /// The number of layouts dropped without having been used. If every object has other keys, storing places costs
    /// more than it saves.
    @exclusivity(unchecked) private var wasted = 0
    @exclusivity(unchecked) private var isUseful = false

    /// The converted names of all members, if they differ from the document's, and their places.
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

    /// Moves to the object at `index`.
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

    /// Converts the names of the members. Returns whether they are the same as those of the last object.
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

    /// The index of the value for a key, or 0.
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

    /// Stores the place of a key for the next object. Types that ask in another order each time search for each key.
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
        // Keys with different bytes may be canonically equivalent, and Foundation compares them so. Some non-ASCII
        // characters are equivalent to an ASCII one, so only the keys of the object decide.
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

    /// The distinct names, in the order of the document.
    var allNames: [String] {
        let all = (0..<Int(layout.count)).map(name)
        if session.usesDefaultKeys && layout.keys_differ && layout.is_ascii { return all }
        fillPlaces()
        return all.indices.filter { places[all[$0]] == $0 }.map { all[$0] }
    }
}
