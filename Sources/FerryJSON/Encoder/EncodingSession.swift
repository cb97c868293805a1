internal import CFerryJSON

/// Writes the text of one value while it is encoded.
///
/// Values are written in place. Only a container or an encoder that a type asks for within another one has its own
/// session, because the type may fill it in any order. Its text is inserted when the outer value is complete.
final class EncodingSession {
    /// A value that is being encoded.
    struct Frame {
        enum Kind { case empty, scalar, array, object }
        /// Distinguishes encoders of this value from those of earlier values at the same depth.
        let serial: UInt32
        var kind = Kind.empty
        /// The number of elements or members.
        var count = 0
        /// The index of its first member in `members`.
        let firstMember: Int
        /// Whether members must be sorted or left out.
        var needsOrder = false
        /// Whether all keys are unescaped in the text and sorted by their bytes.
        var keysArePlain = true
        /// A bit for each hash of a key, to detect duplicate keys.
        var seen = SIMD8<UInt64>()
        let pathCount: Int
        let firstChild: Int
    }

    struct Member {
        var begin: Int
        var end = 0
        /// The length of the key as written, with its quotes.
        var keyCount: Int
        var hash: UInt64
        var isReplaced = false
        /// The member with the same key that it replaces.
        var replaced: Int?
    }

    /// A value with its own session, and its place.
    struct Child {
        let place: Int
        let session: EncodingSession
    }

    let options: FerryJSONEncoder
    @exclusivity(unchecked) var output: TextBuffer
    let isPretty: Bool
    let sortsKeys: Bool
    let escapesSlashes: Bool
    let convertsKeys: Bool
    let basePath: [any CodingKey]
    let baseLevel: Int

    @exclusivity(unchecked) var frames: [Frame] = []
    /// The number of open containers, each of which is indented.
    @exclusivity(unchecked) var openCount = 0
    @exclusivity(unchecked) var members: [Member] = []
    /// The last sort order for each number of members up to 64: most objects have the same keys.
    @exclusivity(unchecked) var lastOrders: [[Int]] = Array(repeating: [], count: 65)
    @exclusivity(unchecked) var sorted = TextBuffer(capacity: 512)
    @exclusivity(unchecked) var children: [Child] = []
    @exclusivity(unchecked) var path: [any CodingKey] = []
    @exclusivity(unchecked) var serial: UInt32 = 0
    @exclusivity(unchecked) var snakeNames: [String: String] = [:]
    /// The members of large objects by key, by the depth of the object.
    @exclusivity(unchecked) var largeObjects: [Int: [String: Int]] = [:]
    /// Whether the value is within another one; if it then encodes nothing, an empty object is written.
    @exclusivity(unchecked) var isInner = false

    init(_ options: FerryJSONEncoder, path: [any CodingKey] = [], level: Int = 0) {
        self.options = options
        output = TextBuffer(capacity: 512)
        isPretty = options.outputFormatting.contains(.prettyPrinted)
        sortsKeys = options.outputFormatting.contains(.sortedKeys)
        escapesSlashes = !options.outputFormatting.contains(.withoutEscapingSlashes)
        convertsKeys = if case .useDefaultKeys = options.keyEncodingStrategy { false } else { true }
        basePath = path
        baseLevel = level
    }

    deinit {
        output.deallocate()
        sorted.deallocate()
    }

    /// Releases the sessions of inner values.
    func end() { children = [] }

    // MARK: Frames

    /// Encodes the value of the session.
    func encode<T: Encodable>(_ value: T) throws { try write(value) }

    /// Whether anything was written.
    var hasValue: Bool { output.count > 0 }

    /// Calls `encode(to:)` of a value. If it encodes nothing within another value, writes an empty object.
    func encodeItself<T: Encodable>(_ value: T) throws {
        if ferry_json_stack_is_low() { throw tooDeep(value) }
        try inFrame { try value.encode(to: $0) }
    }

