import CCoreParts
import Testing

extension CoreTests {
    /// The addresses of libcurl's receive buffers.
    @Suite struct Buffers {
        private func take(_ count: Int) throws -> [UnsafeMutablePointer<CChar>] {
            try #require(parts_buffers_open())
            return try (0..<count).map { _ in try #require(parts_buffer_take()) }
        }

        private func residentPages(_ buffer: UnsafeMutablePointer<CChar>) -> Int {
            parts_resident_pages(buffer, parts_buffer_size())
        }

        @Test func oneCostsNoMemoryBeforeItsFirstByteAndAfterItsEnd() throws {
            let buffers = try take(100)
            #expect(buffers.map(residentPages) == Array(repeating: 0, count: 100))
            for buffer in buffers { buffer[0] = 1 }
            #expect(buffers.map(residentPages) == Array(repeating: 1, count: 100))
            for buffer in buffers { buffer.update(repeating: 2, count: parts_buffer_size()) }
            #expect(buffers.allSatisfy { residentPages($0) >= 4 })
            for buffer in buffers { parts_buffer_give(buffer) }
            #expect(buffers.map(residentPages) == Array(repeating: 0, count: 100))
        }

        @Test func noTwoOfThemMeet() throws {
            let buffers = try take(300)
            for (number, buffer) in buffers.enumerated() {
                buffer.update(repeating: CChar(truncatingIfNeeded: number), count: parts_buffer_size())
            }
            for (number, buffer) in buffers.enumerated() {
                let bytes = UnsafeBufferPointer(start: buffer, count: parts_buffer_size())
                #expect(bytes.allSatisfy { $0 == CChar(truncatingIfNeeded: number) })
            }
            for buffer in buffers { parts_buffer_give(buffer) }
        }

        @Test func otherBlocksAreNone() throws {
            let buffer = try take(1)[0]
            let other = UnsafeMutablePointer<CChar>.allocate(capacity: parts_buffer_size())
            #expect(parts_buffer_is_one(buffer) && !parts_buffer_is_one(other) && !parts_buffer_is_one(nil))
            other.deallocate()
            parts_buffer_give(buffer)
        }

        private func takeAll() -> [UnsafeMutablePointer<CChar>] {
            var buffers: [UnsafeMutablePointer<CChar>] = []
            while buffers.count < 70_000, let buffer = parts_buffer_take() { buffers.append(buffer) }
            return buffers
        }

        /// When none is left, malloc's are used, and those that are given back are available again.
        @Test func thereIsAnEndToThemUntilSomeAreGivenBack() throws {
            try #require(parts_buffers_open())
            for _ in 0..<2 {
                let buffers = takeAll()
                #expect(buffers.count > 60_000 && buffers.count <= 65_536)
                #expect(Set(buffers).count == buffers.count)
                for buffer in buffers { parts_buffer_give(buffer) }
            }
        }

        /// A streamed head is copied on a thread of the application, which must not take blocks that the loops share.
        @Test func threadsOfTheApplicationLeaveTheSharedBlocksToTheLoops() {
            #expect(parts_blocks_stay_for_loops(0))
            #expect(parts_blocks_stay_for_loops(100))
        }

        /// Of a large block the system may move the pages.
        @Test(arguments: [1, 1000, 1 << 20, 16 << 20]) func aBlockThatGrowsKeepsItsBytes(_ most: Int) {
            #expect(parts_block_keeps_its_bytes(most))
        }
    }
}
