import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Downloads that nobody awaits: row R74. For streams see `StreamReaderTests`.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct UnreadFaultTests {
    @Test("R74: a download that nobody awaits completes all the same", arguments: Form.download.ways)
    func forgottenDownload(way: Way) async throws {
        let place = try DownloadPlace()
        try await withFlow { server, agent in
            let probe = HTTPRequest.probe("/bytes/1000000?" + Canary.query)
            switch way {
            case .awaited: _ = Task { try await agent.download(probe, to: .file(place.target)) }
            case .closure: agent.download(probe, to: .file(place.target), completion: { _ in })
            }
            #expect(await eventually { place.bytes.count == 1_000_000 })
            #expect(place.bytes == LoopbackServer.pattern(0..<1_000_000))
        }
    }
}
