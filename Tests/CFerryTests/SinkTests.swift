import CFerry
import FerryTesting
import Foundation
import Testing

extension CoreTests {
    /// Bodies that go to a descriptor.
    @Suite struct Sinks {
        private func withFile(_ body: (Int32, String) async throws -> Void) async throws {
            let path = FileManager.default.temporaryDirectory.path + "/ferry-sink-\(UUID().uuidString)"
            let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            defer {
                close(descriptor)
                unlink(path)
            }
            try await body(descriptor, path)
        }

        private func contents(_ path: String) -> [UInt8] { Array(FileManager.default.contents(atPath: path) ?? Data()) }

        private func held(_ url: String) -> CoreRequest {
            CoreRequest("GET", url).with {
                $0.answer = .stream
                $0.flags = [.holdBody]
            }
        }

        @Test(arguments: [0, 1, 16_384, 65_536, 262_144, 3_000_000])
        func everySizeIsWrittenAtItsOffset(size: Int) async throws {
            try await withCore { core, server in
                try await withFile { descriptor, path in
                    let before = Array(repeating: UInt8(ascii: "#"), count: 100)
                    #expect(write(descriptor, before, 100) == 100)
                    for way in ["/bytes/\(size)", "/chunked/\(size)"] {
                        let id = try core.submit(
                            CoreRequest("GET", server.baseURL + way).with {
                                $0.answer = .descriptor(descriptor, offset: 40)
                            })
                        let result = await core.result(of: id)
                        #expect(result.fault == .ok && result.bodyLength == UInt64(size) && result.body == nil)
                        #expect((core.written(id).last ?? 0) == UInt64(size))
                        let expected = before.prefix(40) + LoopbackServer.pattern(0..<size)
                        #expect(contents(path).starts(with: expected))
                        #expect(contents(path).count == max(100, 40 + size))
                    }
                }
            }
        }

        @Test func whatIsWrittenIsToldAsItGrows() async throws {
            try await withCore { core, server in
                try await withFile { descriptor, _ in
                    let id = try core.submit(
                        CoreRequest("GET", server.baseURL + "/bytes/40000000").with {
                            $0.answer = .descriptor(descriptor, offset: 0)
                        })
                    _ = await core.result(of: id)
                    let written = core.written(id)
                    #expect(written.count > 10 && written == written.sorted() && written.last == 40_000_000)
                }
            }
        }

        @Test func aFewBytesDoNotWaitForMore() async throws {
            try await withCore { core, server in
                try await withFile { descriptor, path in
                    server.script(
                        path: "/slow",
                        [
                            .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .wait("more"), .send("world"),
                            .serve,
                        ])
                    let id = try core.submit(
                        CoreRequest("GET", server.baseURL + "/slow").with {
                            $0.answer = .descriptor(descriptor, offset: 0)
                        })
                    await core.record.until { $0.written[id] == [5] }
                    #expect(contents(path) == Array("hello".utf8))
                    server.signal("more")
                    let result = await core.result(of: id)
                    #expect(result.fault == .ok && contents(path) == Array("helloworld".utf8))
                }
            }
        }

