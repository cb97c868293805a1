import Testing

@testable import Ferry
@testable import FerryTestSupport

/// RFC 9111, 3: what may be stored, and which fields of it.
@Suite struct StoringRulesTests {
    private func refusal(
        _ response: Headers, status: Int = 200, method: String = "GET", request: Headers = [:], isShared: Bool = false
    ) -> CacheRefusal? {
        let directives = ResponseDirectives(response)
        let exchange = StoringRules.Exchange(
            method: method, url: "http://h/x", request: request, status: status, response: response,
            isAuthorized: request.contains("Authorization"), isShared: isShared)
        let lifetime = Freshness.lifetime(
            status: status, response, directives, isShared: isShared, responseTime: 784_111_777_000_000)
        return StoringRules.refusal(exchange, directives, lifetime)
    }

    @Test func aStatusNeedsALifetimeOrAHeuristic() {
        let validator: Headers = ["ETag": "\"a\""]
        #expect(refusal(validator) == nil)
        #expect(refusal(validator, status: 201) == .status)
        #expect(refusal(["ETag": "\"a\"", "Cache-Control": "public"], status: 201) == nil)
        #expect(refusal([:]) == .notReusable)
        #expect(refusal(["Cache-Control": "max-age=0"]) == .notReusable)
        #expect(refusal(["Cache-Control": "max-age=0, stale-if-error=5"]) == nil)
        for status in [200, 299, 302, 404, 499, 503, 599] {
            #expect(refusal(["Cache-Control": "max-age=5"], status: status) == nil)
        }
        #expect(refusal(["Cache-Control": "max-age=5"], status: 304) == .partial)
    }

    @Test func theFieldsForbidStoring() {
        #expect(refusal(["Cache-Control": "no-store, max-age=5"]) == .noStore)
        #expect(refusal(["Cache-Control": "max-age=5"], request: ["Cache-Control": "no-store"]) == .noStore)
        #expect(refusal(["Cache-Control": "max-age=5", "Vary": "a, *"]) == .vary)
        #expect(refusal(["Cache-Control": "private, max-age=5"]) == nil)
        #expect(refusal(["Cache-Control": "private, max-age=5"], isShared: true) == .notShared)
    }

    /// RFC 9111, 5.2.2.3
    @Test func whatMustBeUnderstoodIsForKnownStatuses() {
        let headers: Headers = ["Cache-Control": "max-age=5, no-store, must-understand"]
        #expect(refusal(headers) == nil)
        #expect(refusal(headers, status: 599) == .noStore)
    }

    /// RFC 9111, 3.5
    @Test(arguments: [
        ("max-age=5", CacheRefusal.notShared), ("max-age=5, public", nil), ("max-age=5, must-revalidate", nil),
        ("s-maxage=5", nil),
    ])
    func aSharedCacheNeedsLeaveForAuthorizedResponses(_ control: String, _ expected: CacheRefusal?) {
        let request: Headers = ["Authorization": "Bearer a"]
        #expect(refusal(["Cache-Control": control], request: request, isShared: true) == expected)
        #expect(refusal(["Cache-Control": control, "ETag": "\"a\""], request: request) == nil)
    }

    /// RFC 9110, 9.3.3
    @Test func aResponseToPostIsStoredWhereItIsWhatStandsThere() {
        let fresh = "max-age=5"
        #expect(refusal(["Cache-Control": fresh], method: "POST") == .method)
        #expect(refusal(["Cache-Control": fresh, "Content-Location": "/x"], method: "POST") == nil)
        #expect(refusal(["Cache-Control": fresh, "Content-Location": "/y"], method: "POST") == .method)
        #expect(refusal(["ETag": "\"a\"", "Content-Location": "/x"], method: "POST") == .method)
        #expect(refusal(["Cache-Control": fresh], method: "PUT") == .method)
    }

    /// RFC 9111, 3.1
    @Test func fieldsOfTheConnectionAreNotStored() {
        let headers: Headers = [
            "Connection": "a, B", "A": "1", "b": "2", "C": "3", "Keep-Alive": "x", "TE": "x", "Upgrade": "x",
            "Transfer-Encoding": "chunked", "Proxy-Authenticate": "x", "Proxy-Authorization": "x", "Age": "5",
            "Set-Cookie": "s=1", "Cache-Control": "no-cache=\"D\", private=\"E, date\"", "D": "4", "E": "5",
            "Date": "x",
        ]
        func names(isShared: Bool) -> [String] {
            StoringRules.storedFields(headers, ResponseDirectives(headers), isShared: isShared).map(\.name)
        }
        #expect(names(isShared: false) == ["C", "Cache-Control", "E", "Date"])
        #expect(names(isShared: true) == ["C", "Cache-Control", "Date"])
    }
}

/// RFC 9111, 4.1: what a stored response varies by.
@Suite struct VaryRulesTests {
    @Test(arguments: ["*", "*, *", ", *", "*, a", "a,*"]) func aStarMatchesNothing(_ value: String) {
        #expect(VaryRules.names(["Vary": value]) == nil)
    }

    @Test func namesOfAllLinesCountOnce() {
        var headers: Headers = ["Vary": "A, b"]
        headers.append("vary", ",B , C")
        #expect(VaryRules.names(headers) == ["a", "b", "c"])
        #expect(VaryRules.names([:]) == [])
    }

    @Test func valuesThatMeanTheSameAreTheSame() {
        func isSame(_ name: String, _ left: String?, _ right: String?) -> Bool {
            VaryRules.variance(of: [name]) { _ in left } == VaryRules.variance(of: [name]) { _ in right }
        }
        #expect(isSame("foo", "1, 2", "1,2") && isSame("foo", " 1 ,, 2", "1, 2"))
        #expect(!isSame("foo", "1, 2", "2, 1") && !isSame("foo", "a", "A") && !isSame("foo", "", nil))
        #expect(!isSame("foo", "\"1,2\"", "\"1, 2\""))
        #expect(isSame("accept-language", "en, de", "DE ,eN"))
        #expect(!isSame("accept-language", "en;q=0.5, de", "en, de;q=0.5"))
    }
}
