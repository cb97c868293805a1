import Ferry
import FerryJSON
import Testing

@testable import FerryOTLP

struct DurationTableTests {
    /// Many spellings of a few origins, more than are found without their key.
    private static let origins = [
        "http://a.test", "http://A.test", "http://a.test:80", "http://user:secret@a.test", "http://a.test:8080",
        "https://a.test", "https://a.test:443", "http://a.test.other", "http://a.tes", "http://[::1]:8080",
        "http://b.test", "http://c.test", "http://d.test", "http://e.test",
    ]
    private static let rests = ["", "/", "/x/y", "?q=1", "#part", "/@a.test"]

    @Test(arguments: [3, 2000]) func aRunIsCountedInTheSeriesOfItsKey(maxSeries: Int) throws {
        var configuration = OTLPConfiguration()
        configuration.maxSeries = maxSeries
        let (found, keyed) = (DurationTable(configuration, since: 0), DurationTable(configuration, since: 0))
        var random = SystemRandomNumberGenerator()
        let failure = RequestError(.dns, phase: .dns)
        for number in 0..<5000 {
            let url = Self.origins.randomElement(using: &random)! + Self.rests.randomElement(using: &random)!
            let method: HTTPMethod? = [.get, .get, .post, "PURGE", nil].randomElement(using: &random)!
            let run = RunInfo(id: UInt64(number), method: method, url: url)
            let outcome: RunOutcome = [
                .finished(status: 200, isFromCache: false), .finished(status: 204, isFromCache: false),
                .finished(status: nil, isFromCache: false), .failed(failure), .cancelled,
            ].randomElement(using: &random)!
            let duration = Duration.milliseconds(Int.random(in: 0...20_000, using: &random))
            found.record(duration, of: run, outcome)
            keyed.record(duration, of: DurationTable.Series(run, outcome))
        }
        let counted = try Self.points(of: found)
        #expect(try counted == Self.points(of: keyed))
        #expect(maxSeries == 3 ? counted.count == 4 : counted.count > 100)
    }

    private static func points(of table: DurationTable) throws -> [String] {
        try table.metrics(at: 1).flatMap(\.histogram.dataPoints)
            .map { String(decoding: try FerryJSONEncoder().encode($0), as: UTF8.self) }
            .sorted()
    }
}
