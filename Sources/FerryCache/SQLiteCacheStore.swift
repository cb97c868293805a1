/// Stores entries in a database (SQLite, with a write-ahead log) that several processes may share.
///
/// Nothing is opened before the first use, and nothing on the caller's thread. Written entries survive when the process
/// is killed. After a loss of power the latest may be missing, but none is damaged.
package final class SQLiteCacheStore: CacheStorage {
    private let readers: CacheReaderPool
    private let writing: CacheWritingQueue
    private let counter = CacheCounter()
    private let readingGate: DiskGate
    private let writingGate: DiskGate
    private let removals: RemovalCount

    package init(_ options: CacheStoreOptions) {
        let files = CacheFiles(options)
        removals = files.removals
        let (readingGate, writingGate) = (DiskGate(options), DiskGate(options))
        let writer = CacheWriter(files, options, counter, writingGate)
        let (writing, counter) = (CacheWritingQueue(writer, options, counter), counter)
        self.writing = writing
        (self.readingGate, self.writingGate) = (readingGate, writingGate)
        let readers = (0..<max(options.readers, 1)).map { _ in CacheReader(files, options, counter, readingGate) }
        self.readers = CacheReaderPool(readers) { key, finding, used in
            switch finding {
            case .found:
                // The number of a damaged row is arbitrary; one from the future was written before the clock was set
                // back.
                let (age, overflow) = options.clock().subtractingReportingOverflow(used)
                if overflow || age.magnitude > options.touchTime { writing.touch(key) }
            case .missing(.corrupt):
                counter.count { $0.corrupt += 1 }
                writing.remove(key, nil)
            case .missing: break
            }
        }
    }

    package func read(_ key: CacheKey, _ answer: @escaping @Sendable (CacheFinding) -> Void) {
        let (writing, digest) = (writing, key.digest)
        if writing.owesRemoval(of: digest) { return answer(.missing(.notFound)) }
        // It may be removed, and so be no longer outdated, after this lookup has read it.
        let wasOutdated = writing.isOutdated(digest)
        readers.read(
            CacheReaderPool.Lookup(key: key) { finding in
                // The removal may have failed after the entry was read.
                var isHidden = writing.owesRemoval(of: digest)
                if case .found = finding, wasOutdated || writing.isOutdated(digest) { isHidden = true }
                answer(isHidden ? .missing(.notFound) : finding)
            })
    }

    package func write(_ entry: CacheEntry, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) {
        writing.write(entry, under: key, isAwaited: done != nil, done)
    }

    package func write(
        _ entry: CacheEntry, under key: CacheKey, isAwaited: Bool, _ done: @escaping @Sendable (Bool) -> Void
    ) { writing.write(entry, under: key, isAwaited: isAwaited, done) }

    package func remove(_ key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) { writing.remove(key.digest, done) }

    package func removeAll(_ done: (@Sendable (Bool) -> Void)?) { writing.removeAll(done) }

    package func hearRemovals(_ forget: (_ name: String?) -> Void) { removals.hear(forget) }

    package var removalsHeard: UInt64 { removals.heardCount }

    package func touch(_ key: CacheKey) { writing.touch(key.digest) }

    package func measure(_ answer: @escaping @Sendable (CacheSize) -> Void) { writing.measure(answer) }

    package var counts: CacheCounts {
        var counts = counter.value
        counts.queuedBytes = writing.queuedBytes
        counts.isDisabled = !readingGate.isOpen || !writingGate.isOpen
        return counts
    }

    package func close(_ done: @escaping @Sendable () -> Void) {
        // The writer is closed last: the last connection cleans up the log.
        let (writing, removals) = (writing, removals)
        readers.close {
            writing.close {
                removals.close()
                done()
            }
        }
    }
}
