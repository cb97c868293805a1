internal import Synchronization

/// What a schema says, and its program: compiled by whoever checks first, the same for all copies of the schema.
final class SchemaDefinition: Sendable {
    let shape: SchemaShape
    private let compiled = AtomicLazyReference<SchemaProgram>()

    init(_ shape: SchemaShape) {
        self.shape = shape
    }

    var program: SchemaProgram {
        compiled.load() ?? compiled.storeIfNil(SchemaCompiler.program(of: shape))
    }
}
