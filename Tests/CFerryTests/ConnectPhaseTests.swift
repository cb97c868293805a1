import CFerry
import FerryTesting
import Glibc
import Testing

extension CoreTests {
    /// Which socket determines the phase of a connect.
    @Suite struct ConnectPhases {
        /// Stream sockets only: lookups left over from other tests open and close some of other kinds.
        private func openSockets() -> Set<Int32> {
            var kind = Int32(0)
            return Set(
                (0..<Int32(1024)).filter { descriptor in
                    var length = socklen_t(MemoryLayout<Int32>.size)
                    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &length) == 0
                        && kind == Int32(SOCK_STREAM.rawValue)
                })
        }

        private func family(_ descriptor: Int32) -> Int32 {
            var address = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            return withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
            } == 0 ? Int32(address.ss_family) : -1
        }

        /// Sockets of [::1] and this port: one listens, but never responds to further connections.
        private func deafListener(port: UInt16) throws -> [Int32] {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_addr = in6addr_loopback
            func onAddress(_ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
                withUnsafePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        call($0, socklen_t(MemoryLayout<sockaddr_in6>.size))
                    }
                }
            }
            let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
            let sockets = (0..<4).map { _ in socket(AF_INET6, type, 0) }
            try #require(onAddress { bind(sockets[0], $0, $1) } == 0)
            try #require(listen(sockets[0], 0) == 0)
            for descriptor in sockets.dropFirst() { _ = onAddress { connect(descriptor, $0, $1) } }
            return sockets
        }

        /// libcurl 7.88 silently closes a socket that never got connected. Its record outlives the shard of its
        /// transfer, which closes when it has been idle; the next socket has its number.
        @Test func whoUsedASocketThatWasClosedWithoutTellingIsForgotten() async throws {
            var options = CoreLoop.Options()
            options.engine = FERRY_ENGINE_LIBCURL
            options.idle = 30
            options.usesLookupStub = true
            LookupStub.shared.set("deaf.phases.test", ["::1"])
            var serverOptions = LoopbackServer.Options()
            serverOptions.accepting = .none
            let other = try LoopbackServer(serverOptions)  // whose port has no listener at [::1]
            defer { other.stop() }
            let deaf = try deafListener(port: other.port)
            defer { for descriptor in deaf { close(descriptor) } }
            try await withCore(options) { core, server in
                for isCancelled in [true, false, true] {
                    let id = try core.submit(
                        CoreRequest("GET", "http://deaf.phases.test:\(other.port)/").with {
                            if !isCancelled { $0.connect = 20 }
                        })
                    if isCancelled {
                        await core.untilStatistics { $0.handles == 1 }
                        core.cancel(id)
                    }
                    let result = await core.result(of: id)
                    #expect(result.fault == (isCancelled ? .cancelled : .timeout(FERRY_D_TIMEOUT_CONNECT)))
                    await core.untilStatistics { $0.handles == 0 }
                    #expect(try await core.get(server.baseURL + "/hello").fault == .ok)
                    await core.untilStatistics { $0.handles == 0 }
                }
            }
        }

        /// The first address fails while the second is tried, and its number is reused.
        @Test func theNumberOfAClosedSocketTellsNothing() async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            LookupStub.shared.set("two.phases.test", ["::1", "127.0.0.1"])
            var serverOptions = LoopbackServer.Options()
            serverOptions.accepting = .none
            try await withCore(options, server: serverOptions, probes: false) { core, server in
                let deaf = try deafListener(port: server.port)
                let before = openSockets()
                let id = try core.submit(
                    CoreRequest("GET", "https://two.phases.test:\(server.port)/").with { $0.connect = 3_000 })
                var own: [Int32: Int32] = [:]
                while !Set(own.values).isSuperset(of: [AF_INET, AF_INET6])
                    && core.record.read({ $0.results[id] }) == nil
                {
                    await core.turn()
                    for socket in openSockets().subtracting(before) { own[socket] = family(socket) }
                }
                let first = try #require(own.first { $0.value == AF_INET6 }?.key)
                // The request that is sent again a second after the first time is refused.
                for descriptor in deaf { close(descriptor) }
                while fcntl(first, F_GETFD) >= 0 { await core.turn() }
                var others: [Int32] = []
                while !others.contains(first) && others.count < 200 {
                    var pair: [Int32] = [-1, -1]
                    socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair)
                    others += pair
                }
                #expect(others.contains(first))
                let result = await core.result(of: id)
                #expect(result.fault == .timeout(FERRY_D_TIMEOUT_CONNECT) && result.phase == FERRY_PHASE_CONNECT)
                for descriptor in others { close(descriptor) }
            }
        }
    }
}
