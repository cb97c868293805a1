/// Makes the containers of one type of keys.
///
/// To ask the runtime for the type of a container takes as long as to read two members from it. A session does so once
/// for each type of keys; from then on the type is an argument of the maker's own.
class KeyedContainerMaker {}

/// Generic over the container, not over the keys: only so the runtime has nothing to look up.
final class TypedContainerMaker<Container: MadeByIndex>: KeyedContainerMaker {
    @inline(never)
    func make(_ session: DecodingSession, _ index: Int, keepsKeys: Bool) throws -> KeyedDecodingContainer<Container.Key>
    {
        KeyedDecodingContainer(try Container(session: session, index: index, keepsKeys: keepsKeys))
    }
}

/// What a maker must know of a container.
protocol MadeByIndex: KeyedDecodingContainerProtocol {
    init(session: DecodingSession, index: Int, keepsKeys: Bool) throws
}

extension KeyedContainer: MadeByIndex {}

extension DecodingSession {
    func container<Key: CodingKey>(
        keyedBy type: Key.Type, at index: Int, keepsKeys: Bool
    ) throws -> KeyedDecodingContainer<Key> {
        let keys = ObjectIdentifier(type)
        for entry in makers where entry.keys == keys {
            let maker = unsafeDowncast(entry.maker, to: TypedContainerMaker<KeyedContainer<Key>>.self)
            return try maker.make(self, index, keepsKeys: keepsKeys)
        }
        let maker = TypedContainerMaker<KeyedContainer<Key>>()
        if makers.count < Self.mostMakers { makers.append((keys, maker)) }
        return try maker.make(self, index, keepsKeys: keepsKeys)
    }

    /// More types of keys than these are looked up each time.
    private static let mostMakers = 16
}