    @inline(never)
    func tooDeep(_ value: Any) -> EncodingError {
        .invalidValue(
            value, .init(codingPath: codingPath, debugDescription: "nested too deeply for the stack of this thread"))
    }

    @inline(__always)
    func inFrame(_ body: (StreamEncoder) throws -> Void) throws {
        let encoder = pushFrame()
        do {
            try body(encoder)
        } catch {
            popFrame()
            throw error
        }
        finishFrame()
    }

    /// Adds a frame for a value that begins here.
    func pushFrame() -> StreamEncoder {
        serial &+= 1
        frames.append(
            Frame(serial: serial, firstMember: members.count, pathCount: path.count, firstChild: children.count))
        return StreamEncoder(session: self, depth: UInt32(frames.count - 1), serial: serial)
    }

    func popFrame() {
        let frame = frames.removeLast()
        if frame.kind == .array || frame.kind == .object { openCount -= 1 }
        if path.count > frame.pathCount { path.removeLast(path.count - frame.pathCount) }
        if members.count > frame.firstMember { members.removeLast(members.count - frame.firstMember) }
        if children.count > frame.firstChild { children.removeLast(children.count - frame.firstChild) }
        if !largeObjects.isEmpty { largeObjects[frames.count] = nil }
    }

    /// Closes the container that the value has opened.
    func finishFrame() {
        let depth = frames.count - 1
        if frames[depth].kind == .empty {
            // Only the outermost value may encode nothing, which is an error there.
            if depth > 0 || isInner { open(.object) }
        }
        if children.count > frames[depth].firstChild { insertChildren(from: frames[depth].firstChild) }
        switch frames[depth].kind {
        case .object:
            if frames[depth].count > 0 { members[members.count - 1].end = output.count }
            if frames[depth].needsOrder { putInOrder() }
            close(UInt8(ascii: "}"))
        case .array: close(UInt8(ascii: "]"))
        default: break
        }
        popFrame()
    }

    var level: Int { baseLevel + openCount }

    /// Opens the container of the value, unless it is open.
    func open(_ kind: Frame.Kind) {
        frames[frames.count - 1].kind = kind
        openCount += 1
        output.append(kind == .object ? UInt8(ascii: "{") : UInt8(ascii: "["))
    }

    func close(_ bracket: UInt8) {
        if isPretty {
            if frames[frames.count - 1].count == 0 { output.append(UInt8(ascii: "\n")) }
            output.append(lineBreakAtLevel: level - 1)
        }
        output.append(bracket)
    }

    func separate(isFirst: Bool) {
        if !isFirst { output.append(UInt8(ascii: ",")) }
        if isPretty { output.append(lineBreakAtLevel: level) }
    }

    // MARK: What encoders do

    /// Whether the encoder belongs to the value that is being encoded now.
    @inline(__always)
    func isCurrent(_ encoder: StreamEncoder) -> Bool {
        Int(encoder.depth) == frames.count - 1 && frames[frames.count - 1].serial == encoder.serial
    }

    func check(_ encoder: StreamEncoder, _ value: @autoclosure () -> Any) throws {
        guard isCurrent(encoder) else {
            throw EncodingError.invalidValue(
                value(),
                .init(codingPath: codingPath, debugDescription: "encoded with an encoder that is no longer in use"))
        }
    }

    /// A type may ask for its container more than once, as classes do for their superclasses.
    func openObject(_ encoder: StreamEncoder) {
        guard isCurrent(encoder) else { return }
        let kind = frames[frames.count - 1].kind
        precondition(kind == .empty || kind == .object, "a value encodes one kind of container")
        if kind == .empty { open(.object) }
    }

    func openArray(_ encoder: StreamEncoder) {
        guard isCurrent(encoder) else { return }
        let kind = frames[frames.count - 1].kind
        precondition(kind == .empty || kind == .array, "a value encodes one kind of container")
        if kind == .empty { open(.array) }
    }

