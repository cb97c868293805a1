/// Under what an entry is kept: all that makes one request differ from another, as bytes.
///
/// The bytes stay in memory, as there may be secrets in them; the store keeps their digest.
package struct CacheKey: Hashable, Sendable {
    package let material: [UInt8]

    package init(_ material: [UInt8]) { self.material = material }

    /// What the store keeps of it.
    package var digest: CacheDigest { CacheDigest(of: material) }
}
