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

    @Test func theAgeIsTheTimeSinceItWasStored() {
        for stored: CacheTime in [0, 4999, 5000] { #expect(marks(stored).age(at: 5000) == 5000 - stored) }
    }

    @Test func oneFromTheFutureHasNoAge() {
        #expect(marks(5001).age(at: 5000) == nil)
        #expect(marks(.max).age(at: .min) == nil)
        #expect(marks(.min).age(at: .max) == nil)
    }

    @Test func eachDifferenceHasItsReason() {
        #expect(terms.difference(from: marks(5000)) == nil)
        var version = marks(5000)
        version.version = 3
        #expect(terms.difference(from: version) == .versionMismatch)
        var sensitive = marks(5000)
        sensitive.sensitiveData = .none
        #expect(terms.difference(from: sensitive) == .sensitiveDataMismatch)
        var application = marks(5000)
        application.applicationVersion = CacheDigest(of: "1.1")
        #expect(terms.difference(from: application) == .appVersionMismatch)
    }
}
