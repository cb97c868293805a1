import Glibc

/// Under what an entry is stored: all that makes one request differ from another, as bytes.
///
/// The bytes stay in memory, as there may be secrets in them; a storage uses only their digest.
public struct CacheKey: Hashable, Sendable {
    package let material: [UInt8]
    /// Of the bytes, once: a run looks a key up several times.
    private let hash: Int

    /// The key of these bytes.
    public init(_ material: [UInt8]) {
        self.material = material
        var hasher = Hasher()
        material.withUnsafeBytes { hasher.combine(bytes: $0) }
        hash = hasher.finalize()
    }

    /// The SHA-256 digest of the bytes, as 64 hexadecimal digits in lower case: the same in every process.
    public var name: String { digest.hexadecimal }

    /// What the store keeps of it.
    package var digest: CacheDigest { CacheDigest(of: material) }

    // An array hashes and compares one byte after another: 7 % of a hit in memory.
    /// Whether the bytes are the same.
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

/// Microseconds since 1970, by the system's clock, which may be set back.
package typealias CacheTime = Int64

package func currentCacheTime() -> CacheTime {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return CacheTime(time.tv_sec) * 1_000_000 + CacheTime(time.tv_nsec) / 1000
}

/// What is stored of one response, as one piece of memory: the record that a storage keeps.
///
/// Its first 32 bytes are the SHA-256 digest of all that follows: the digest of the key, the marks, lengths, and
/// the three parts, numbers as this machine writes them. The storage does not look into the parts.
public struct CacheEntry: Sendable {
    /// What a hit has to agree with.
    package struct Marks: Sendable, Hashable {
        package var stored: CacheTime
        package var version: Int64 = 0
        package var sensitiveData = CacheDigest.none
        package var applicationVersion = CacheDigest.none

        package init(stored: CacheTime) { self.stored = stored }

        /// Microseconds; `nil` of one that is from the future: it was stored before the clock went back, and nobody
        /// knows how old it is.
        package func age(at now: CacheTime) -> Int64? {
            let (age, overflow) = now.subtractingReportingOverflow(stored)
            return overflow || age < 0 ? nil : age
        }
    }

    package let marks: Marks
    /// How long it may be of use, from when it is written; `nil` where nobody knows. A storage that lets entries expire
    /// may go by it. It is no part of the record.
    public package(set) var usefulTime: Duration?
    private let record: [UInt8]
    private let headStart: Int
    private let bodyStart: Int

    /// An entry of its parts, under a key that is not known yet: the writing queue works that out.
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

    /// What a storage has kept under a key; `nil` where the record is damaged, cut, of another key or none of the
    /// cache's.
    public init?(record: [UInt8], for key: CacheKey) {
        guard let parts = record.withUnsafeBytes({ Parts($0) }) else { return nil }
        (headStart, bodyStart, marks) = (parts.headStart, parts.bodyStart, parts.marks)
        self.record = record
        guard self.key == key.digest else { return nil }
    }

    /// The record to be kept under a key.
    public func record(for key: CacheKey) -> [UInt8] { sealed(under: key.digest) }

    /// What a row holds, if it is whole and stands where it belongs. `nil` when it does not.
    init?(record bytes: UnsafeRawBufferPointer, row: Int64) {
        guard let parts = Parts(bytes) else { return nil }
        (headStart, bodyStart, marks) = (parts.headStart, parts.bodyStart, parts.marks)
        record = Array(bytes)
        guard key.number == row else { return nil }
    }

    /// Where the parts of a whole record lie.
    private struct Parts {
        let headStart: Int
        let bodyStart: Int
        let marks: Marks

        /// `nil` when its digest or its lengths are wrong.
        init?(_ bytes: UnsafeRawBufferPointer) {
            guard bytes.count >= Layout.parts,
                CacheDigest(bytes: bytes.part(0, CacheDigest.count))
                    == CacheDigest(of: UnsafeRawBufferPointer(rebasing: bytes[Layout.key...]))
            else { return nil }
            let attributes = bytes.number(Layout.attributesLength)
            let head = bytes.number(Layout.headLength)
            let body = bytes.number(Layout.bodyLength)
            // Each by itself first, so that no sum overflows.
            guard [attributes, head, body].allSatisfy({ (0...Int64(bytes.count)).contains($0) }),
                Int64(Layout.parts) + attributes + head + body == Int64(bytes.count)
            else { return nil }
            headStart = Layout.parts + Int(attributes)
            bodyStart = headStart + Int(head)
            marks = Marks(bytes)
        }
    }

    /// Bytes of the record.
    public var count: Int { record.count }

    /// What its owner says of it.
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

    /// The digest of the key that it is kept under.
    var key: CacheDigest {
        record.withUnsafeBytes { CacheDigest(bytes: $0.part(Layout.key, CacheDigest.count)) }
    }

    /// The record as it is to stand under this key, sealed.
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
