import FoundationEssentials

/// How much can be done at the same moment.
let processorCount = max(ProcessInfo.processInfo.activeProcessorCount, 1)
