import FoundationEssentials

/// The executor that the task which runs now prefers, for one that carries on its work without being its child. `nil`
/// when it has no preference, or the runtime is too old to say.
func preferredExecutor() -> (any TaskExecutor)? {
    #if compiler(>=6.3)
    withUnsafeCurrentTask { $0?.unownedTaskExecutor?.asTaskExecutor() }
    #else
    nil
    #endif
}

/// How much can be done at the same moment.
let processorCount = max(ProcessInfo.processInfo.activeProcessorCount, 1)
