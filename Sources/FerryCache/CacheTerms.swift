/// What an entry has to agree with to be a hit.
package struct CacheTerms: Sendable, Hashable {
    /// Microseconds.
    package var time: Int64
    package var version: Int64
    package var sensitiveData: CacheDigest
    package var applicationVersion: CacheDigest

    package init(time: Int64, version: Int64, sensitiveData: CacheDigest, applicationVersion: CacheDigest) {
        self.time = time
        self.version = version
        self.sensitiveData = sensitiveData
        self.applicationVersion = applicationVersion
    }

    /// Why an entry is no hit whatever its age; `nil` when that is all there is to ask.
    package func difference(from marks: CacheEntry.Marks) -> CacheMissReason? {
        if marks.version != version { return .versionMismatch }
        if marks.sensitiveData != sensitiveData { return .sensitiveDataMismatch }
        if marks.applicationVersion != applicationVersion { return .appVersionMismatch }
        return nil
    }
}
