import Glibc

/// The key of a cache entry: everything that distinguishes one request from another, as bytes.
///
/// The bytes stay in memory, as they may contain secrets; a storage uses only their digest.
public struct CacheKey: Hashable, Sendable {
    package let material: [UInt8]
    /// The hash of the bytes, computed once: a run looks a key up several times.
    package let hash: Int

    /// Creates a key of these bytes.
    public init(_ material: [UInt8]) {
        self.material = material
        var hasher = Hasher()
        material.withUnsafeBytes { hasher.combine(bytes: $0) }
        hash = hasher.finalize()
    }

    /// The number of bytes, which may be that of a long URL.
    package var count: Int { material.count }

    /// The SHA-256 digest of the bytes as 64 lower-case hexadecimal digits, which is the same in every process.
    public var name: String { digest.hexadecimal }

    /// The digest of the bytes, which the store keeps.
    package var digest: CacheDigest { CacheDigest(of: material) }

    // An array would hash and compare byte by byte, which took 7 % of a hit in memory.
    /// Whether the bytes are equal.
    public static func == (left: CacheKey, right: CacheKey) -> Bool {
        if left.hash != right.hash { return false }
        return left.material.withUnsafeBytes { left in
            right.material.withUnsafeBytes { right in
                guard let ours = left.baseAddress, let theirs = right.baseAddress else {
                    return left.count == right.count
                }
                return left.count == right.count && memcmp(ours, theirs, left.count) == 0
            }
        }
    }

    /// Feeds the hash of the bytes to the hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

/// The conditions that an entry must meet to be a hit.
package struct CacheTerms: Sendable, Hashable {
    /// The time to live, in microseconds.
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

    /// Why an entry is not a hit, regardless of its age; `nil` if only its age decides.
    package func difference(from marks: CacheEntry.Marks) -> CacheMissReason? {
        if marks.version != version { return .versionMismatch }
        if marks.sensitiveData != sensitiveData { return .sensitiveDataMismatch }
        if marks.applicationVersion != applicationVersion { return .appVersionMismatch }
        return nil
    }
}

/// Microseconds since 1970 by the system's clock, which may be set back.
package typealias CacheTime = Int64

package func currentCacheTime() -> CacheTime {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return CacheTime(time.tv_sec) * 1_000_000 + CacheTime(time.tv_nsec) / 1000
}

/// The stored form of one response: one piece of memory, the record that a storage keeps.
///
/// Its first 32 bytes are the SHA-256 digest of everything after them: the digest of the key, the marks, lengths, and
/// the three parts, with numbers in this machine's byte order. The storage does not interpret the parts.
public struct CacheEntry: Sendable {
    /// The values that a hit must agree with.
    package struct Marks: Sendable, Hashable {
        package var stored: CacheTime
        package var version: Int64 = 0
        package var sensitiveData = CacheDigest.none
        package var applicationVersion = CacheDigest.none

        package init(stored: CacheTime) { self.stored = stored }

        /// The age in microseconds; `nil` if the entry is from the future. Then it was stored before the clock was set
        /// back, and its age is unknown.
        package func age(at now: CacheTime) -> Int64? {
            let (age, overflow) = now.subtractingReportingOverflow(stored)
            return overflow || age < 0 ? nil : age
        }
    }

    package let marks: Marks
    /// How long the entry may be useful from when it is written; `nil` if unknown. A storage that lets entries expire
    /// may use it. It is not part of the record.
    public package(set) var usefulTime: Duration?
    private let record: [UInt8]
    private let headStart: Int
    private let bodyStart: Int

    /// Creates an entry of its parts. The writing queue computes its key later.
    package init(
        _ marks: Marks, attributes: [UInt8], head: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer
    ) {
        self.marks = marks
        headStart = Layout.parts + attributes.count
        bodyStart = headStart + head.count
        let count = bodyStart + body.count
        record = [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            UnsafeMutableRawBufferPointer(rebasing: bytes[..<Layout.parts])
                .initializeMemory(as: UInt8.self, repeating: 0)
            bytes.store(marks.stored, at: Layout.stored)
            bytes.store(marks.version, at: Layout.version)
            bytes.store(marks.applicationVersion, at: Layout.applicationVersion)
            bytes.store(marks.sensitiveData, at: Layout.sensitiveData)
            bytes.store(Int64(attributes.count), at: Layout.attributesLength)
            bytes.store(Int64(head.count), at: Layout.headLength)
            bytes.store(Int64(body.count), at: Layout.bodyLength)
            var at = Layout.parts
            attributes.withUnsafeBytes { bytes.append($0, &at) }
            bytes.append(head, &at)
            bytes.append(body, &at)
            used = count
        }
    }

