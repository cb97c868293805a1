/// A value with its type taken off, for those who know the type by the way they came to it.
///
/// Sendable because all there is of it is the constant of the one subclass, which is Sendable.
class Box: @unchecked Sendable {
    fileprivate init() {}

    /// The value, without its type.
    var content: any Sendable { preconditionFailure("a box has a value") }

    static func of<Value: Sendable>(_ value: Value) -> Box { TypedBox(value) }

    /// The value. Only debug builds look whether the type is right: a cast that asks the runtime costs as much as a
    /// link of a chain.
    final func open<Value: Sendable>(as type: Value.Type = Value.self) -> Value {
        unsafeDowncast(self, to: TypedBox<Value>.self).value
    }
}

private final class TypedBox<Value: Sendable>: Box, @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }

    override var content: any Sendable { value }
}
