internal import Dispatch
internal import FoundationEssentials
internal import Glibc

/// What comes by standard input, piece by piece as it is asked for.
struct StandardInput: AsyncSequence, Sendable {
    struct AsyncIterator: AsyncIteratorProtocol {
        /// Whoever waits for a terminal must not hold a thread that tasks run on.
        func next() async throws(InputError) -> Data? {
            let result = await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    continuation.resume(returning: Result { () throws(InputError) in try StandardInput.read() })
                }
            }
            return try result.get()
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator() }

    /// All of it, in memory.
    static func all() throws(InputError) -> [UInt8] {
        var bytes: [UInt8] = []
        while let piece = try read() { bytes += piece }
        return bytes
    }

    /// What is there; waits for it. `nil` at the end.
    private static func read() throws(InputError) -> Data? {
        var space = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = Glibc.read(STDIN_FILENO, &space, space.count)
            if count > 0 { return Data(space[..<count]) }
            if count == 0 { return nil }
            if errno != EINTR { throw InputError("standard input: \(String(cString: strerror(errno)))") }
        }
    }
}
