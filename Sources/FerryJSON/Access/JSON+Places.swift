internal import CFerryJSON

// Ways through a document that make no view, and so count no references, for each value.
extension JSON {
    /// Where a value stands in its document.
    public struct Place: Sendable {
        let word: Int
    }

    /// The places of an array's elements that are still to come.
    @usableFromInline
    struct Places {
        var next: Int
        let end: Int
        @usableFromInline let count: Int
    }

    @usableFromInline
    var place: Place { Place(word: index) }

    @usableFromInline
    func view(at place: Place) -> JSON { JSON(document: document, index: place.word) }

    /// The view from which a type is made that may hold others of its kind.
    @usableFromInline
    func descend(to place: Place) throws -> JSON {
        if ferry_json_stack_is_low() { throw tooDeep(at: place) }
        return view(at: place)
    }

    @inline(never)
    private func tooDeep(at place: Place) -> JSONMismatch {
        JSONMismatch(at: view(at: place), expected: "less nesting, for the stack of this thread")
    }

    @usableFromInline
    func isNull(at place: Place) -> Bool { ferry_json_tag(document.tape, place.word) == JSONTag.null }

    @usableFromInline
    func member(_ key: String) -> Place? {
        let tape = document.tape
        guard ferry_json_tag(tape, index) == JSONTag.object else { return nil }
        let found = tape.find(key, in: index)
        return found == 0 ? nil : Place(word: found)
    }

    @usableFromInline
    func elements(at place: Place) throws -> Places {
        let tape = document.tape
        guard ferry_json_tag(tape, place.word) == JSONTag.array else { throw noArray(at: place) }
        return Places(
            next: place.word + 1, end: ferry_json_close(tape, place.word), count: ferry_json_count(tape, place.word))
    }

    @inline(never)
    private func noArray(at place: Place) -> JSONMismatch { JSONMismatch(at: view(at: place), expected: "array") }

    @usableFromInline
    func next(_ places: inout Places) -> Place? {
        guard places.next < places.end else { return nil }
        let place = Place(word: places.next)
        places.next = ferry_json_after(document.tape, places.next)
        return place
    }
}
