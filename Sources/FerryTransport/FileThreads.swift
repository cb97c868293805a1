internal import CFerry

/// The threads of the core for work that may block on a file: a few for each device.
///
/// Dispatch's threads are not for that. Tasks run on them, so a network file system that hangs would stop every task of
/// the process.
package enum FileThreads {
    private final class Work: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Runs `work` on a thread of the descriptor's device. Returns 0, or the system's error if there is no thread for
    /// it.
    package static func run(for descriptor: Int32, _ work: @escaping @Sendable () -> Void) -> Int32 {
        let context = Unmanaged.passRetained(Work(work))
        let code = ferry_work_on_file(
            descriptor, { Unmanaged<Work>.fromOpaque($0!).takeRetainedValue().run() }, context.toOpaque())
        if code != 0 { context.release() }
        return code
    }
}
