import Testing

@testable import Ferry
@testable import FerryTestSupport

/// RFC 9111, 4, 4.2.4 and 5.2.1; RFC 5861: whether a stored response may be used for a request.
@Suite struct ReuseRulesTests {
    private func verdict(
        age: Int64?, _ response: String = "", _ request: String = "", lifetime: Int64 = 60,
        _ allowance: ReuseRules.Allowance = ReuseRules.Allowance(), isShared: Bool = false
    ) -> ReuseRules.Verdict {
        ReuseRules.verdict(
            on: ReuseRules.Stored(
                age: age.map { $0 * 1_000_000 }, lifetime: lifetime * 1_000_000,
                directives: ResponseDirectives(CacheDirectiveList([response]))),
            RequestCacheControl(request.isEmpty ? [:] : ["Cache-Control": request]), allowance, isShared: isShared)
    }
    private let asked = ReuseRules.Verdict.validate(standsIn: false)

    @Test func whatIsYoungerThanItsLifetimeServes() {
        #expect(verdict(age: 59) == .serve)
        #expect(verdict(age: 60) == asked)
        #expect(verdict(age: nil) == asked)
        #expect(verdict(age: 5, "no-cache") == asked)
        #expect(verdict(age: 5, "must-revalidate, immutable") == .serve)
        #expect(verdict(age: 65, "immutable") == asked)
    }

    /// RFC 9111, 5.2.1
    @Test func theRequestMayAskForMore() {
        #expect(verdict(age: 5, "", "max-age=5") == .serve)
        #expect(verdict(age: 6, "", "max-age=5") == asked)
        #expect(verdict(age: 6, "", "max-age=5, max-stale=1") == .serve)
        #expect(verdict(age: 5, "", "min-fresh=55") == .serve)
        #expect(verdict(age: 6, "", "min-fresh=55") == asked)
        #expect(verdict(age: 5, "", "no-cache") == asked)
        #expect(verdict(age: 5, "", "no-store") == .serve)
    }

    /// RFC 8246, 2
    @Test func noAgeIsTooHighForAFreshImmutableResponse() {
        #expect(verdict(age: 6, "immutable", "max-age=5") == .serve)
        #expect(verdict(age: 59, "immutable, must-revalidate", "max-age=0", isShared: true) == .serve)
        #expect(verdict(age: 60, "immutable", "max-age=5") == asked)
        #expect(verdict(age: 6, "immutable", "no-cache") == asked)
        #expect(verdict(age: 6, "immutable", "max-age=5, min-fresh=55") == asked)
        #expect(verdict(age: 6, "immutable, no-cache", "max-age=5") == asked)
    }

    /// RFC 9111, 5.2.1.2
    @Test func theRequestMayTakeLess() {
        #expect(verdict(age: 65, "", "max-stale=5") == .serveStale)
        #expect(verdict(age: 66, "", "max-stale=5") == asked)
        #expect(verdict(age: 6_000, "", "max-stale") == .serveStale)
        #expect(verdict(age: 65, "", "max-stale, min-fresh=1") == asked)
    }

    /// RFC 9111, 5.2.2.2, 5.2.2.8 and 5.2.2.10
    @Test(arguments: ["must-revalidate", "no-cache", "no-cache, must-revalidate"])
    func nothingAllowsWhatTheResponseForbids(_ response: String) {
        let response = response + ", stale-while-revalidate=99, stale-if-error=99"
        let allowance = ReuseRules.Allowance(staleIfError: .max, staleWhileRevalidate: .max)
        #expect(verdict(age: 65, response, "max-stale", allowance) == asked)
        #expect(verdict(age: 65, response, "", allowance) == asked)
    }

    @Test(arguments: ["proxy-revalidate", "s-maxage=60"])
    func someBindSharedCachesOnly(_ response: String) {
        #expect(verdict(age: 65, response, "max-stale") == .serveStale)
        #expect(verdict(age: 65, response, "max-stale", isShared: true) == asked)
    }

    /// RFC 5861, 3
    @Test func itServesWhileAnotherIsFetched() {
        #expect(verdict(age: 65, "stale-while-revalidate=5") == .serveWhileRevalidating)
        #expect(verdict(age: 66, "stale-while-revalidate=5") == asked)
        #expect(verdict(age: 65, "stale-while-revalidate=5", "max-age=70") == asked)
        #expect(
            verdict(age: 66, "", "", ReuseRules.Allowance(staleWhileRevalidate: 6_000_000)) == .serveWhileRevalidating)
    }

    /// RFC 5861, 4
    @Test func itStandsInForAFailure() {
        #expect(verdict(age: 65, "stale-if-error=5") == .validate(standsIn: true))
        #expect(verdict(age: 66, "stale-if-error=5") == asked)
        #expect(verdict(age: 65, "stale-if-error=5", "no-cache") == asked)
        #expect(verdict(age: 66, "", "", ReuseRules.Allowance(staleIfError: 6_000_000)) == .validate(standsIn: true))
    }
}

