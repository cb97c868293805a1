import FerryJSON
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct DownloadMetadataTests {
    private let url = "http://h/f?token=secret"

    private func written(_ change: (inout DownloadMetadata) -> Void) -> [UInt8] {
        var metadata = DownloadMetadata(url: url)
        metadata.validator = .entityTag("\"v\"")
        metadata.total = 10
        change(&metadata)
        return metadata.bytes
    }

    @Test func itIsReadAsItWasWritten() {
        var metadata = DownloadMetadata(url: url)
        metadata.validator = .lastModified("Mon, 01 Jan 2024 00:00:00 GMT")
        metadata.total = 10
        metadata.name = "f.txt"
        metadata.segments = [.init(start: 0, end: 5, written: 2), .init(start: 5, end: 10)]
        #expect(DownloadMetadata(metadata.bytes) == metadata && metadata.isOf(url: url))
        #expect(metadata.received(10) == 2)
    }

    /// Used to resume a part after an update.
    @Test func theFormStays() throws {
        let text = """
            {"segments":[{"end":4,"start":0,"written":4},{"end":9,"start":4,"written":1}],"total":9,"name":"f",
            "url":"http://h/f","urlDigest":"ab","validator":{"entityTag":{"_0":"\\"v\\""}},"version":1}
            """
        let found = try #require(DownloadMetadata(Array(text.utf8)))
        #expect(found.validator == .entityTag("\"v\"") && found.total == 9 && found.name == "f")
        #expect(found.segments == [.init(start: 0, end: 4, written: 4), .init(start: 4, end: 9, written: 1)])
        #expect(try JSON(parsing: found.bytes) == JSON(parsing: text))
        #expect(DownloadMetadata(Array(text.replacing("\"version\":1", with: "\"version\":2").utf8)) == nil)
    }

    @Test func noSecretStandsInIt() {
        #expect(!String(decoding: written { _ in }, as: UTF8.self).contains("secret"))
    }

    @Test func anotherURLAndDamagedOnesAreNotUsed() {
        let good = written { _ in }
        #expect(DownloadMetadata(good) != nil)
        #expect(DownloadMetadata(good)?.isOf(url: url + "2") == false)
        for length in 0..<good.count - 1 { #expect(DownloadMetadata(Array(good.prefix(length))) == nil) }
        #expect(DownloadMetadata(written { $0.name = "../x" }) == nil)
        #expect(DownloadMetadata(written { $0.total = -1 }) == nil)
        // Values that no response can have produced.
        for validator: ResumeValidator in [
            .entityTag("W/\"v\""), .entityTag("v"), .entityTag("\"a\r\nX: y\""), .entityTag(""),
            .lastModified("yesterday"),
            .lastModified("Mon, 01 Jan 2024 00:00:00 GMT\r\nX: y"),
        ] {
            #expect(DownloadMetadata(written { $0.validator = validator }) == nil, "\(validator)")
        }
        let segments: [[DownloadMetadata.Segment]] = [
            [], [.init(start: 0, end: 9)], [.init(start: 0, end: 5), .init(start: 6, end: 10)],
            [.init(start: 0, end: 10, written: 11)], [.init(start: 0, end: 10, written: -1)],
            [.init(start: 0, end: 0), .init(start: 0, end: 10)],
        ]
        for segments in segments { #expect(DownloadMetadata(written { $0.segments = segments }) == nil) }
    }
}

@Suite struct RateEstimateTests {
    @Test func theRateIsOfTheLastSeconds() {
        var rate = RateEstimate()
        let second: UInt64 = 1_000_000_000
        rate.begin(500, now: second)
        #expect(rate.rate(500, now: second) == 0)
        for step in 1...10 { rate.count(500 + Int64(step) * 100, now: second * UInt64(1 + step)) }
        #expect(rate.rate(1500, now: second * 11) == 100)
        // No more bytes arrive: it falls.
        #expect(rate.rate(1500, now: second * 16) < 60)
        for step in 11...20 { rate.count(1500, now: second * UInt64(1 + step)) }
        #expect(rate.rate(1500, now: second * 21) == 0)
    }
}
