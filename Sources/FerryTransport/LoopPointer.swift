/// The address of a `ferry_loop`.
///
/// The core takes the calls made through it from any thread, and it is valid until its owner, `Loop`, is gone: that is
/// what makes it Sendable. Who else holds one must have been told to let go before (`LoopExecutor.disconnect`).
struct LoopPointer: @unchecked Sendable {
    let raw: OpaquePointer
}