/// RFC 9111, 4.3 and 3.2: how stored responses are validated and updated.
@Suite struct ValidationRulesTests {
    private func validators(_ tag: String?, _ date: String? = nil) -> Validators {
        var headers = Headers()
        headers["ETag"] = tag
        headers["Last-Modified"] = date
        return Validators(headers)
    }

    @Test func aValidationAsksForAllThatIsStored() {
        let (a, b) = (validators("\"a\"", "Sun"), validators("W/\"b\""))
        let fields = ValidationRules.conditions(selected: a, all: [a, b])
        #expect(fields.map(\.value) == ["\"a\"", "Sun"])
        // A weak tag may be that of a response to other requests, too.
        #expect(ValidationRules.conditions(selected: b, all: [a, b]).map(\.value) == ["W/\"b\", \"a\""])
        #expect(ValidationRules.conditions(selected: nil, all: [a]).map(\.name) == ["If-None-Match"])
        #expect(ValidationRules.conditions(selected: validators(nil), all: [a, validators(nil)]).isEmpty)
        #expect(
            ValidationRules.conditions(selected: validators(nil, "Sun"), all: [a]).map(\.name) == ["If-Modified-Since"])
    }

    /// RFC 9111, 4.3.4
    @Test func aNotModifiedSpeaksOfThoseWithItsValidator() {
        let stored = [validators("\"a\""), validators("W/\"b\"", "Sun"), validators("\"a\"", "Mon"), validators(nil)]
        func which(_ response: Validators, _ selected: Int? = nil) -> [Int] {
            ValidationRules.freshened(by: response, selected: selected, chosen: selected, stored)
        }
        #expect(which(validators("\"a\"")) == [0, 2])
        #expect(which(validators("W/\"b\""), 1) == [1])
        #expect(which(validators("W/\"b\"")).isEmpty && which(validators("W/\"b\""), 0).isEmpty)
        #expect(which(validators("\"c\""), 0).isEmpty)
        #expect(which(validators(nil, "Mon"), 2) == [2])
        #expect(which(validators(nil, "Tue"), 2).isEmpty)
        #expect(which(validators(nil), 3) == [3])
        #expect(which(validators(nil)).isEmpty)
        // The same date in all languages.
        let dated = [validators(nil, "Sun"), validators(nil, "Sun")]
        func which(chosen: Int?) -> [Int] {
            ValidationRules.freshened(by: validators(nil, "Sun"), selected: nil, chosen: chosen, dated)
        }
        #expect(which(chosen: 1) == [1] && which(chosen: nil).isEmpty)
    }

    /// RFC 9111, 3.2
    @Test func anUpdateLeavesWhatDescribesTheBody() {
        let stored: Headers = [
            "A": "1", "a": "2", "B": "3", "Content-Length": "5", "Content-Encoding": "gzip", "Content-Type": "x",
        ]
        let new: Headers = ["A": "9", "Content-Length": "0", "Content-Encoding": "br", "Content-Type": "y"]
        let updated = ValidationRules.updated(stored, by: Array(new))
        #expect(
            updated == [
                "B": "3", "Content-Length": "5", "Content-Encoding": "gzip", "A": "9", "Content-Type": "y",
            ])
    }

    /// RFC 9111, 4.3.5
    @Test func aResponseToHeadSpeaksOfWhatItResembles() {
        let stored: Headers = ["ETag": "\"a\"", "Content-Length": "5"]
        #expect(ValidationRules.isSame(stored, asHead: ["ETag": "\"a\"", "X": "1"]))
        #expect(!ValidationRules.isSame(stored, asHead: ["ETag": "\"b\""]))
        #expect(!ValidationRules.isSame(stored, asHead: ["ETag": "\"a\"", "Content-Length": "6"]))
    }

    /// RFC 9111, 4.3.2; RFC 9110, 13.1.2 and 13.1.3
    @Test func aConditionOfTheRequestIsJudged() {
        let stored: Headers = ["ETag": "W/\"a\"", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"]
        func holds(_ request: Headers, status: Int = 200) -> Bool {
            ValidationRules.isNotModified(request, stored, status: status, responseTime: 784_111_999_000_000)
        }
        #expect(holds(["If-None-Match": "\"a\""]) && holds(["If-None-Match": "\"b\", W/\"a\""]))
        #expect(holds(["If-None-Match": "*"]) && !holds(["If-None-Match": "\"b\""]))
        #expect(!holds(["If-None-Match": "\"b\"", "If-Modified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"]))
        #expect(holds(["If-Modified-Since": "Sunday, 06-Nov-94 08:49:37 GMT"]))
        #expect(!holds(["If-Modified-Since": "Sun, 06 Nov 1994 08:49:36 GMT"]))
        #expect(!holds(["If-Modified-Since": "soon"]) && !holds(["If-None-Match": "*"], status: 404))
    }

    @Test func tagsAreListedByCommasOutsideOfQuotes() {
        #expect(EntityTag.list("\"a,b\" , W/\"c\",,d").map(\.text) == ["\"a,b\"", "W/\"c\"", "d"])
        #expect(Validators(Headers([.init(name: "ETag", value: "a"), .init(name: "ETag", value: "b")])).tag == nil)
        #expect(Validators(["ETag": "\"\u{FFFD}\""]).tag == nil && Validators(["ETag": "\"é\""]).tag?.text == "\"é\"")
    }
}

