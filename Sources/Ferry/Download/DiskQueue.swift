import Dispatch

/// The thread on which one download waits for the disk, so that none of those does that carry tasks.
struct DiskQueue: Sendable {
    private let queue = DispatchQueue(label: "ferry.disk")

    /// Runs `body` there.
    func run<Value: Sendable>(_ body: @escaping @Sendable () throws(FileFault) -> Value) async throws(FileFault)
        -> Value
    {
        let result = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: Result { () throws(FileFault) in try body() }) }
        }
        return try result.get()
    }

    /// Likewise what ends later than it returns: `body` is given what is to be called then, once, on any thread.
    func run<Value: Sendable>(
        endingLater body: @escaping @Sendable (@escaping @Sendable (Result<Value, FileFault>) -> Void) -> Void
    ) async throws(FileFault) -> Value {
        let result = await withCheckedContinuation { continuation in
            queue.async { body { continuation.resume(returning: $0) } }
        }
        return try result.get()
    }

    /// Likewise what cannot fail.
    func settle(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            queue.async {
                body()
                continuation.resume()
            }
        }
    }

    /// Lets go of a part there, whenever the disk has time for it.
    func close(_ part: PartFile) { queue.async { withExtendedLifetime(part) {} } }
}
