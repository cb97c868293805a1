import FerryTesting
import Foundation
import Glibc
import Testing

extension LoopbackTests {
    @Suite("LoopbackServer: compressed bodies", .timeLimit(.minutes(1)))
    struct LoopbackEncodingTests {
        /// Decoded with the zlib that the server has loaded into the process; nil if it reports an error.
        private func gunzip(_ bytes: [UInt8]) throws -> [UInt8]? {
            typealias Pointer = UnsafeMutableRawPointer
            typealias Open = @convention(c) (UnsafePointer<CChar>?, UnsafePointer<CChar>?) -> Pointer?
            typealias Read = @convention(c) (Pointer?, Pointer?, UInt32) -> Int32
            typealias Close = @convention(c) (Pointer?) -> Int32
            let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            try Data(bytes).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let open = unsafeBitCast(try #require(dlsym(nil, "gzopen")), to: Open.self)
            let read = unsafeBitCast(try #require(dlsym(nil, "gzread")), to: Read.self)
            let close = unsafeBitCast(try #require(dlsym(nil, "gzclose")), to: Close.self)
            let stream = open(file.path, "rb")
            var all: [UInt8] = []
            var block = [UInt8](repeating: 0, count: 1_000_000)
            while true {
                let count = read(stream, &block, UInt32(block.count))
                if count > 0 { all += block.prefix(Int(count)) }
                if count < block.count {
                    let isWhole = close(stream) == 0
                    return isWhole && count >= 0 ? all : nil
                }
            }
        }

        @Test(arguments: [0, 1, 1_000, 3_000_000, 6_000_000])
        func gzipIsThePatternCompressed(count: Int) async throws {
            let server = try LoopbackServer()
            let answer = try await RawClient(port: server.port).get("/gzip/\(count)")
            #expect(answer["Content-Encoding"] == "gzip")
            #expect((answer["Content-Length"] == nil) == (count > 4 << 20))
            #expect(try gunzip(answer.body) == LoopbackServer.pattern(0..<count))
        }

        @Test func zerosGetVerySmall() async throws {
            let server = try LoopbackServer()
            let answer = try await RawClient(port: server.port).get("/gzip/20000000?zeros=1")
            #expect(answer.body.count < 25_000)
            #expect(try gunzip(answer.body) == [UInt8](repeating: 0, count: 20_000_000))
        }

        @Test func cutAndCorruptStreamsHaveATrueLength() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let whole = try await client.get("/gzip/100000")
            let cut = try await client.get("/gzip/100000?cut=1")
            #expect(cut.body == Array(whole.body.prefix(whole.body.count / 2)))
            #expect(try gunzip(cut.body) == nil)
            let corrupt = try await client.get("/gzip/100000?corrupt=1")
            #expect(corrupt.body.count == whole.body.count)
            #expect(try gunzip(corrupt.body) == nil)
        }

        @Test func deflateHasAZlibFrameUnlessRaw() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let framed = try await client.get("/deflate/1000")
            #expect(framed["Content-Encoding"] == "deflate")
            let raw = try await client.get("/deflate/1000?raw=1")
            #expect(framed.body.prefix(2) == [0x78, 0x01])
            #expect(Array(framed.body.dropFirst(2).dropLast(4)) == raw.body)
        }
    }
}
