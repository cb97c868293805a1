internal import Synchronization

/// The place of a schema's program: compiled by whoever checks first, the same for all copies of the schema.
final class SchemaCache: Sendable {
    private let program = AtomicLazyReference<SchemaProgram>()

    func program(of shape: SchemaShape) -> SchemaProgram {
        program.load() ?? program.storeIfNil(SchemaCompiler.program(of: shape))
    }
}
