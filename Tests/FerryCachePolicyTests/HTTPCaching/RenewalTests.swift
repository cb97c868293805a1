import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// When a 304 is only a new date (RFC 9111, 3.2).
@Suite struct RenewalTests {
    private static let usual = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let later = "Sun, 06 Nov 1994 09:49:37 GMT"

    private func result(_ status: Int, _ fields: [(String, String)], body: String = "") throws -> TransferResult {
        let head = fields.reduce("HTTP/1.1 \(status) \r\n") { $0 + "\($1.0): \($1.1)\r\n" } + "\r\n"
        return try TransferResult(id: 1, head: Array(head.utf8), body: Array(body.utf8))
    }

    private func stored(_ more: [(String, String)] = []) throws -> TransferResult {
        try result(
            200, [("Date", Self.usual), ("ETag", "\"a\""), ("Cache-Control", "max-age=60"), ("X-A", "1")] + more,
            body: "stored")
    }

    /// The fields of a 304, and how many of the stored ones get another value; `nil` if it is no renewal.
    private static let cases: [(fields: [(String, String)], changes: Int?)] = [
        ([("Date", usual)], 0), ([("Date", later)], 1), ([("date", later), ("etag", "\"a\"")], 1),
        ([("ETag", "\"a\""), ("Cache-Control", "max-age=60"), ("X-A", "1"), ("Date", later)], 1),
        ([("Date", later), ("Connection", "keep-alive"), ("Keep-Alive", "timeout=5"), ("Content-Length", "7")], 1),
        ([("Date", later), ("Set-Cookie", "a=b"), ("Content-Encoding", "gzip"), ("Connection", "Close")], 1),
        ([], nil), ([("ETag", "\"a\"")], nil), ([("Date", "now")], nil), ([("Date", usual), ("Date", usual)], nil),
        ([("Date", "Sunday, 06-Nov-94 08:49:37 GMT")], nil), ([("Date", later), ("ETag", "\"b\"")], nil),
        ([("Date", later), ("Cache-Control", "max-age=61")], nil), ([("Date", later), ("X-B", "1")], nil),
        ([("Date", later), ("X-A", "1"), ("X-A", "1")], nil), ([("Date", later), ("Age", "1")], nil),
        ([("Date", later), ("Connection", "X-A"), ("X-A", "1")], nil), ([("Date", later), ("Vary", "X-A")], nil),
        ([("Date", later), ("Expires", later)], nil),
    ]

    @Test(arguments: cases.indices) func onlyDatesMayDiffer(index: Int) throws {
        let (fields, changes) = Self.cases[index]
        let (old, new) = (try stored(), try result(304, fields))
        #expect(Renewal.applies(to: old, ResponseDirectives(Headers(old))))
        #expect(Renewal(of: old, by: new)?.changes.count == changes, "\(fields)")
    }

    @Test func theExpiresFieldIsOverwrittenToo() throws {
        let old = try stored([("Expires", Self.usual)])
        let new = try result(304, [("Date", Self.later), ("Expires", Self.later)])
        let renewal = try #require(Renewal(of: old, by: new))
        let made = try #require(TransferResult(revising: old, renewal.changes))
        #expect(Headers(made)["Date"] == Self.later && Headers(made)["Expires"] == Self.later)
        #expect(Headers(old)["Date"] == Self.usual && Headers(made)["X-A"] == "1")
        #expect(try Renewal(of: old, by: result(304, [("Date", Self.later), ("Expires", "0")])) == nil)
    }

    @Test func theSame304AgainNeedsNoComparison() throws {
        let (old, new) = (try stored(), try result(304, [("Date", Self.usual), ("ETag", "\"a\"")]))
        let renewal = try #require(Renewal(of: old, by: new))
        let confirmation = try #require(Confirmation(renewal, by: new))
        let again = try result(304, [("Date", Self.usual), ("ETag", "\"a\"")])
        #expect(confirmation.renewal(by: again)?.date == renewal.date)
        for other in [[("Date", Self.usual), ("ETag", "\"b\"")], [("Date", Self.later), ("ETag", "\"a\"")], []] {
            #expect(confirmation.renewal(by: try result(304, other)) == nil)
        }
        // It belongs to a user, or is large.
        for more in [("Set-Cookie", "s=1"), ("X-Large", String(repeating: "x", count: 1024))] {
            let other = try result(304, [("Date", Self.usual), ("ETag", "\"a\""), more])
            if let renewal = Renewal(of: old, by: other) { #expect(Confirmation(renewal, by: other) == nil) }
        }
        // A change is no confirmation.
        let later = try result(304, [("Date", Self.later)])
        #expect(Confirmation(try #require(Renewal(of: old, by: later)), by: later) == nil)
    }

    @Test func otherChangesAreMadeFieldByField() throws {
        for more in [[("X-A", "2")], [("Cache-Control", "no-cache=\"x-a\"")], [("Cache-Control", "private=\"x-a\"")]] {
            let old = try stored(more)
            #expect(!Renewal.applies(to: old, ResponseDirectives(Headers(old))), "\(more)")
        }
        let undated = try result(200, [("ETag", "\"a\"")])
        #expect(!Renewal.applies(to: undated, ResponseDirectives(Headers())))
        let many = try result(200, [("Date", Self.usual)] + (0..<64).map { ("X-\($0)", "1") })
        #expect(!Renewal.applies(to: many, ResponseDirectives(Headers())))
    }

    /// The body is that of the first, which may be gone.
    @Test func aRenewedResultOutlivesItsSources() throws {
        func renewed() throws -> TransferResult {
            var last = try stored()
            for hour in 10..<20 {
                let new = try result(304, [("Date", "Sun, 06 Nov 1994 \(hour):49:37 GMT")])
                let renewal = try #require(Renewal(of: last, by: new))
                last = try #require(TransferResult(revising: last, renewal.changes))
            }
            return last
        }
        let last = try renewed()
        #expect(String(decoding: last.body, as: UTF8.self) == "stored" && last.status == 200)
        #expect(Headers(last)["Date"] == "Sun, 06 Nov 1994 19:49:37 GMT")
        let other = [TransferResult.FieldChange(index: 3, value: UnsafeRawBufferPointer(start: nil, count: 0))]
        #expect(TransferResult(revising: last, other) == nil)
        let missing = [TransferResult.FieldChange(index: 4, value: last.body)]
        #expect(TransferResult(revising: last, missing) == nil)
    }

    @Test func theUsualFormOfADateIsParsedLikeTheOthers() {
        for seconds in stride(from: -60_000_000_000, through: 250_000_000_000 as Int64, by: 7_654_321_987) {
            let date = HTTPDate(secondsSince1970: seconds)
            let text = date.description
            #expect(HTTPDate(text, now: date) == date)
            #expect(Array(text.utf8).withUnsafeBytes { HTTPDate(usual: $0) } == date)
        }
        for text in [
            "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun; 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, +6 Nov 1994 08:49:37 GMT", "",
        ] { #expect(Array(text.utf8).withUnsafeBytes { HTTPDate(usual: $0) } == nil, "\(text)") }
        #expect(HTTPDate("sun, 06 nov 1994 08:49:37 gmt", now: HTTPDate(secondsSince1970: 0), ignoresCase: true) != nil)
    }
}
