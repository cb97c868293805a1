import CFerry
import FerrySynchronization
import FerryTesting
import Testing

extension CoreTests {
    /// A cancel in every phase: one result, soon, with the phase of the cancel, and the socket closed.
    @Suite struct Cancels {
        private func expectCancelled(_ core: CoreLoop, _ id: UInt64, _ phase: Int, processed: Bool) async {
            let begin = ContinuousClock.now
            core.cancel(id)
            core.cancel(id)
            let result = await core.result(of: id)
            #expect(result.fault == .cancelled && result.phase == phase && result.isProcessed == processed)
            // 50 ms on an idle machine; one that waited for its phase to end would be here much later.
            #expect(ContinuousClock.now - begin < .seconds(5))
        }

        @Test func whileItConnects() async throws {
            var options = LoopbackServer.Options()
            options.accepting = .none
            try await withCore(server: options, probes: false) { core, server in
                let id = try core.submit(CoreRequest("GET", server.baseURL + "/"))
                await core.untilStatistics { $0.running == 1 }
                await expectCancelled(core, id, FERRY_PHASE_CONNECT, processed: false)
                // libcurl 7.88 closes such a socket silently; its number is used again and has to work.
                let other = try LoopbackServer()
                defer { other.stop() }
                for _ in 0..<10 {
                    let result = try await core.get(other.baseURL + "/hello")
                    #expect(result.fault == .ok)
                }
            }
        }

        @Test func insideTheHandshake() async throws {
            let certificate = try ServerCertificate()
            var options = CoreLoop.Options()
            options.caFile = certificate.authorityFile
            try await withCore(options, server: .init(certificate: certificate), probes: false) { core, server in
                server.script(connection: 1, [.stallHandshake])
                let id = try core.submit(CoreRequest("GET", server.baseURL + "/"))
                try await server.waitForReceivedBytes(1)
                await expectCancelled(core, id, FERRY_PHASE_TLS, processed: false)
            }
        }

        @Test func whileItSends() async throws {
            try await withCore(seesClose: false) { core, server in
                server.script(path: "/stop", [.stopReading, .keepOpen])
                let request = CoreRequest("PUT", server.baseURL + "/stop").with {
                    $0.body = .bytes(Array(repeating: 0, count: 20_000_000))
                }
                let id = try core.submit(request)
                try await server.waitForRequests(1)
                await expectCancelled(core, id, FERRY_PHASE_SEND, processed: true)
            }
        }

        @Test func insideTheHeadAndTheBody() async throws {
            try await withCore { core, server in
                server.script(path: "/head", [.send("HTTP/1.1 200 OK\r\nX-A: 1\r\n"), .mark("head"), .keepOpen])
                let head = try core.submit(CoreRequest("GET", server.baseURL + "/head"))
                try await server.waitForMark("head")
                // Eight of them may be served before the sockets are polled.
                for _ in 0..<20 { await core.turn() }
                core.cancel(head)
                let result = await core.result(of: head)
                #expect(result.fault == .cancelled && result.status == 200 && result.phase == FERRY_PHASE_HEAD)

                server.script(path: "/body", [.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), .keepOpen])
                let body = try core.submit(CoreRequest("GET", server.baseURL + "/body").with { $0.answer = .stream })
                await core.untilBody(body)
                await expectCancelled(core, body, FERRY_PHASE_BODY, processed: true)
                try await server.waitForOpenConnections(atMost: 0)
            }
        }

        @Test func fromWithinItsOwnCallbacks() async throws {
            try await withCore { core, server in
                let stream = try core.submit(
                    CoreRequest("GET", server.baseURL + "/bytes/5000000").with {
                        $0.answer = .stream
                        $0.onBody = { _ in
                            core.cancel(1)
                            return FERRY_CONTINUE
                        }
                    })
                let first = await core.result(of: stream)
                #expect(stream == 1 && first.fault == .cancelled)
                let upload = try core.submit(
                    CoreRequest("PUT", server.baseURL + "/upload").with {
                        $0.body = .pull(nil)
                        $0.onPull = { space in
                            core.cancel(2)
                            space.initializeMemory(as: UInt8.self, repeating: 0)
                            return space.count
                        }
                    })
                let second = await core.result(of: upload)
                #expect(upload == 2 && second.fault == .cancelled)
            }
        }

        @Test func aCancelRightBehindItsSubmit() async throws {
            try await withCore { core, server in
                for _ in 0..<500 {
                    let id = try core.submit(CoreRequest("GET", server.baseURL + "/hello"))
                    core.cancel(id)
                    let result = await core.result(of: id)
                    #expect(result.fault == .cancelled || result.fault == .ok)
                }
            }
        }

        /// Eight run at once, more only in place of those that have not returned for 30 ms, and never more than 128 for
        /// one domain.
        @Test func lookupsAreBoundedHoweverManyNamesHang() async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            let (stub, share) = (LookupStub.shared, 128)
            let names = (0..<share + 30).map { "many\($0).cancel.test" }
            let others = (0..<4).map { "other\($0).names.test" }
            for name in names { stub.set(name, ["127.0.0.1"], isHeld: true) }
            for name in others { stub.set(name, ["127.0.0.1"]) }
            try await withCore(options) { core, server in
                let start = ContinuousClock.now
                let ids = try names.map { try core.submit(CoreRequest("GET", "http://\($0):\(server.port)/hello")) }
                // Each lookup has a thread of its own, and they may arrive in any order.
                for name in names[..<share] { await stub.until(name, lookups: 1) }
                // The core measures in whole milliseconds.
                let begun = names.compactMap { stub.firstLookup($0) }.sorted()
                #expect(begun.count == share && begun[8] - start >= .milliseconds(29))
                // Names of another domain are looked up, and still none of this one.
                for name in others {
                    let id = try core.submit(CoreRequest("GET", "http://\(name):\(server.port)/hello"))
                    #expect(await core.result(of: id).fault == .ok)
                }
                #expect(names[share...].allSatisfy { stub.lookups($0) == 0 })
                for name in names { stub.release(name) }
                for result in await core.results(of: ids) { #expect(result.fault == .ok) }
            }
        }
    }
}
