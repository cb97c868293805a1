import FerryCache
import Testing

@Suite struct CacheTermsTests {
    private let terms = CacheTerms(
        time: 1000, version: 2, sensitiveData: CacheDigest(of: "a"), applicationVersion: .none)

    private func marks(_ stored: CacheTime) -> CacheEntry.Marks {
        var marks = CacheEntry.Marks(stored: stored)
        marks.version = 2
        marks.sensitiveData = CacheDigest(of: "a")
        return marks
    }

    @Test func anAgeWithinTheTimeIsAHit() {
        for stored: CacheTime in [4000, 4500, 5000] { #expect(terms.miss(of: marks(stored), at: 5000) == nil) }
    }

    @Test func anOlderOneHasExpired() { #expect(terms.miss(of: marks(3999), at: 5000) == .expired) }

    @Test func aClockThatWentBackMakesItExpire() {
        #expect(terms.miss(of: marks(5001), at: 5000) == .expired)
        #expect(terms.miss(of: marks(.max), at: .min) == .expired)
        #expect(terms.miss(of: marks(.min), at: .max) == .expired)
    }

    @Test func eachDifferenceHasItsReason() {
        var version = marks(5000)
        version.version = 3
        #expect(terms.miss(of: version, at: 5000) == .versionMismatch)
        var sensitive = marks(5000)
        sensitive.sensitiveData = .none
        #expect(terms.miss(of: sensitive, at: 5000) == .sensitiveDataMismatch)
        var application = marks(5000)
        application.applicationVersion = CacheDigest(of: "1.1")
        #expect(terms.miss(of: application, at: 5000) == .appVersionMismatch)
    }
}
