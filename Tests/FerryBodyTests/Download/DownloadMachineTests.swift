import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The meaning of responses, without a network.
@Suite struct DownloadMachineTests {
    private typealias Machine = DownloadMachine
    private let rest = DownloadMachine.Question(offset: 5, validator: .entityTag("\"v1\""), total: 10)

    private func answered(
        _ status: Int, _ headers: Headers = [:], length: Int64? = nil, to question: DownloadMachine.Question,
        isAccepted: Bool = true
    ) -> DownloadMachine.Action {
        DownloadMachine.answered(
            status: status, headers, contentLength: length, to: question, isAccepted: isAccepted)
    }

    @Test func aWholeFileBeginsAtZeroWhateverWasAsked() {
        for question in [Machine.Question(), rest] {
            #expect(answered(200, length: 10, to: question) == .take(from: 0, length: 10, total: 10))
            // Also one that is as long as the local part.
            #expect(answered(200, length: 5, to: question) == .take(from: 0, length: 5, total: 5))
            #expect(answered(200, to: question) == .take(from: 0, length: nil, total: nil))
        }
        // A body that is decoded has no known length.
        #expect(
            answered(200, ["Content-Encoding": "gzip"], length: 10, to: rest) == .take(from: 0, length: nil, total: nil)
        )
        #expect(
            answered(200, ["Content-Encoding": "identity"], length: 9, to: rest) == .take(from: 0, length: 9, total: 9))
    }

    @Test func theRestIsTaken() {
        let taken = Machine.Action.take(from: 5, length: 5, total: 10)
        func part(_ range: String) -> Headers { ["Content-Range": range, "ETag": "\"v1\""] }
        #expect(answered(206, part("bytes 5-9/10"), length: 5, to: rest) == taken)
        #expect(answered(206, part("bytes 5-9/10"), to: rest) == taken, "chunked")
        #expect(answered(206, part("BYTES 5-9/*"), length: 5, to: rest) == taken, "the total is known")
        var unknown = rest
        unknown.validator = nil
        #expect(answered(206, ["Content-Range": "bytes 5-9/10"], length: 5, to: unknown) == taken, "none was known")
        #expect(
            answered(206, ["Content-Range": "bytes 0-9/10"], length: 10, to: Machine.Question())
                == .take(from: 0, length: 10, total: 10))
    }

    @Test(arguments: [
        ("bytes 0-7/10", Machine.Mismatch.otherRange), ("bytes 4-9/10", .otherRange), ("bytes 6-9/10", .otherRange),
        ("bytes 5-8/10", .otherRange), ("bytes 5-9/11", .otherTotal), ("bytes 5-10/11", .otherTotal),
        ("bytes 5-10/10", .unreadable), ("bytes 5-9", .unreadable), ("items 5-9/10", .unreadable),
        ("bytes 9-5/10", .unreadable), ("bytes */10", .unreadable), ("bytes 5-9/1e1", .unreadable), ("", .unreadable),
        ("bytes -5-9/10", .unreadable), ("bytes 5-9/99999999999999999999", .unreadable),
    ])
    func anotherRangeBeginsAnew(range: String, why: DownloadMachine.Mismatch) {
        #expect(answered(206, ["Content-Range": range], to: rest) == .restart(why))
        #expect(answered(206, ["Content-Range": range], to: Machine.Question()) != .take(from: 0, length: 5, total: 10))
    }

    @Test func noRangeTwoRangesAndAnEncodedOne() {
        #expect(answered(206, to: rest) == .restart(.unreadable))
        let two: Headers = ["Content-Range": "bytes 5-9/10", "content-range": "bytes 5-9/10"]
        #expect(answered(206, two, to: rest) == .restart(.unreadable))
        let encoded: Headers = ["Content-Range": "bytes 5-9/10", "Content-Encoding": "gzip"]
        #expect(answered(206, encoded, length: 5, to: rest) == .restart(.encoded))
    }

    @Test func anotherVersionBeginsAnew() {
        for tag in ["\"v2\"", "W/\"v1\"", "v1"] {
            let headers: Headers = ["Content-Range": "bytes 5-9/10", "ETag": tag]
            #expect(answered(206, headers, length: 5, to: rest) == .restart(.otherVersion), "\(tag)")
        }
        let dated = Machine.Question(offset: 5, validator: .lastModified("Mon, 01 Jan 2024 00:00:00 GMT"), total: 10)
        let later: Headers = [
            "Content-Range": "bytes 5-9/10", "Last-Modified": "Mon, 01 Jan 2024 00:00:01 GMT",
        ]
        #expect(answered(206, later, length: 5, to: dated) == .restart(.otherVersion))
    }

    @Test("A part without the validator of the others is not combined with them (RFC 9110, 15.3.7.3)")
    func aPartOfAnUnknownVersionBeginsAnew() {
        let modified = "Mon, 01 Jan 2024 00:00:00 GMT"
        let taken = Machine.Action.take(from: 5, length: 5, total: 10)
        for end in [nil, 10] as [Int64?] {
            let tagged = Machine.Question(offset: 5, end: end, validator: .entityTag("\"v1\""), total: 10)
            var headers: Headers = ["Content-Range": "bytes 5-9/10"]
            #expect(answered(206, headers, length: 5, to: tagged) == .restart(.unknownVersion))
            headers["Last-Modified"] = modified
            #expect(answered(206, headers, length: 5, to: tagged) == .restart(.unknownVersion))
            headers["ETag"] = "\"v1\""
            #expect(answered(206, headers, length: 5, to: tagged) == taken)
            // A part that was requested with `If-Range` does not repeat the date (15.3.7).
            let dated = Machine.Question(offset: 5, end: end, validator: .lastModified(modified), total: 10)
            #expect(answered(206, ["Content-Range": "bytes 5-9/10"], length: 5, to: dated) == taken)
            #expect(answered(206, headers, length: 5, to: dated) == taken)
        }
    }

    @Test func whoContradictsHimselfIsNotAskedAgain() {
        #expect(answered(206, ["Content-Range": "bytes 5-9/10"], length: 50, to: rest) == .fail(.contradiction))
        #expect(answered(206, ["Content-Range": "bytes 5-9/10"], length: 4, to: rest) == .fail(.contradiction))
        // Without a range there is nothing else to request.
        #expect(
            answered(206, ["Content-Range": "bytes 5-9/10"], length: 5, to: Machine.Question()) == .fail(.otherRange))
        #expect(answered(206, to: Machine.Question()) == .fail(.unreadable))
    }

    @Test func nothingBehindTheLastByteIsTheWholeFile() {
        let all = Machine.Question(offset: 10, validator: .entityTag("\"v1\""), total: 10)
        let same: Headers = ["Content-Range": "bytes */10", "ETag": "\"v1\""]
        #expect(answered(416, same, to: all, isAccepted: false) == .complete)
        #expect(answered(416, ["Content-Range": "bytes */10"], to: all, isAccepted: false) == .complete)
        #expect(answered(416, ["Content-Range": "bytes */11"], to: all, isAccepted: false) == .restart(.unsatisfiable))
        #expect(answered(416, ["Content-Range": "bytes */10"], to: rest, isAccepted: false) == .restart(.unsatisfiable))
        #expect(answered(416, to: all, isAccepted: false) == .restart(.unsatisfiable))
        let other: Headers = ["Content-Range": "bytes */10", "ETag": "\"v2\""]
        #expect(answered(416, other, to: all, isAccepted: false) == .restart(.unsatisfiable))
        // Without a requested range this is an error.
        #expect(answered(416, ["Content-Range": "bytes */10"], to: .init(), isAccepted: false) == .other)
    }

    @Test func whatIsNotAcceptedIsNoFile() {
        for status in [204, 404, 500, 206, 200] { #expect(answered(status, to: rest, isAccepted: false) == .other) }
        for status in [301, 304] { #expect(answered(status, to: rest) == .other) }
    }

    @Test func aSegmentIsNothingButItself() {
        let piece = Machine.Question(offset: 2, end: 6, validator: .entityTag("\"v1\""), total: 10)
        #expect(piece.range == "bytes=2-5")
        #expect(
            answered(206, ["Content-Range": "bytes 2-5/10", "ETag": "\"v1\""], length: 4, to: piece)
                == .take(from: 2, length: 4, total: 10))
        #expect(answered(206, ["Content-Range": "bytes 2-9/10"], length: 8, to: piece) == .restart(.otherRange))
        #expect(answered(200, length: 10, to: piece) == .restart(.ignoredRange))
        #expect(answered(416, ["Content-Range": "bytes */10"], to: piece) == .restart(.unsatisfiable))
    }

    @Test func theFirstPieceTellsHowMuchThereIs() {
        let first = Machine.Question(end: 4, isFirst: true)
        #expect(first.range == "bytes=0-3")
        #expect(
            answered(206, ["Content-Range": "bytes 0-3/10"], length: 4, to: first)
                == .take(from: 0, length: 4, total: 10))
        // There may be fewer.
        #expect(
            answered(206, ["Content-Range": "bytes 0-2/3"], length: 3, to: first) == .take(from: 0, length: 3, total: 3)
        )
        #expect(answered(200, length: 10, to: first) == .take(from: 0, length: 10, total: 10))
        #expect(answered(416, ["Content-Range": "bytes */0"], to: first, isAccepted: false) == .restart(.unsatisfiable))
        for range in ["bytes 0-2/10", "bytes 0-9/10", "bytes 1-4/10"] {
            #expect(answered(206, ["Content-Range": range], to: first) == .restart(.otherRange), "\(range)")
        }
        #expect(answered(206, ["Content-Range": "bytes 0-3/*"], to: first) == .restart(.unreadable))
    }

    @Test func onlyStrongValidatorsCount() {
        #expect(ResumeValidator(["ETag": "\"a\""]) == .entityTag("\"a\""))
        for tag in ["W/\"a\"", "a", "\"a", "\"", "\"a\"b\""] {
            #expect(ResumeValidator(["ETag": tag]) == nil, "\(tag)")
        }
        let modified = "Mon, 01 Jan 2024 00:00:00 GMT"
        #expect(
            ResumeValidator(["Last-Modified": modified, "Date": "Mon, 01 Jan 2024 00:01:00 GMT"])
                == .lastModified(modified))
        #expect(ResumeValidator(["Last-Modified": modified, "Date": "Mon, 01 Jan 2024 00:00:59 GMT"]) == nil)
        #expect(ResumeValidator(["Last-Modified": modified]) == nil)
        // A date does not make up for a weak tag (RFC 9110, 13.1.5).
        #expect(
            ResumeValidator([
                "ETag": "W/\"a\"", "Last-Modified": modified, "Date": "Mon, 01 Jan 2024 00:01:00 GMT",
            ]) == nil)
    }
}
