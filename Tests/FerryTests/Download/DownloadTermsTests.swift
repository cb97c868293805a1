import FerryTesting
import Foundation
import Testing

@testable import Ferry

/// What a download keeps to: types, names, rates, and what it says of an earlier run.
@Suite(.timeLimit(.minutes(1))) struct DownloadTermsTests {
    @Test func aRateBelowAPieceOfTheSocketsHolds() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let began = ContinuousClock.now
            let file = try await agent.download(
                Get("/bytes/18000"), to: .file(folder.file("f")), options: DownloadOptions(bytesPerSecond: 5000))
            let took = ContinuousClock.now - began
            // What comes at once is paid for before the next: sixteen thousand bytes are three seconds.
            #expect(file.length == 18_000 && took > .seconds(2) && took < .seconds(5), "\(took)")
        }
    }
}
