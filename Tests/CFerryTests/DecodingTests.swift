import CCoreParts
import CFerry
import FerrySynchronization
import FerryTesting
import Testing

extension CoreTests {
    /// gzip, deflate, br and zstd.
    @Suite struct Decoding {
        private func get(_ core: CoreLoop, _ url: String, _ change: (inout CoreRequest) -> Void = { _ in }) async throws
            -> CoreResult
        {
            try await core.run(
                CoreRequest("GET", url).with {
                    $0.flags = .decode
                    change(&$0)
                })
        }

        private static let hello: [UInt8] = [
            31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0,
        ]

        private func script(_ server: LoopbackServer, _ path: String, _ coding: String, _ pieces: [[UInt8]]) {
            var steps: [LoopbackScript.Step] = [
                .send(
                    "HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nContent-Length: \(pieces.joined().count)\r\n\r\n"
                )
            ]
            for piece in pieces {
                steps.append(.pause(.milliseconds(30)))  // each piece in a segment of its own
                steps.append(.sendBytes(piece))
            }
            server.script(path: path, LoopbackScript(steps + [.serve]))
        }

        @Test(arguments: [0, 1, 1_000, 100_000, 5_000_000])
        func codedBodiesComeOutWhole(size: Int) async throws {
            try await withCore { core, server in
                for path in [
                    "/gzip/\(size)", "/deflate/\(size)", "/deflate/\(size)?raw=1", "/br/\(size)", "/zstd/\(size)",
                ] {
                    let result = try await get(core, server.baseURL + path)
                    #expect(result.fault == .ok, "\(path)")
                    #expect(result.body ?? [] == LoopbackServer.pattern(0..<size), "\(path)")
                    #expect(result.isDecoded && result.bodyReceived > 0)
                    if size > 0 { #expect(result.spare == Array(repeating: 0, count: 64)) }
                }
            }
        }

        /// A few bytes become many: other transfers get their turns meanwhile.
        @Test(arguments: [PARTS_GZIP, PARTS_ZSTD]) func aLongBodyIsDecodedInManyTurns(coding: Int) async throws {
            let size = 64 << 20
            var coded = parts_body()
            [UInt8](repeating: 0, count: size).withUnsafeBufferPointer {
                parts_encode(&coded, Int32(coding), false, $0.baseAddress, $0.count)
            }
            let bytes = Array(UnsafeBufferPointer(start: coded.bytes, count: coded.length))
            parts_body_free(&coded)
            try await withCore { core, server in
                let name = coding == PARTS_GZIP ? "gzip" : "zstd"
                let head = "HTTP/1.1 200 OK\r\nContent-Encoding: \(name)\r\n"
                let length = "Content-Length: \(bytes.count)\r\n\r\n"
                server.script(path: "/x", [.expectHead, .send(head + length), .sendBytes(bytes), .serve])
                // Each chunk is decoded by itself.
                let chunks = stride(from: 0, to: bytes.count, by: 64).flatMap { start in
                    let piece = bytes[start..<min(start + 64, bytes.count)]
                    return Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + [13, 10]
                }
                server.script(
                    path: "/chunked",
                    [
                        .expectHead, .send(head + "Transfer-Encoding: chunked\r\n\r\n"),
                        .sendBytes(chunks + Array("0\r\n\r\n".utf8)), .serve,
                    ])
                for path in ["/x", "/chunked"] {
                    let collected = try await get(core, server.baseURL + path)
                    #expect(collected.fault == .ok && collected.bodyLength == size)
                    let turns = Mutex<Set<UInt64>>([])
                    let streamed = try await get(core, server.baseURL + path) {
                        $0.answer = .stream
                        $0.onBody = { [weak core] _ in
                            if let core { turns.withLock { _ = $0.insert(core.statistics.turns) } }
                            return FERRY_CONTINUE
                        }
                    }
                    #expect(streamed.fault == .ok && streamed.bodyLength == size)
                    // A turn decodes a mebibyte.
                    #expect(turns.withLock { $0.count } >= 60, "\(path)")
                }
            }
        }

        @Test func withoutTheFlagTheBodyStaysAsItIs() async throws {
            try await withCore { core, server in
                let result = try await core.get(server.baseURL + "/gzip/1000")
                #expect(result.fault == .ok && !result.isDecoded)
                #expect(result.body?.prefix(2) == [0x1f, 0x8b])
            }
        }

        @Test(arguments: ["gzip", "x-gzip", "GZip"])
        func aLoneFirstByteAndSingleBytes(coding: String) async throws {
            try await withCore { core, server in
                script(server, "/one", coding, [[31], [139], Array(Self.hello.dropFirst(2))])
                let result = try await get(core, server.baseURL + "/one")
                #expect(result.fault == .ok && result.text == "hello")
            }
        }

        @Test func aLoneFirstByteOfDeflateInBothFormats() async throws {
            let bare = Array(Self.hello.dropFirst(10).dropLast(8))
            let zlib: [UInt8] = [0x78, 0x9c] + bare + [0x06, 0x2c, 0x02, 0x15]
            try await withCore { core, server in
                for (path, bytes) in [("/bare", bare), ("/zlib", zlib)] {
                    script(server, path, "deflate", [Array(bytes.prefix(1)), Array(bytes.dropFirst(1))])
                    let result = try await get(core, server.baseURL + path)
                    #expect(result.fault == .ok && result.text == "hello", "\(path)")
                }
                script(server, "/only", "deflate", [[0x78]])
                let only = try await get(core, server.baseURL + "/only")
                #expect(only.fault == CoreFault(FERRY_E_CONTENT_DECODING, FERRY_D_DECODING_TRUNCATED))
            }
        }

        @Test func severalMembers() async throws {
            try await withCore { core, server in
                script(server, "/two", "gzip", [Self.hello + Self.hello])
                script(server, "/apart", "gzip", [Self.hello, Self.hello])
                for path in ["/two", "/apart"] {
                    let result = try await get(core, server.baseURL + path)
                    #expect(result.fault == .ok && result.text == "hellohello", "\(path)")
                }
                script(server, "/cut", "gzip", [Self.hello + Self.hello.prefix(12)])
                let cut = try await get(core, server.baseURL + "/cut")
                #expect(cut.fault == CoreFault(FERRY_E_CONTENT_DECODING, FERRY_D_DECODING_TRUNCATED))
                script(server, "/junk", "gzip", [Self.hello + [1, 2, 3, 4]])
                let junk = try await get(core, server.baseURL + "/junk")
                #expect(junk.fault == CoreFault(FERRY_E_CONTENT_DECODING, FERRY_D_DECODING_CORRUPT))
            }
        }

        private static let zstdHello: [UInt8] = [
            40, 181, 47, 253, 4, 88, 41, 0, 0, 104, 101, 108, 108, 111, 163, 109, 159, 136,
        ]
        private static let brotliHello: [UInt8] = [15, 2, 128, 104, 101, 108, 108, 111, 3]

        @Test func severalFramesOfZstdAndNothingBehindBrotli() async throws {
            // A skippable frame (RFC 8878, 3.1.2).
            let skipped: [UInt8] = [0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3]
            try await withCore { core, server in
                script(server, "/two", "zstd", [Self.zstdHello + Self.zstdHello])
                script(server, "/apart", "zstd", [Self.zstdHello, Self.zstdHello])
                script(server, "/skipped", "ZSTD", [Self.zstdHello + skipped + Self.zstdHello])
                for path in ["/two", "/apart", "/skipped"] {
                    let result = try await get(core, server.baseURL + path)
                    #expect(result.fault == .ok && result.text == "hellohello", "\(path)")
                }
                script(server, "/cut", "zstd", [Self.zstdHello + Self.zstdHello.prefix(7)])
                let cut = try await get(core, server.baseURL + "/cut")
                #expect(cut.fault == CoreFault(FERRY_E_CONTENT_DECODING, FERRY_D_DECODING_TRUNCATED))
                script(server, "/one", "br", [Array(Self.brotliHello.prefix(1)), Array(Self.brotliHello.dropFirst())])
                let one = try await get(core, server.baseURL + "/one")
                #expect(one.fault == .ok && one.text == "hello")
                for (path, coding, bytes) in [
                    ("/junk", "zstd", Self.zstdHello), ("/more", "br", Self.brotliHello),
                ] {
                    script(server, path, coding, [bytes + [1, 2, 3, 4, 5, 6, 7, 8]])
                    let junk = try await get(core, server.baseURL + path)
                    #expect(junk.fault == CoreFault(FERRY_E_CONTENT_DECODING, FERRY_D_DECODING_CORRUPT), "\(path)")
                }
            }
        }

        @Test func aWindowOfZstdAbove8MiBIsRefused() async throws {
            // The head of a frame whose window is 16 MiB (RFC 8878, 3.1.1.1.2), and an empty last block.
            try await withCore { core, server in
                script(server, "/wide", "zstd", [[0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x70, 0x01, 0x00, 0x00]])
                let wide = try await get(core, server.baseURL + "/wide")
                #expect(wide.fault == CoreFault(FERRY_E_CONTENT_DECODING, FERRY_D_DECODING_CORRUPT))
                script(server, "/fits", "zstd", [[0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x68, 0x01, 0x00, 0x00]])
                let fits = try await get(core, server.baseURL + "/fits")
                #expect(fits.fault == .ok && fits.bodyLength == 0)
            }
        }

        @Test(arguments: [
            "/gzip/100000?cut=1", "/deflate/100000?cut=1", "/deflate/100000?cut=1&raw=1", "/br/100000?cut=1",
            "/zstd/100000?cut=1",
        ])
        func cutShortThoughTheLengthAgrees(path: String) async throws {
            try await withCore { core, server in
                let result = try await get(core, server.baseURL + path)
                #expect(result.fault == CoreFault(FERRY_E_CONTENT_DECODING, FERRY_D_DECODING_TRUNCATED))
                #expect(result.body == nil)
            }
        }

        @Test(arguments: [
            "/gzip/100000?corrupt=1", "/deflate/100000?corrupt=1", "/br/100000?corrupt=1", "/zstd/100000?corrupt=1",
        ])
        func corrupt(path: String) async throws {
            try await withCore { core, server in
                let result = try await get(core, server.baseURL + path)
                #expect(result.fault == CoreFault(FERRY_E_CONTENT_DECODING, FERRY_D_DECODING_CORRUPT))
            }
        }

        @Test(arguments: ["gzip", "br", "zstd"]) func aBombStopsAtTheLimit(coding: String) async throws {
            try await withCore { core, server in
                let result = try await get(core, server.baseURL + "/\(coding)/200000000?zeros=1") {
                    $0.maxBody = 1_000_000
                }
                #expect(result.fault == CoreFault(FERRY_E_BODY_TOO_LARGE))
                #expect(result.bodyLength <= 1_000_000 && result.bodyReceived < 100_000)
            }
        }

        @Test func twoCodingsAndUnknownOnesAreLeftToTheCaller() async throws {
            try await withCore { core, server in
                for (path, coding) in [
                    ("/other", "compress"), ("/two", "gzip, gzip"), ("/br", "br, gzip"), ("/id", "identity"),
                ] {
                    script(server, path, coding, [Self.hello])
                    let result = try await get(core, server.baseURL + path)
                    #expect(result.fault == .ok && result.body == Self.hello && !result.isDecoded, "\(path)")
                }
            }
        }

        /// It is a range of the coded bytes (RFC 9110, 14.2), and no decoder can begin in the middle.
        @Test func aPartOfACodedBodyIsLeftToTheCaller() async throws {
            try await withCore { core, server in
                let part = Array(Self.hello[5..<15])
                let head = """
                    HTTP/1.1 206 Partial Content\r\nContent-Encoding: gzip\r\nContent-Range: bytes 5-14/25\r\n\
                    Content-Length: 10\r\n\r\n
                    """
                server.script(path: "/part", [.sendBytes(Array(head.utf8) + part), .serve])
                let result = try await get(core, server.baseURL + "/part") { $0.add("Range", "bytes=5-14") }
                #expect(result.fault == .ok && result.body == part && !result.isDecoded, "\(result.fault)")
            }
        }

        @Test func headAndEmptyBodiesWithACodingAreFine() async throws {
            try await withCore { core, server in
                script(server, "/empty", "gzip", [])
                let empty = try await get(core, server.baseURL + "/empty")
                #expect(empty.fault == .ok)
                let head = try await get(core, server.baseURL + "/gzip/100") { $0.method = Array("HEAD".utf8) }
                #expect(head.fault == .ok && head.body == nil)
                server.script(
                    path: "/chunked",
                    [
                        .send(
                            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                        .serve,
                    ])
                let chunked = try await get(core, server.baseURL + "/chunked")
                #expect(chunked.fault == .ok)
            }
        }

        @Test func decodersAreReusedWithoutATrace() async throws {
            try await withCore { core, server in
                for path in [
                    "/gzip/1000?cut=1", "/gzip/1000", "/deflate/1000?raw=1", "/deflate/1000", "/gzip/1000?corrupt=1",
                    "/gzip/1000", "/zstd/1000?cut=1", "/zstd/1000", "/zstd/1000?corrupt=1", "/zstd/1000",
                    "/br/1000?cut=1",
                    "/br/1000", "/br/1000?corrupt=1", "/br/1000", "/gzip/1000",
                ] {
                    let result = try await get(core, server.baseURL + path)
                    if !path.contains("cut") && !path.contains("corrupt") {
                        #expect(result.body == LoopbackServer.pattern(0..<1000), "\(path)")
                    }
                }
            }
        }
    }
}
