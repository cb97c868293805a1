internal import CFerryJSON

/// Containers by the types of their keys. A container that is no longer in use moves on to the next object.
///
/// Creating a `KeyedDecodingContainer` makes the runtime look up types in tables that all threads share, and allocates
/// an object. With the time to free it, that is a quarter of the cost of decoding.
struct ContainerShelf {
    private struct Slot {
        /// The container, which is no more than a reference; `nil` after the end.
        var container: AnyObject?
        /// Its `ContainerGiver`.
        var giver: AnyObject
        var members: ObjectMembers
    }

    /// A document has few types. Some places always stay empty, which ends a search.
    private static let capacity = 32
    private static let mostFilled = 24

    /// The types of keys by their hashes, 0 for an empty slot. Several slots may have the same type: for objects that
    /// contain objects of their own type.
    private let keys: UnsafeMutablePointer<UInt>
    /// The slots stay at one address, because the givers of the containers refer to them.
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

    /// The giver of a container that is not in use and has keys of the type. The container is now at the object at
    /// `index`.
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

    /// Creates a container and keeps it if there is room.
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

    /// Releases the containers, which refer to the session, and keeps no new ones. A type that still has one may use
    /// it.
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

    /// Whether a container consists of one reference, as this type assumes. The source of the standard library says so,
    /// but it is not documented.
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

/// Returns the container of a slot to code that knows its type.
///
/// Copying a value needs the metadata of its type. A generic function asks the runtime at every call for a type that is
/// built from its parameter, which took a tenth of the time to decode. A type that is the parameter of a class is
/// stored in each of its objects.
final class ContainerGiver<Container> {
    private let place: UnsafePointer<Container>

    init(at place: UnsafePointer<Container>) { self.place = place }

    @inline(never)
    func container() -> Container { place.pointee }
}
