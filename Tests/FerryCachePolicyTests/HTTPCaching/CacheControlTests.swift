import Testing

@testable import Ferry
@testable import FerryTestSupport

/// RFC 9111, 5.2: the directives, and what remains of invalid ones.
@Suite struct CacheControlTests {
    private func response(_ values: String...) -> ResponseDirectives { ResponseDirectives(CacheDirectiveList(values)) }

    @Test(arguments: [
        ("max-age=60", 60), ("MaX-AgE=60", 60), ("public,max-age=60", 60), ("  max-age=60\t,x", 60),
        ("max-age=\"60\"", 60), ("max-age=0060", 60), ("x=\"max-age=1\", max-age=60", 60),
        ("max-age=60, x=\"a, max-age=1\"", 60), ("x=\"\\\", max-age=1\", max-age=60", 60),
        ("max-age=2147483648", 2_147_483_648), ("max-age=99999999999", 2_147_483_648),
        ("max-age=999999999999999999999999999999", 2_147_483_648),
    ])
    func aLifetimeIsReadAsItIsMeant(_ text: String, _ seconds: Int64) {
        #expect(response(text).maxAge == seconds)
    }

    /// RFC 9111, 4.2.1: an invalid number of seconds makes the response stale.
    @Test(arguments: [
        "max-age", "max-age=", "max-age=-1", "max-age=+1", "max-age=60.0", "max-age=a60", "max-age=60a", "max-age='60'",
        "max-age =60", "max-age= 60", "max-age=\"60\"a", "max-age=6 0", "max-age=\"\"", "max-age=٦٠", "max-age=0x60",
        "max-age=\u{0}", "max-age=60;x",
    ])
    func aLifetimeThatIsBrokenIsNone(_ text: String) {
        #expect(response(text).maxAge == 0)
    }

    @Test func ofSeveralLifetimesTheShortestCounts() {
        #expect(response("max-age=60, max-age=5").maxAge == 5)
        #expect(response("max-age=5", "max-age=60").maxAge == 5)
        #expect(response("max-age=60, max-age=x").maxAge == 0)
        #expect(response("s-maxage=7, max-age=60").maxAge == 60)
        #expect(response("s-maxage=7, max-age=60").sharedMaxAge == 7)
        #expect(response("public").maxAge == nil)
    }

    @Test(arguments: [
        "no-store", "NO-store", "max-age=1,no-store", "no-store=1", "no-store=\"x\"", ",, no-store ,",
        "x=\"a, no-store", "x=\"\\\", no-store", "\"x\", no-store",
    ])
    func aBanOnStoringIsNotHidden(_ text: String) {
        #expect(response(text).noStore)
    }

    @Test(arguments: ["x=\"no-store\"", "\"no-store\"", "no-stores", "xno-store", "x=no-store"])
    func whatIsNoBanOnStoringIsNone(_ text: String) {
        #expect(!response(text).noStore)
    }

    /// RFC 9111, 5.2.2.4: quoted field names restrict the directive to these fields.
    @Test func fieldNamesBindTheseFieldsOnly() {
        let named = response("no-cache=\"Set-Cookie , X-A\", private=\"X-B\"")
        #expect(!named.noCache && named.noCacheFields == ["set-cookie", "x-a"])
        #expect(!named.isPrivate && named.privateFields == ["x-b"])
        for text in ["no-cache", "no-cache=", "no-cache=X-A", "no-cache=\"\"", "no-cache=\"X-A\", no-cache"] {
            #expect(response(text).noCache, "\(text)")
        }
    }

    @Test func theOtherDirectivesOfAResponseAreRead() {
        let read = response(
            "public, must-revalidate, proxy-revalidate, must-understand, immutable, stale-while-revalidate=5",
            "stale-if-error=6, stale-if-error=4")
        #expect(read.isPublic && read.mustRevalidate && read.proxyRevalidate && read.mustUnderstand && read.isImmutable)
        #expect(read.staleWhileRevalidate == 5 && read.staleIfError == 4)
        #expect(response("stale-if-error=x, stale-while-revalidate").staleIfError == 0)
    }

    private func request(_ text: String) -> RequestCacheControl { RequestCacheControl(["Cache-Control": text]) }

    /// RFC 9111, 5.2.1
    @Test func theDirectivesOfARequestAreRead() {
        let read = request("max-age=5, min-fresh=6, max-stale=7, no-store, only-if-cached")
        #expect(read.maxAge == .seconds(5) && read.minFresh == .seconds(6) && read.maxStale == .seconds(7))
        #expect(read.noStore && read.onlyIfCached && !read.noCache)
        #expect(request("max-stale").maxStale == RequestCacheControl.anyTime)
        #expect(request("max-stale, max-stale=3").maxStale == .seconds(3))
    }

    /// Invalid values never allow an older response to be used.
    @Test func aBrokenDirectiveOfARequestAsksForMost() {
        #expect(request("max-age=x").maxAge == .zero)
        #expect(request("max-age=9, max-age=3").maxAge == .seconds(3))
        #expect(request("max-stale=x").maxStale == nil)
        #expect(request("max-stale=9, max-stale=3").maxStale == .seconds(3))
        #expect(request("min-fresh=1, min-fresh=4").minFresh == .seconds(4))
        #expect(request("min-fresh=x").minFresh == .seconds(1 << 31))
    }

    /// RFC 9111, 5.4
    @Test func pragmaMeansTheSameWhereThereIsNoCacheControl() {
        #expect(RequestCacheControl(["Pragma": "no-cache"]).noCache)
        #expect(!RequestCacheControl(["Pragma": "x"]).noCache)
        #expect(!RequestCacheControl(["Pragma": "no-cache", "Cache-Control": "max-age=5"]).noCache)
    }

    @Test func theTypedDirectivesAreTheField() {
        var headers = Headers()
        headers.cacheControl.maxAge = .seconds(5)
        headers.cacheControl.maxStale = RequestCacheControl.anyTime
        headers.cacheControl.minFresh = .seconds(-3)
        headers.cacheControl.noCache = true
        #expect(headers["Cache-Control"] == "max-age=5, max-stale, min-fresh=0, no-cache")
        headers.cacheControl = RequestCacheControl()
        #expect(headers["Cache-Control"] == nil)
        headers.cacheControl.noStore = true
        headers.cacheControl.onlyIfCached = true
        #expect(headers["Cache-Control"] == "no-store, only-if-cached")
    }
}
