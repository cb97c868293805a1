import CFerry

/// The address of a `ferry_loop`.
///
/// `@unchecked Sendable` is true because the core accepts the calls of these tests from any thread, and the exception,
/// `ferry_loop_free`, is the last call of `CoreLoop`.
struct CorePointer: @unchecked Sendable {
    let raw: OpaquePointer
}

/// A result that the receiver keeps.
///
/// `@unchecked Sendable` is true because it belongs to the receiver of on_finished until `free`, and may be freed on
/// any thread.
struct KeptResult: @unchecked Sendable {
    let raw: UnsafeMutablePointer<ferry_result>

    func copy() -> CoreResult { CoreResult(copying: raw.pointee) }
    func free() { ferry_result_free(raw) }
}