        /// Also if many share the space. Eight attempts: bytes that arrive slowly are written as they come.
        @Test func aSmallFileIsWrittenAtOnce() async throws {
            try await withCore { core, server in
                try await withFile { descriptor, _ in
                    let begun = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n#"
                    server.script(path: "/begun", [.send(begun), .wait("never")])
                    let others = try (0..<31).map { _ in
                        try core.submit(
                            CoreRequest("GET", server.baseURL + "/begun").with {
                                $0.answer = .descriptor(descriptor, offset: 100_000)
                            })
                    }
                    await core.record.until { record in others.allSatisfy { record.written[$0] == [1] } }
                    var tries: [[UInt64]] = []
                    for _ in 0..<8 {
                        let id = try core.submit(
                            CoreRequest("GET", server.baseURL + "/bytes/100000").with {
                                $0.answer = .descriptor(descriptor, offset: 0)
                            })
                        #expect(await core.result(of: id).fault == .ok)
                        tries.append(core.written(id))
                    }
                    #expect(tries.contains([100_000]), "\(tries)")
                    for id in others { core.cancel(id) }
                    for id in others { #expect(await core.result(of: id).fault == .cancelled) }
                }
            }
        }

        @Test func aDescriptorThatBlocksStopsNothingElse() async throws {
            try await withCore { core, server in
                var ends: [Int32] = [0, 0]
                #expect(pipe(&ends) == 0)
                defer { for end in ends { close(end) } }
                let id = try core.submit(
                    CoreRequest("GET", server.baseURL + "/bytes/3000000").with { $0.answer = .descriptor(ends[1]) })
                // A pipe holds 64 KB: from here on a thread waits in `write`.
                await core.untilStatistics { $0.running == 1 }
                for _ in 0..<100 {
                    let hello = try await core.get(server.baseURL + "/hello")
                    #expect(hello.fault == .ok && hello.metrics.total < 10_000_000)
                }
                #expect(core.record.read { $0.results[id] } == nil)
                let read = await readExactly(ends[0], 3_000_000)
                let result = await core.result(of: id)
                #expect(result.fault == .ok && read == LoopbackServer.pattern(0..<3_000_000))
            }
        }

        /// How many bytes fill a pipe depends on how they are written.
        private func untilFull(_ writer: Int32, _ core: CoreLoop) async {
            var room = pollfd(fd: writer, events: Int16(POLLOUT), revents: 0)
            while poll(&room, 1, 0) == 1 { await core.turn() }
        }

        @Test func manyDescriptorsThatBlockDoNotStopOtherFiles() async throws {
            try await withCore { core, server in
                var readers: [Int32] = []
                var writers: [Int32] = []
                for _ in 0..<8 {
                    var ends: [Int32] = [0, 0]
                    #expect(pipe(&ends) == 0)
                    readers.append(ends[0])
                    writers.append(ends[1])
                }
                defer { for end in readers + writers { close(end) } }
                let blocked = try writers.map { writer in
                    try core.submit(
                        CoreRequest("GET", server.baseURL + "/bytes/1000000").with { $0.answer = .descriptor(writer) })
                }
                // When all are full, a thread waits for each of them, up to the number of threads.
                try await server.waitForRequests(8)
                for writer in writers.prefix(4) { await untilFull(writer, core) }
                try await withFile { descriptor, path in
                    for size in [100_000, 1_000_000] {
                        let id = try core.submit(
                            CoreRequest("GET", server.baseURL + "/bytes/\(size)").with {
                                $0.answer = .descriptor(descriptor, offset: 0)
                            })
                        #expect(await core.result(of: id).fault == .ok)
                        #expect(contents(path).starts(with: LoopbackServer.pattern(0..<size)))
                    }
                    // Nor a cancel of one.
                    server.script(
                        path: "/slow",
                        [.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .keepOpen])
                    let id = try core.submit(
                        CoreRequest("GET", server.baseURL + "/slow").with {
                            $0.answer = .descriptor(descriptor, offset: 0)
                        })
                    await core.record.until { $0.written[id] == [5] }
                    core.cancel(id)
                    #expect(await core.result(of: id).fault == .cancelled)
                }
                for (id, reader) in zip(blocked, readers) {
                    #expect(core.record.read { $0.results[id] } == nil)
                    let read = await readExactly(reader, 1_000_000)
                    #expect(await core.result(of: id).fault == .ok && read == LoopbackServer.pattern(0..<1_000_000))
                }
            }
        }

        /// What ends a transfer whose descriptor accepts no more bytes.
        enum Ending: CaseIterable { case cancel, stop, free, deadline }

        @Test(arguments: Ending.allCases)
        func theEndDoesNotWaitForAWriteThatIsStuck(by ending: Ending) async throws {
            try await withCore { core, server in
                var ends: [Int32] = [0, 0]
                #expect(pipe(&ends) == 0)
                defer { close(ends[0]) }
                let id = try core.submit(
                    CoreRequest("GET", server.baseURL + "/bytes/3000000").with {
                        $0.answer = .descriptor(ends[1])
                        if ending == .deadline { $0.deadline = 1_000 }
                    })
                // The thread is in `write` when the pipe is full.
                await untilFull(ends[1], core)
                switch ending {
                case .cancel: core.cancel(id)
                case .stop: core.stop()
                case .free: core.free()
                case .deadline: break
                }
                let result = await core.result(of: id)
                switch ending {
                case .cancel: #expect(result.fault == .cancelled)
                case .stop, .free: #expect(result.fault == .shutdown)
                case .deadline: #expect(result.fault == .timeout(FERRY_D_TIMEOUT_DEADLINE))
                }
                #expect(result.isStillWriting && result.metrics.total < 5_000_000)
                // The descriptor is the caller's again, and its number is reused. The current write completes, no other
                // follows, and then the pipe has no writer.
                close(ends[1])
                let other = open("/dev/null", O_WRONLY | O_CLOEXEC)
                defer { close(other) }
                let read = await readExactly(ends[0], 3_000_000)
                #expect(read.count >= 65_536 && read.count < 3_000_000)
                #expect(LoopbackServer.pattern(0..<3_000_000).starts(with: read))
            }
        }

        /// The one that it waits for has its slot, but no result yet.
        @Test func aPlaceThatALimitFreesIsGivenOnWhileAWriteIsStuck() async throws {
            var options = CoreLoop.Options()
            options.maxPerHost = 1
            try await withCore(options) { core, server in
                var ends: [Int32] = [0, 0]
                #expect(pipe(&ends) == 0)
                defer { close(ends[0]) }
                let stuck = try core.submit(
                    CoreRequest("GET", server.baseURL + "/bytes/3000000").with {
                        $0.answer = .descriptor(ends[1])
                        $0.total = 500
                    })
                let next = try await core.get(server.baseURL + "/hello")
                #expect(next.fault == .ok)
                close(ends[1])
                _ = await readExactly(ends[0], 3_000_000)
                #expect(await core.result(of: stuck).fault == .timeout(FERRY_D_TIMEOUT_TOTAL))
            }
        }

        /// A caller that may be about to write to the same place waits for it.
        @Test func aBodyThatBrokeOffHasItsResultWhenNothingIsWrittenAnyMore() async throws {
            try await withCore { core, server in
                var ends: [Int32] = [0, 0]
                #expect(pipe(&ends) == 0)
                defer { for end in ends { close(end) } }
                let id = try core.submit(
                    CoreRequest("GET", server.baseURL + "/bytes/1000000?cut=300001").with {
                        $0.answer = .descriptor(ends[1])
                    })
                await untilFull(ends[1], core)
                try await core.pass(milliseconds: 300, server)
                #expect(core.record.read { $0.results[id] } == nil)
                let read = await readExactly(ends[0], 300_001)
                let result = await core.result(of: id)
                #expect(result.fault == CoreFault(FERRY_E_INCOMPLETE_BODY) && !result.isStillWriting)
                #expect(read == LoopbackServer.pattern(0..<300_001))
            }
        }

        @Test func aHeldBodyWaitsForItsFile() async throws {
            try await withCore { core, server in
                try await withFile { descriptor, path in
                    let id = try core.submit(held(server.baseURL + "/bytes/2000000"))
                    await core.untilHead(id)
                    for _ in 0..<20 { await core.turn() }
                    #expect(core.streamed(id).isEmpty && core.record.read { $0.results[id] } == nil)
                    core.write(id, to: descriptor, at: 7)
                    let result = await core.result(of: id)
                    #expect(result.fault == .ok && result.bodyLength == 2_000_000 && core.streamed(id).isEmpty)
                    #expect(contents(path).dropFirst(7).elementsEqual(LoopbackServer.pattern(0..<2_000_000)))
                }
            }
        }

        @Test func aHeldBodyThatIsResumedIsStreamed() async throws {
            try await withCore { core, server in
                let id = try core.submit(held(server.baseURL + "/bytes/200000"))
                await core.untilHead(id)
                core.resume(id)
                let result = await core.result(of: id)
                #expect(result.fault == .ok && core.streamed(id) == LoopbackServer.pattern(0..<200_000))
                let empty = try core.submit(held(server.baseURL + "/bytes/0"))
                let none = await core.result(of: empty)
                #expect(none.fault == .ok && none.bodyLength == 0)
            }
        }

        @Test func pausedAndResumedByTheCaller() async throws {
            try await withCore { core, server in
                try await withFile { descriptor, path in
                    // Most of it comes after the pause, however late that is.
                    let third = LoopbackServer.pattern(0..<10_000_000)
                    server.script(
                        path: "/thirds",
                        [
                            .send("HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n"), .sendBytes(third),
                            .wait("paused"), .sendBytes(third), .sendBytes(third), .serve,
                        ])
                    let id = try core.submit(held(server.baseURL + "/thirds"))
                    await core.untilHead(id)
                    core.write(id, to: descriptor, at: 0)
                    await core.record.until { !($0.written[id] ?? []).isEmpty }
                    core.pause(id)
                    server.signal("paused")
                    // The bytes read so far are written and flushed in time; after that none.
                    var before: UInt64 = 0
                    while before != core.written(id).last {
                        before = core.written(id).last ?? 0
                        try await core.pass(milliseconds: 300, server)
                    }
                    #expect(before < 30_000_000 && core.record.read { $0.results[id] } == nil)
                    core.resume(id)
                    let result = await core.result(of: id)
                    #expect(result.fault == .ok && contents(path) == third + third + third)
                }
            }
        }

        @Test func moreThanTheMostIsNotWritten() async throws {
            try await withCore { core, server in
                try await withFile { descriptor, path in
                    for (size, isFine) in [(50_000, true), (50_001, false), (900_000, false)] {
                        let id = try core.submit(held(server.baseURL + "/chunked/\(size)"))
                        await core.untilHead(id)
                        core.write(id, to: descriptor, at: 0, most: 50_000)
                        let result = await core.result(of: id)
                        #expect(result.fault == (isFine ? .ok : CoreFault(FERRY_E_BODY_TOO_LARGE)))
                        #expect(contents(path).count <= 50_000)
                    }
                }
            }
        }

        @Test func whatCameOfABodyCutShortIsWritten() async throws {
            try await withCore { core, server in
                try await withFile { descriptor, path in
                    let id = try core.submit(
                        CoreRequest("GET", server.baseURL + "/bytes/1000000?cut=300001").with {
                            $0.answer = .descriptor(descriptor, offset: 0)
                        })
                    let result = await core.result(of: id)
                    #expect(result.fault == CoreFault(FERRY_E_INCOMPLETE_BODY))
                    #expect(contents(path) == LoopbackServer.pattern(0..<300_001))
                }
            }
        }

        @Test func theRateIsNotExceeded() async throws {
            try await withCore { core, server in
                try await withFile { descriptor, path in
                    let started = ContinuousClock.now
                    let result = try await core.run(
                        CoreRequest("GET", server.baseURL + "/bytes/300000").with {
                            $0.answer = .descriptor(descriptor, offset: 0)
                            $0.maxRate = 300_000
                        })
                    #expect(result.fault == .ok && contents(path).count == 300_000)
                    #expect(ContinuousClock.now - started > .milliseconds(500))
                    // The next one is not affected.
                    let next = try await core.get(server.baseURL + "/bytes/3000000")
                    #expect(next.fault == .ok && next.metrics.total < 5_000_000)
                }
            }
        }
    }
}

/// Reads until this many bytes are there, or the other end is closed; on a thread of its own, which may wait.
private func readExactly(_ descriptor: Int32, _ count: Int) async -> [UInt8] {
    await withCheckedContinuation { continuation in
        DispatchQueue(label: "reader").async {
            var bytes: [UInt8] = []
            var space = [UInt8](repeating: 0, count: 65_536)
            while bytes.count < count {
                let n = read(descriptor, &space, min(space.count, count - bytes.count))
                if n < 0 && errno == EINTR { continue }
                if n <= 0 { break }
                bytes += space.prefix(n)
            }
            continuation.resume(returning: bytes)
        }
    }
}
