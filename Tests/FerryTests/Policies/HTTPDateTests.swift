import Foundation
import Testing

@testable import Ferry

@Suite struct HTTPDateTests {
    private let now = HTTPDate(secondsSince1970: 1_795_000_000)  // in November 2026

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Mon, 06 Nov 1994 08:49:37 GMT",
    ])
    func threeFormsAreRead(_ text: String) throws {
        let date = try #require(HTTPDate(text, now: now))
        #expect(date.secondsSince1970 == 784_111_777)
        #expect(date.description == "Sun, 06 Nov 1994 08:49:37 GMT")
    }

    @Test(arguments: [
        "", "0", "GMT", "Sun", "Sun, ", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT ", " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT", "Tue, 29 Feb 2023 00:00:00 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov-94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "Sun Nov 06  08:49:37 1994",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 -8:49:37 GMT", "Sun, ٠٦ Nov 1994 08:49:37 GMT", "\u{0}", "2026-11-20T21:00:00Z",
        "Sun, 06 Nov 1994 08:49:37 GMT\u{0}", "Sunday, 06-Nov-94 08:49:37",
    ])
    func whatIsNoDateIsNone(_ text: String) {
        #expect(HTTPDate(text, now: now) == nil)
    }

    @Test func leapSecondIsTheSecondBefore() throws {
        let leap = try #require(HTTPDate("Sat, 31 Dec 2016 23:59:60 GMT", now: now))
        #expect(leap.description == "Sat, 31 Dec 2016 23:59:59 GMT")
    }

    @Test(arguments: [("26", 2026), ("76", 2076), ("77", 1977), ("94", 1994), ("00", 2000)])
    func shortYearIsAtMostFiftyYearsAhead(_ digits: String, _ year: Int) throws {
        let date = try #require(HTTPDate("Sunday, 06-Nov-\(digits) 08:49:37 GMT", now: now))
        #expect(date.description.contains(" \(year) "))
    }

    @Test func agreesWithFoundation() throws {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        var seconds: Int64 = -2_000_000_000
        while seconds < 8_000_000_000 {
            let text = HTTPDate(secondsSince1970: seconds).description
            #expect(text == formatter.string(from: Date(timeIntervalSince1970: Double(seconds))))
            #expect(HTTPDate(text, now: now)?.secondsSince1970 == seconds)
            seconds += 10_000_019
        }
    }

    @Test func everyDayOfFourCenturiesComesBack() {
        for day in Int64(-134_774)...Int64(11_323) {
            let date = HTTPDate(secondsSince1970: day * 86400)
            guard HTTPDate(date.description, now: now) == date else {
                Issue.record("day \(day): \(date)")
                return
            }
        }
    }

    @Test(arguments: [
        "Sat, 01 Jan 0000 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Tue, 29 Feb 2000 00:00:00 GMT",
    ])
    func outermostYearsComeBack(_ text: String) throws {
        #expect(try #require(HTTPDate(text, now: now)).description == text)
    }
}
