import CFerry
import CWatches
import FerryTesting
import Foundation
import Testing

extension CoreTests {
    /// Sockets that the system cannot watch: their users would get no events.
    @Suite(.enabled(if: watches_are_refused())) struct Unwatched {
        /// If it takes longer than this, a limit has ended it.
        private let patience = 10_000

        private func get(_ url: String) -> CoreRequest { CoreRequest("GET", url).with { $0.idle = patience } }

        @Test func aConnectThatIsNotWatchedEndsAtOnce() async throws {
            try await withCore { core, server in
                for _ in 0..<3 {
                    watches_refuse_next()
                    let result = try await core.run(get(server.baseURL + "/hello"))
                    #expect(watches_refused())
                    #expect(result.fault == CoreFault(FERRY_E_CONNECT, FERRY_D_CONNECT_FAILED))
                    #expect(result.osErrno == ENOSPC && result.phase == FERRY_PHASE_CONNECT)
                    #expect(!result.isProcessed && result.attempts == 0)
                    let next = try await core.run(get(server.baseURL + "/hello"))
                    #expect(next.text == "Hello, ferry")
                    // So that the next one has to connect.
                    _ = try await core.run(get(server.baseURL + "/close"))
                }
            }
        }

        @Test func whoRunsBesideItGoesOn() async throws {
            try await withCore { core, server in
                server.script(path: "/hold", [.expectHead, .mark("held"), .wait("go"), .send(answer("held")), .serve])
                let held = try core.submit(get(server.baseURL + "/hold"))
                try await server.waitForMark("held")
                await core.turn()  // which now watches it for the response only
                watches_refuse_next()
                let result = try await core.run(get(server.baseURL + "/hello"))
                #expect(result.code == FERRY_E_CONNECT && watches_refused())
                server.signal("go")
                #expect(await core.result(of: held).text == "held")
            }
        }

        /// It is already watched for a response, but the upload would not continue.
        @Test func aKeptConnectionThatIsNotWatchedEndsAtOnceToo() async throws {
            try await withCore { core, server in
                for _ in 0..<3 {
                    #expect(try await core.run(get(server.baseURL + "/hello")).text == "Hello, ferry")
                    watches_refuse_next()
                    var put = CoreRequest("PUT", server.baseURL + "/upload").with { $0.idle = patience }
                    put.body = .bytes([UInt8](repeating: 0x61, count: 30_000_000))
                    let result = try await core.run(put)
                    #expect(watches_refused())
                    #expect(result.fault == CoreFault(FERRY_E_INTERNAL))
                    #expect(result.osErrno == ENOSPC && result.isProcessed && result.attempts == 1)
                    #expect(result.phase == FERRY_PHASE_SEND)
                }
            }
        }
    }
}
