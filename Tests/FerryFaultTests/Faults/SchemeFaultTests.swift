import FaultTable
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// URLs of files: rows R34 and R45. No file is opened for them in any way, as the kernel confirms.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct SchemeFaultTests {
    /// Notations of such URLs.
    private static let schemes = ["file://", "FILE://", "file:", "file://localhost", "file:///..", "fIlE:////"]

    @Test("The kernel reports a file that is opened")
    func opensAreSeen() throws {
        let watch = try FileWatch()
        #expect(!watch.wasOpened)
        for _ in 0..<3 {
            _ = FileManager.default.contents(atPath: watch.path)
            #expect(watch.wasOpened && !watch.wasOpened)
        }
    }

    @Test("R34: a file that a redirect points to is not opened", arguments: schemes, [302, 307])
    func redirectToAFile(scheme: String, status: Int) async throws {
        let watch = try FileWatch()
        try await withFlow { server, agent in
            server.script(path: "/x", unwanted(status, "Location: \(scheme)\(watch.path)\r\n"))
            for outcome in try await agent.outcomes(of: Get("/x")) {
                let code = try #require(outcome.error).code
                #expect(code == .redirectForbidden(.scheme))
            }
            #expect(server.requestCount == Play.allCases.count)
        }
        #expect(!watch.wasOpened)
    }

    /// Without slashes it is a path below the base URL.
    @Test("R45: nor is a requested one", arguments: schemes.filter { $0.contains("//") })
    func fileAsURL(scheme: String) async throws {
        let watch = try FileWatch()
        try await withFlow { server, agent in
            for base in [nil, server.baseURL] {
                var probe = HTTPRequest(.get, scheme + watch.path)
                probe.baseURL = base
                for outcome in try await agent.outcomes(of: probe) {
                    #expect(try #require(outcome.error).code == .unsupportedScheme)
                }
            }
            #expect(server.connectionCount == 0)
        }
        #expect(!watch.wasOpened)
    }
}
