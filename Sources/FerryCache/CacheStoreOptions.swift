/// How a store on the disk is to be.
package struct CacheStoreOptions: Sendable {
    /// Made, for its owner only, when it is not there.
    package var directory: String
    /// On the disk; the least recently used entries go first.
    package var maxBytes = 256 << 20
    /// Of one entry; larger ones are not taken.
    package var maxEntryBytes = 4 << 20
    /// Waiting to be written; what does not fit is not taken.
    package var maxQueuedBytes = 16 << 20
    /// Connections that read.
    package var readers = 2
    /// How long the disk is left alone after a fault of it, in microseconds.
    package var disabledTime: Int64 = 30_000_000
    /// How long to wait for another process that holds the files, in microseconds.
    package var patience: Int64 = 2_000_000
    /// A use of an entry that was noted less long ago is not noted again, in microseconds.
    package var touchTime: Int64 = 60_000_000
    /// How long the queue waits for company before it writes, in microseconds, where nobody waits for it.
    package var gatheringTime: Int64 = 5000
    package var clock: @Sendable () -> CacheTime = currentCacheTime

    package init(directory: String) { self.directory = directory }
}
