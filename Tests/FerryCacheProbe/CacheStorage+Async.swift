package import FerryCache

/// Async forms for code that can wait.
extension CacheStorage {
    package func read(_ key: CacheKey) async -> CacheFinding {
        await withCheckedContinuation { continuation in read(key) { continuation.resume(returning: $0) } }
    }

    @discardableResult
    package func write(_ entry: CacheEntry, under key: CacheKey) async -> Bool {
        await withCheckedContinuation { continuation in write(entry, under: key) { continuation.resume(returning: $0) }
        }
    }

    @discardableResult
    package func remove(_ key: CacheKey) async -> Bool {
        await withCheckedContinuation { continuation in remove(key) { continuation.resume(returning: $0) } }
    }

    @discardableResult
    package func removeAll() async -> Bool {
        await withCheckedContinuation { continuation in removeAll { continuation.resume(returning: $0) } }
    }

    package func measure() async -> CacheSize {
        await withCheckedContinuation { continuation in measure { continuation.resume(returning: $0) } }
    }

    package func close() async {
        await withCheckedContinuation { continuation in close { continuation.resume() } }
    }
}

extension CacheFinding {
    package var entry: CacheEntry? { if case .found(let entry) = self { entry } else { nil } }

    package var reason: CacheAbsence? { if case .missing(let reason) = self { reason } else { nil } }
}
