import CFerry
import FerryTesting
import Testing

extension CoreTests {
    /// What a loop remembers and keeps is bounded, whatever happened before.
    @Suite struct Bounds {
        @Test func hostsBesideSomeThatAreBusy() async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            let names = (0..<8).map { "busy\($0).bounds.test" }
            for name in names { LookupStub.shared.set(name, ["127.0.0.1"], isHeld: true) }
            try await withCore(options) { core, server in
                let busy = try names.map { try core.submit(CoreRequest("GET", "http://\($0):\(server.port)/hello")) }
                await core.untilStatistics { $0.resolving == 8 }
                for part in 0..<12 {
                    // Refused: nobody listens on these local addresses.
                    let ids = try (0..<250).map { host in
                        try core.submit(CoreRequest("GET", "http://127.1.\(part).\(host):\(server.port)/"))
                    }
                    _ = await core.results(of: ids)
                }
                await core.turn()
                // A new host evicts idle ones above 256. Those that were busy at the same time remain.
                #expect(core.statistics.hosts <= 256 + 250 + 8, "\(core.statistics.hosts)")
                for name in names { LookupStub.shared.release(name) }
                for result in await core.results(of: busy) { #expect(result.fault == .ok) }
            }
        }

        @Test func blocksOfBodiesThatFail() async throws {
            var options = CoreLoop.Options()
            options.maxPerHost = 100
            try await withCore(options) { core, server in
                server.script(
                    path: "/half",
                    [.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"), .pattern(bytes: 10_000), .keepOpen])
                let ids = try (0..<100).map { _ in
                    try core.submit(
                        CoreRequest("GET", server.baseURL + "/half").with { $0.flags.insert(.notifyHead) })
                }
                for id in ids { await core.untilHead(id) }
                for _ in 0..<10 { await core.turn() }
                for id in ids { core.cancel(id) }
                _ = await core.results(of: ids)
                await core.turn()
                // Blocks of 1 MB, of which a loop keeps eight.
                #expect(core.statistics.kept_bytes < 16 * 1_048_576, "\(core.statistics.kept_bytes)")
            }
        }
    }
}
