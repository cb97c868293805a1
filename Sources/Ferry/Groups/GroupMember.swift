/// How a group runs one of its members; made by what is ``Runnable``.
public struct GroupMember<Value: Sendable>: Sendable {
    let member: Member

    /// The box of what it brings is one of a `Value`.
    init(_ member: Member) { self.member = member }

    /// The same, with another value made of its own.
    func map<Other: Sendable>(_ change: @escaping @Sendable (Value) -> Other) -> GroupMember<Other> {
        GroupMember<Other>(member.map { Box.of(change($0.open(as: Value.self))) })
    }
}
