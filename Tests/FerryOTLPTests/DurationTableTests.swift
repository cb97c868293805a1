import Dispatch
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

    /// Not only the last eight: each miss makes a key.
    @Test func seriesAreFoundWithoutTheirKeysHoweverManyAreInUse() {
        let table = DurationTable(OTLPConfiguration(), since: 0)
        for number in 0..<600 {
            let run = RunInfo(id: 1, method: number % 2 == 0 ? .get : .post, url: "http://host\(number % 60).test/x")
            table.record(.milliseconds(1), of: run, .finished(status: 200, isFromCache: false))
        }
        #expect(table.knownCount == 60)
    }

    @Test func aKnownSeriesIsFoundByAllOfItsParts() {
        var known = KnownSeries()
        func insert(_ origin: String, _ label: UInt64, _ series: Int, most: Int = 1000) {
            Array(origin.utf8).withUnsafeBytes { known.insert($0, 7, label, series, most: most) }
        }
        func number(of origin: String, _ label: UInt64) -> Int? {
            Array(origin.utf8).withUnsafeBytes { known.number(of: $0, 7, label) }
        }
        // The same hash for all, and each twice, as by two threads.
        for _ in 0..<2 {
            for host in 0..<100 { for label in 0..<3 { insert("http://h\(host)", UInt64(label), 3 * host + label) } }
        }
        #expect(known.count == 300)
        let found = (0..<300).compactMap { number(of: "http://h\($0 / 3)", UInt64($0 % 3)) }
        #expect(found == Array(0..<300))
        let others = [number(of: "http://h100", 0), number(of: "http://h1", 3), number(of: "http://h", 0)]
        #expect(others == [nil, nil, nil])
        // There is no end of them if most are counted as overflow.
        insert("http://x", 0, 7, most: 300)
        let left = [number(of: "http://x", 0), number(of: "http://h1", 0)]
        #expect(known.count == 1 && left == [7, nil])
    }

    @Test func whatThreadsRecordAtTheSameTimeIsAddedUp() throws {
        var configuration = OTLPConfiguration()
        configuration.maxSeries = 12
        let table = DurationTable(configuration, since: 0)
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for number in 0..<1000 {
                let run = RunInfo(id: 1, method: .get, url: "http://host\(number % 20).test/x")
                table.record(.milliseconds(thread + 1), of: run, .finished(status: 200, isFromCache: false))
            }
        }
        let points = try #require(table.metrics(at: 1).first).histogram.dataPoints
        #expect(points.count == 13)
        #expect(points.compactMap { Int($0.count) }.reduce(0, +) == 8000)
        #expect(abs(points.map(\.sum).reduce(0, +) - 36) < 1e-6)
        #expect(points.map(\.max) == Array(repeating: 0.008, count: 13))
    }

    /// More than 64 bits of nanoseconds.
    @Test func aSumMayBeLongerThanAnyRun() throws {
        let table = DurationTable(OTLPConfiguration(), since: 0)
        let series = DurationTable.Series(method: "GET", authority: "h", isSecure: false, status: 200)
        for _ in 0..<5 { table.record(.seconds(9_000_000_000), of: series) }
        let point = try #require(table.metrics(at: 1).first?.histogram.dataPoints.first)
        #expect(point.sum == 45e9 && point.max == 9e9 && point.count == "5")
    }

    private static func points(of table: DurationTable) throws -> [String] {
        try table.metrics(at: 1).flatMap(\.histogram.dataPoints)
            .map { String(decoding: try FerryJSONEncoder().encode($0), as: UTF8.self) }
            .sorted()
    }
}