/// RFC 9111, 4.4: what an unsafe request invalidates.
@Suite struct InvalidationRulesTests {
    private func urls(_ method: String, _ status: Int = 200, _ response: Headers = [:]) -> [String] {
        InvalidationRules.invalidated(method: method, url: "http://h/a/b?q", status: status, response)
    }

    @Test func onlyUnsafeMethodsThatWentWellInvalidate() {
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "post"] {
            #expect(urls(method) == ["http://h/a/b?q"] && urls(method, 302) == ["http://h/a/b?q"])
            #expect(urls(method, 404).isEmpty && urls(method, 500).isEmpty)
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE"] { #expect(urls(method).isEmpty) }
    }

    @Test func whatTheResponseNamesOfTheSameOriginGoesToo() {
        let named: Headers = ["Location": "../c#x", "Content-Location": "http://h:80/d"]
        #expect(urls("POST", 201, named) == ["http://h/a/b?q", "http://h/c", "http://h/d"])
        let foreign: Headers = ["Location": "http://i/c", "Content-Location": "https://h/d"]
        #expect(urls("POST", 201, foreign) == ["http://h/a/b?q"])
        #expect(urls("POST", 201, ["Location": "http://[", "Content-Location": ""]) == ["http://h/a/b?q"])
    }
}

/// RFC 9110, 14: which range of a stored body is returned for a request.
@Suite struct RangeRulesTests {
    private func part(_ range: String, _ condition: String? = nil) -> RangeRules.Part {
        var request: Headers = ["Range": range]
        request["If-Range"] = condition
        return RangeRules.part(request, of: 10, ["ETag": "\"a\""])
    }

    @Test func onePartOfWhatIsThereIsServed() {
        #expect(part("bytes=0-1") == .part(0..<2) && part("BYTES=2-") == .part(2..<10))
        #expect(part("bytes=-3") == .part(7..<10) && part("bytes=-99") == .part(0..<10))
        #expect(part("bytes=9-99999999999999999999") == .part(9..<10))
        #expect(RangeRules.part([:], of: 10, [:]) == .whole)
    }

    @Test(arguments: [
        "bytes=0-1,3-4", "bytes=10-", "bytes=5-4", "bytes=-0", "bytes=-", "bytes=a-b", "lines=0-1", "bytes", "bytes=1",
        "bytes=1-2-3", "", "bytes=٠-١",
    ])
    func theRestIsTheServersToAnswer(_ range: String) {
        #expect(part(range) == .ofServer)
    }

    @Test func aConditionNeedsAStrongTag() {
        #expect(part("bytes=0-1", "\"a\"") == .part(0..<2))
        #expect(part("bytes=0-1", "\"b\"") == .whole && part("bytes=0-1", "W/\"a\"") == .whole)
        #expect(part("bytes=0-1", "Sun, 06 Nov 1994 08:49:37 GMT") == .whole)
    }

    @Test func aStrongDateIsUsedAsACondition() {
        let (modified, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:38 GMT")
        func part(_ condition: String, _ stored: Headers) -> RangeRules.Part {
            RangeRules.part(["Range": "bytes=0-1", "If-Range": condition], of: 10, stored)
        }
        #expect(part(modified, ["Last-Modified": modified, "Date": later]) == .part(0..<2))
        #expect(part(modified, ["Last-Modified": modified, "Date": modified]) == .whole, "it may have changed since")
        #expect(part(modified, ["Last-Modified": modified]) == .whole && part(modified, ["Date": later]) == .whole)
        #expect(part(later, ["Last-Modified": modified, "Date": later]) == .whole)
        #expect(part("1994", ["Last-Modified": "1994", "Date": later]) == .whole && part("", [:]) == .whole)
    }
}
