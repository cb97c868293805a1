internal import CFerryJSON

/// Which object a `KeyedContainer` is at.
struct ObjectPlace {
    private(set) var index = 0
    private(set) var keepsKeys = false
    private(set) var usesTable = false

    init() {}

    init(_ index: Int, keepsKeys: Bool, in session: DecodingSession) {
        self.index = index
        self.keepsKeys = keepsKeys
        usesTable =
            !(session.usesDefaultKeys || keepsKeys) || ferry_json_count(session.tape, index) > MemberTable.threshold
    }
}

/// Containers by the types of their keys, each led to the next object once nobody has it any more.
///
/// To make a `KeyedDecodingContainer`, the standard library has the runtime look up types in tables that all threads
/// share, and allocates an object: with what that takes to free, a quarter of the cost of decoding.
struct ContainerShelf {
    private struct Slot {
        /// The type of the keys; nil where the slot is empty.
        var key: ObjectIdentifier?
        /// The container, which is no more than a reference; nil after the end.
        var container: AnyObject?
        /// Its `ContainerGiver`.
        var giver: AnyObject?
        var object = ObjectPlace()
    }

    /// A document has few types, and looking through many would cost what is to be saved.
    private static let capacity = 8

    /// At one address as long as there are containers, which find their objects in them. One more ends them.
    private let slots: UnsafeMutablePointer<Slot>

    init() {
        slots = .allocate(capacity: Self.capacity + 1)
        slots.initialize(repeating: Slot(), count: Self.capacity + 1)
    }

    /// The giver of a container for keys of the type that nobody has, which is at `object` now.
    @inline(__always)
    func giver(for key: ObjectIdentifier, at object: ObjectPlace) -> AnyObject? {
        var slot = slots
        while let known = slot.pointee.key {
            if known == key { return giver(of: slot, at: object) }
            slot += 1
        }
        return nil
    }

    private func giver(of slot: UnsafeMutablePointer<Slot>, at object: ObjectPlace) -> AnyObject? {
        guard isKnownUniquelyReferenced(&slot.pointee.container) else { return nil }
        slot.pointee.object = object
        return slot.pointee.giver
    }

    /// A new container, which is kept if there is room.
    func make<Key: CodingKey>(_ session: DecodingSession, _ object: ObjectPlace) -> KeyedDecodingContainer<Key> {
        guard let slot = emptySlot(for: ObjectIdentifier(Key.self)), Self.containersAreReferences else {
            return KeyedDecodingContainer(KeyedContainer<Key>(session: session, object, at: nil))
        }
        let container = KeyedDecodingContainer(
            KeyedContainer<Key>(session: session, object, at: Self.part(of: slot, at: Self.objectOffset)))
        slot.pointee = Slot(
            key: ObjectIdentifier(Key.self), container: unsafeBitCast(container, to: AnyObject.self),
            giver: ContainerGiver<KeyedDecodingContainer<Key>>(at: Self.part(of: slot, at: Self.containerOffset)),
            object: object)
        return container
    }

    private static let containerOffset = MemoryLayout<Slot>.offset(of: \.container)!
    private static let objectOffset = MemoryLayout<Slot>.offset(of: \.object)!

    @inline(__always)
    private static func part<Part>(of slot: UnsafeMutablePointer<Slot>, at offset: Int) -> UnsafePointer<Part> {
        UnsafeRawPointer(slot).advanced(by: offset).assumingMemoryBound(to: Part.self)
    }

    private func emptySlot(for key: ObjectIdentifier) -> UnsafeMutablePointer<Slot>? {
        for slot in 0..<Self.capacity where slots[slot].key == nil || slots[slot].key == key {
            return slots[slot].key == nil ? slots + slot : nil
        }
        return nil
    }

    /// Lets go of the containers, which refer to the session, and keeps no others; who has one may go on.
    func close() {
        for slot in 0..<Self.capacity {
            slots[slot].container = nil
            slots[slot].giver = nil
            slots[slot].key = ObjectIdentifier(DecodingSession.self)
        }
    }

    func deallocate() {
        slots.deinitialize(count: Self.capacity + 1)
        slots.deallocate()
    }

    /// Whether containers are what they are taken for here: that a reference is their only part is known from the
    /// source of the standard library, and promised by nobody.
    private static let containersAreReferences: Bool = {
        let empty: JSON = [:]
        let session = DecodingSession(empty, options: FerryJSONDecoder(), text: nil)
        let object = ObjectPlace(empty.index, keepsKeys: false, in: session)
        let container = KeyedDecodingContainer(KeyedContainer<PathKey>(session: session, object, at: nil))
        let parts = Mirror(reflecting: container).children
        return parts.count == 1 && parts.allSatisfy { Swift.type(of: $0.value) is AnyClass }
            && MemoryLayout.size(ofValue: container) == MemoryLayout<AnyObject>.size
    }()
}

/// Gives the container of a slot to those who know its type.
///
/// Who copies a value needs its type's metadata. For a type that is made of a parameter a generic function asks the
/// runtime at every call, which took a tenth of the time to decode; a type that is the class's own parameter stands in
/// each of its objects.
final class ContainerGiver<Container> {
    private let place: UnsafePointer<Container>

    init(at place: UnsafePointer<Container>) { self.place = place }

    @inline(never)
    func container() -> Container { place.pointee }
}
