import FerryTesting
import Testing

@testable import FerryBenchmarks

/// The client that all others are compared with.
@Suite struct BareRivalTests {
    private static func run(_ path: String, _ total: Int, _ concurrency: Int, length: Int) async throws -> Measurement {
        let server = try LoopbackServer()
        defer { server.stop() }
        return try BareRival.run(
            Load(url: server.baseURL + path, total: total, concurrency: concurrency, length: length))
    }

    @Test(arguments: [(1, 50, 1), (64, 500, 64), (200, 1000, 64)])
    func itSendsAllAndLooksAtEach(concurrency: Int, total: Int, connections: UInt64) async throws {
        let measurement = try await Self.run("/bytes/1000", total, concurrency, length: 1000)
        #expect(measurement.ok == UInt64(total) && measurement.wrong == 0 && measurement.failed == 0)
        #expect(try #require(measurement.connections) <= connections)
        #expect(measurement.p99 >= measurement.p50 && measurement.p50 > 0)
    }

    @Test func whatIsNotAsExpectedIsWrong() async throws {
        #expect(try await Self.run("/bytes/1000", 10, 2, length: 999).wrong == 10)
        #expect(try await Self.run("/status/404", 10, 2, length: 0).wrong == 10)
    }

    @Test func whereNobodyListensAllFail() async throws {
        let server = try LoopbackServer()
        let url = server.baseURL
        server.stop()
        let measurement = try BareRival.run(Load(url: url + "/", total: 10, concurrency: 4, length: 0))
        #expect(measurement.failed == 10)
    }
}