    /// Begins a scalar or another single value.
    func beginScalar(_ encoder: StreamEncoder, _ value: @autoclosure () -> Any) throws {
        try check(encoder, value())
        precondition(frames[frames.count - 1].kind == .empty, "a value encodes one single value")
        frames[frames.count - 1].kind = .scalar
    }

    /// Forgets a single value that could not be encoded; the type may encode another.
    func forgetScalar() { frames[frames.count - 1].kind = .empty }

    /// The end of the text before an element or a member. If encoding fails, the text is cut off here, because a type
    /// may catch the error and continue.
    struct Mark {
        fileprivate let output: Int
        fileprivate let count: Int
        fileprivate let members: Int
    }

    @inline(__always)
    var mark: Mark { Mark(output: output.count, count: frames[frames.count - 1].count, members: members.count) }

    @inline(never)
    func goBack(to mark: Mark) {
        let depth = frames.count - 1
        output.removeLast(output.count - mark.output)
        frames[depth].count = mark.count
        if members.count > mark.members {
            if let replaced = members.removeLast().replaced { members[replaced].isReplaced = false }
            if !largeObjects.isEmpty { largeObjects[depth] = nil }
        }
    }

    func beginElement(_ encoder: StreamEncoder, _ value: @autoclosure () -> Any) throws {
        try check(encoder, value())
        let depth = frames.count - 1
        separate(isFirst: frames[depth].count == 0)
        frames[depth].count += 1
    }

    func elementCount(_ encoder: StreamEncoder) -> Int {
        isCurrent(encoder) ? frames[frames.count - 1].count : 0
    }

    func beginMember(_ encoder: StreamEncoder, _ key: some CodingKey, _ value: @autoclosure () -> Any) throws {
        try check(encoder, value())
        beginMember(named: convertsKeys ? convert(key) : key.stringValue)
    }

    // MARK: Values of their own sessions

    /// A session for a value at this place, which can be filled until the innermost value is complete.
    func child(at key: some CodingKey) -> EncodingSession {
        let child = EncodingSession(options, path: codingPath + [key], level: level)
        child.isInner = true
        children.append(Child(place: output.count, session: child))
        return child
    }

    /// A session for a container that is no longer in use. Its text is never read.
    func orphan() -> EncodingSession { EncodingSession(options, path: basePath) }

    func insertChildren(from first: Int) {
        for child in children[first...] {
            while child.session.frames.count > 0 { child.session.finishFrame() }
        }
        // Members end after the children that are their values.
        var (passed, shift) = (first, 0)
        for member in frames[frames.count - 1].firstMember..<members.count {
            while passed < children.count, children[passed].place < members[member].begin {
                shift += children[passed].session.output.count
                passed += 1
            }
            members[member].begin += shift
            var (inner, innerShift) = (passed, shift)
            while inner < children.count, children[inner].place <= members[member].end {
                innerShift += children[inner].session.output.count
                inner += 1
            }
            members[member].end += innerShift
        }
        for child in children[first...].reversed() {
            let text = child.session.output
            output.insert(UnsafeBufferPointer(start: text.bytes, count: text.count), at: child.place)
        }
        children.removeLast(children.count - first)
    }

    // MARK: Paths

    /// The path to the value that is being encoded.
    var codingPath: [any CodingKey] { basePath + path }

    func codingPath(of encoder: StreamEncoder) -> [any CodingKey] {
        guard Int(encoder.depth) < frames.count, frames[Int(encoder.depth)].serial == encoder.serial else {
            return basePath
        }
        return basePath + path.prefix(frames[Int(encoder.depth)].pathCount)
    }

    @inline(__always)
    func under<Result>(_ key: some CodingKey, _ body: () throws -> Result) rethrows -> Result {
        path.append(key)
        defer { path.removeLast() }
        return try body()
    }
}
