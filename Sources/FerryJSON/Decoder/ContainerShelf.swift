internal import CFerryJSON

/// Containers by the types of their keys, each led to the next object once nobody has it any more.
///
/// To make a `KeyedDecodingContainer`, the standard library has the runtime look up types in tables that all threads
/// share, and allocates an object: with what that takes to free, a quarter of the cost of decoding.
struct ContainerShelf {
    private struct Slot {
        /// The container, which is no more than a reference; nil after the end.
        var container: AnyObject?
        /// Its `ContainerGiver`.
        var giver: AnyObject
        var members: ObjectMembers
    }

    /// A document has few types. Some places stay empty, so that a search ends.
    private static let capacity = 32
    private static let mostFilled = 24

    /// The types of keys by their hashes, 0 where a slot is empty. Several slots may have the same: objects within
    /// objects of their type.
    private let keys: UnsafeMutablePointer<UInt>
    /// At one address as long as there are containers, which their givers find there.
    private let slots: UnsafeMutablePointer<Slot>
    private var filled = 0

    init() {
        keys = .allocate(capacity: Self.capacity)
        keys.initialize(repeating: 0, count: Self.capacity)
        slots = .allocate(capacity: Self.capacity)
    }

    @inline(__always)
    private static func bits(of type: Any.Type) -> UInt { UInt(bitPattern: unsafeBitCast(type, to: Int.self)) }

    @inline(__always)
    private static func place(of bits: UInt) -> Int { Int((bits >> 4 ^ bits >> 9) & UInt(capacity - 1)) }

    /// The giver of a container for keys of the type that nobody has, which is at the object at `index` now.
    @inline(__always)
    func giver(for key: Any.Type, at index: Int) -> AnyObject? {
        let bits = Self.bits(of: key)
        var place = Self.place(of: bits)
        while keys[place] != 0 {
            if keys[place] == bits, isKnownUniquelyReferenced(&slots[place].container) {
                slots[place].members.move(to: index)
                return slots[place].giver
            }
            place = (place + 1) & (Self.capacity - 1)
        }
        return nil
    }

    /// A new container, which is kept if there is room.
    mutating func make<Key: CodingKey>(_ session: DecodingSession, at index: Int) -> KeyedDecodingContainer<Key> {
        let members = ObjectMembers(session: session)
        members.move(to: index)
        let container = KeyedDecodingContainer(KeyedContainer<Key>(members))
        guard filled < Self.mostFilled, Self.containersAreReferences else { return container }
        filled += 1
        let bits = Self.bits(of: Key.self)
        var place = Self.place(of: bits)
        while keys[place] != 0 { place = (place + 1) & (Self.capacity - 1) }
        keys[place] = bits
        let slot = slots + place
        slot.initialize(
            to: Slot(
                container: unsafeBitCast(container, to: AnyObject.self),
                giver: ContainerGiver<KeyedDecodingContainer<Key>>(at: Self.containerPlace(in: slot)),
                members: members))
        return container
    }

    private static let containerOffset = MemoryLayout<Slot>.offset(of: \.container)!

    @inline(__always)
    private static func containerPlace<Container>(in slot: UnsafeMutablePointer<Slot>) -> UnsafePointer<Container> {
        UnsafeRawPointer(slot).advanced(by: containerOffset).assumingMemoryBound(to: Container.self)
    }

    /// Lets go of the containers, which refer to the session, and keeps no others; who has one may go on.
    mutating func close() {
        for place in 0..<Self.capacity where keys[place] != 0 {
            (slots + place).deinitialize(count: 1)
            keys[place] = 0
        }
        filled = Self.mostFilled
    }

    /// After `close`.
    func deallocate() {
        slots.deallocate()
        keys.deallocate()
    }

    /// Whether containers are what they are taken for here: that a reference is their only part is known from the
    /// source of the standard library, and promised by nobody.
    private static let containersAreReferences: Bool = {
        let session = DecodingSession([:], options: FerryJSONDecoder(), text: nil)
        defer { session.end() }
        let container = KeyedDecodingContainer(
            KeyedContainer<PathKey>(ObjectMembers(session: session)))
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
