import Testing

@testable import Ferry

/// RFC 9111, 4.2: how long a response is fresh, and how old it is.
@Suite struct FreshnessTests {
    /// Sun, 06 Nov 1994 08:49:37 GMT, in microseconds.
    private let now: Int64 = 784_111_777_000_000

    private func lifetime(_ headers: Headers, status: Int = 200, isShared: Bool = false) -> Freshness.Lifetime {
        Freshness.lifetime(
            status: status, headers, ResponseDirectives(headers), isShared: isShared, responseTime: now)
    }

    /// RFC 9111, 4.2.1
    @Test func theFirstThatIsThereSaysHowLong() {
        let all: Headers = [
            "Cache-Control": "s-maxage=7, max-age=60", "Date": "Sun, 06 Nov 1994 08:49:37 GMT",
            "Expires": "Sun, 06 Nov 1994 08:49:57 GMT", "Last-Modified": "Sun, 06 Nov 1994 08:49:17 GMT",
        ]
        #expect(lifetime(all) == .explicit(60_000_000))
        #expect(lifetime(all, isShared: true) == .explicit(7_000_000))
        var headers = all
        headers["Cache-Control"] = nil
        #expect(lifetime(headers) == .explicit(20_000_000))
        headers["Expires"] = nil
        #expect(lifetime(headers) == .heuristic(2_000_000))
        headers["Last-Modified"] = nil
        #expect(lifetime(headers) == .unknown)
    }

    /// RFC 9111, 5.3; RFC 9110, 5.6.7
    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:57 GMT", "Sunday, 06-Nov-94 08:49:57 GMT", "Sun Nov  6 08:49:57 1994",
        "SUN, 06 NOV 1994 08:49:57 gmt",
    ])
    func aDateOfEachFormIsRead(_ text: String) {
        #expect(lifetime(["Expires": text]) == .explicit(20_000_000))
    }

    @Test(arguments: [
        "0", "-1", "", "never", "Sun, 06 Nov 1994 08:49:57 UTC", "Sun, 06 Nov 1994 08:49:57 AEST",
        "Sun, 06 Nov 94 08:49:57 GMT", "Sun 06 Nov 1994 08:49:57 GMT", "Sun,  06 Nov 1994 08:49:57 GMT",
        "Sun, 06-Nov-1994 08:49:57 GMT", "Sun, 06 Nov 1994 08.49.57 GMT", "Sun, 06 Nov 1994 8:49:57 GMT",
        "Sun, 32 Nov 1994 08:49:57 GMT", "Sun, 06 Nov 1994 08:49:17 GMT",
    ])
    func aDateThatIsBrokenOrOverIsStale(_ text: String) {
        #expect(lifetime(["Expires": text]) == .explicit(0))
    }

    @Test func twoDatesThatDifferAreStale() {
        var headers: Headers = ["Expires": "Sun, 06 Nov 1994 08:49:57 GMT"]
        headers.append("Expires", "Sun, 06 Nov 1994 08:50:57 GMT")
        #expect(lifetime(headers) == .explicit(0))
        headers = ["Expires": "Fri, 31 Dec 9999 23:59:59 GMT", "Date": "not a date"]
        guard case .explicit(let time) = lifetime(headers) else { return #expect(Bool(false)) }
        #expect(time > 0)
    }

    /// RFC 9111, 4.2.2; RFC 9110, 15.1
    @Test func aHeuristicIsForTheseStatusesOnly() {
        let headers: Headers = [
            "Last-Modified": "Sat, 05 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:37 GMT",
        ]
        let statuses = (200..<600).filter { lifetime(headers, status: $0) != .unknown }
        #expect(statuses == [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501])
        var open = headers
        open["Cache-Control"] = "public"
        #expect(lifetime(open, status: 599) == .heuristic(8_640_000_000))
        open["Last-Modified"] = "Sun, 06 Nov 1904 08:49:37 GMT"
        #expect(lifetime(open) == .heuristic(86_400_000_000))
        open["Last-Modified"] = "Sun, 06 Nov 1994 09:49:37 GMT"
        #expect(lifetime(open) == .heuristic(0))
    }

    /// RFC 9111, 4.2.3
    @Test func theAgeIsWhatTheFieldsSayAndTheWayTook() {
        func age(_ headers: Headers, delay: Int64 = 0) -> Int64 {
            Freshness.initialAge(headers, requestTime: now - delay, responseTime: now)
        }
        #expect(age([:], delay: 1_500_000) == 1_500_000)
        #expect(age(["Age": "10"], delay: 1_500_000) == 11_500_000)
        #expect(age(["Age": "10", "Date": "Sun, 06 Nov 1994 08:49:07 GMT"]) == 30_000_000)
        #expect(age(["Date": "Sun, 06 Nov 1994 08:59:37 GMT"]) == 0)
        #expect(age([:], delay: -5) == 0)
    }

    /// RFC 9111, 5.1
    @Test(arguments: [
        ("7", 7), ("7, 9", 7), (" 7 ,x", 7), ("x, 7", 0), ("-7", 0), ("7.5", 0), ("", 0), ("7a", 0), ("7;x", 0),
        ("2147483649", 2_147_483_648), ("99999999999999999999", 2_147_483_648),
    ])
    func ofSeveralAgesTheFirstCounts(_ text: String, _ seconds: Int64) {
        #expect(Freshness.age(["Age": text]) == seconds)
    }

    @Test func aClockThatWasSetBackKnowsNoAge() {
        #expect(Freshness.currentAge(initial: 5, responseTime: 100, now: 107) == 12)
        #expect(Freshness.currentAge(initial: 5, responseTime: 100, now: 99) == nil)
        #expect(Freshness.currentAge(initial: .max, responseTime: 100, now: 107) == .max)
        #expect(Freshness.currentAge(initial: 0, responseTime: .min, now: .max) == nil)
    }
}
