/// The address of a `ferry_loop`.
///
/// `@unchecked Sendable` is true because the core takes the calls of these tests from any thread, and the one that is
/// none of them, `ferry_loop_free`, is the last that `CoreLoop` makes.
struct CorePointer: @unchecked Sendable {
    let raw: OpaquePointer
}