    /// Reads the record that a storage has kept under a key; `nil` if it is damaged, truncated, of another key, or not
    /// a record of the cache.
    public init?(record: [UInt8], for key: CacheKey) {
        guard let parts = record.withUnsafeBytes({ Parts($0) }) else { return nil }
        (headStart, bodyStart, marks) = (parts.headStart, parts.bodyStart, parts.marks)
        self.record = record
        guard self.key == key.digest else { return nil }
    }

    /// The record to store under a key.
    public func record(for key: CacheKey) -> [UInt8] { sealed(under: key.digest) }

    /// Reads the record of a row; `nil` if it is damaged or belongs to another row.
    init?(record bytes: UnsafeRawBufferPointer, row: Int64) {
        guard let parts = Parts(bytes) else { return nil }
        (headStart, bodyStart, marks) = (parts.headStart, parts.bodyStart, parts.marks)
        record = Array(bytes)
        guard key.number == row else { return nil }
    }

    /// The positions of the parts in a valid record.
    private struct Parts {
        let headStart: Int
        let bodyStart: Int
        let marks: Marks

        /// `nil` if the digest or the lengths are wrong.
        init?(_ bytes: UnsafeRawBufferPointer) {
            guard bytes.count >= Layout.parts,
                CacheDigest(bytes: bytes.part(0, CacheDigest.count))
                    == CacheDigest(of: UnsafeRawBufferPointer(rebasing: bytes[Layout.key...]))
            else { return nil }
            let attributes = bytes.number(Layout.attributesLength)
            let head = bytes.number(Layout.headLength)
            let body = bytes.number(Layout.bodyLength)
            // Checked one by one first, so that no sum overflows.
            guard [attributes, head, body].allSatisfy({ (0...Int64(bytes.count)).contains($0) }),
                Int64(Layout.parts) + attributes + head + body == Int64(bytes.count)
            else { return nil }
            headStart = Layout.parts + Int(attributes)
            bodyStart = headStart + Int(head)
            marks = Marks(bytes)
        }
    }

    /// The size of the record in bytes.
    public var count: Int { record.count }

    /// Calls `body` with the attributes that the entry's owner has stored.
    package func withAttributes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try part(Layout.parts..<headStart, body)
    }

    package func withHead<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try part(headStart..<bodyStart, body)
    }

    package func withBody<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try part(bodyStart..<record.count, body)
    }

    private func part<R>(_ range: Range<Int>, _ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try record.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    /// The digest of the key that the entry is stored under.
    var key: CacheDigest {
        record.withUnsafeBytes { CacheDigest(bytes: $0.part(Layout.key, CacheDigest.count)) }
    }

    /// The record under this key, with its digest.
    consuming func sealed(under key: CacheDigest) -> [UInt8] {
        var record = record
        record.withUnsafeMutableBytes { bytes in
            bytes.store(key, at: Layout.key)
            let digest = CacheDigest(of: UnsafeRawBufferPointer(rebasing: bytes[Layout.key...]))
            bytes.store(digest, at: 0)
        }
        return record
    }

    fileprivate enum Layout {
        static let key = 32
        static let stored = 64
        static let version = 72
        static let applicationVersion = 80
        static let sensitiveData = 112
        static let attributesLength = 144
        static let headLength = 152
        static let bodyLength = 160
        static let parts = 168
    }
}

extension CacheEntry.Marks {
    fileprivate init(_ record: UnsafeRawBufferPointer) {
        typealias Layout = CacheEntry.Layout
        stored = record.number(Layout.stored)
        version = record.number(Layout.version)
        applicationVersion = CacheDigest(bytes: record.part(Layout.applicationVersion, CacheDigest.count))
        sensitiveData = CacheDigest(bytes: record.part(Layout.sensitiveData, CacheDigest.count))
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func part(_ start: Int, _ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[start..<(start + count)])
    }

    fileprivate func number(_ offset: Int) -> Int64 { loadUnaligned(fromByteOffset: offset, as: Int64.self) }
}

extension UnsafeMutableRawBufferPointer {
    fileprivate func store(_ digest: CacheDigest, at offset: Int) {
        digest.withBytes { UnsafeMutableRawBufferPointer(rebasing: self[offset...]).copyMemory(from: $0) }
    }

    fileprivate func store(_ number: Int64, at offset: Int) {
        storeBytes(of: number, toByteOffset: offset, as: Int64.self)
    }

    fileprivate func append(_ bytes: UnsafeRawBufferPointer, _ at: inout Int) {
        if bytes.isEmpty { return }
        UnsafeMutableRawBufferPointer(rebasing: self[at...]).copyMemory(from: bytes)
        at += bytes.count
    }
}
