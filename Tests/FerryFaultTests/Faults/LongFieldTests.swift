import FerryTransport
import Glibc
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Header fields of a hostile server, up to the limit of the head: no deadline ends the work for one field, so it must
/// not grow with the square of the length.
@Suite(.timeLimit(.minutes(2))) struct LongFieldTests {
    /// Regional indicators: to find the character before the end, all of them have to be read.
    private static let flag = "\u{1F1E9}\u{1F1EA}"

    /// How much more CPU time eight times the input takes: 8 if the time grows with the length, 64 with its square. The
    /// lowest of several values, because the machine has other work.
    private func growth(_ prepare: (Int) -> () -> Void) -> Double {
        func lowest(_ work: () -> Void) -> Double {
            (0..<5).map { _ in
                let began = threadTime()
                work()
                return threadTime() - began
            }.min() ?? 0
        }
        return lowest(prepare(16_000)) / max(lowest(prepare(2000)), 1e-6)
    }

    private func threadTime() -> Double {
        var now = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
        return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
    }

    @Test("The time for a file name does not grow with the square of its length", arguments: [flag, ". ", "e\u{301}"])
    func fileName(piece: String) {
        let growth = growth { count in
            let name = String(repeating: piece, count: count)
            return {
                _ = SafeFileName.safe(name)
                _ = SafeFileName.safe("a" + name + ".txt")
                _ = SafeFileName.numbered("a" + name, 1)
            }
        }
        #expect(growth < 32)
    }

    @Test("The time for a content type does not grow with the square of its length", arguments: [flag, " ", ";", "="])
    func contentType(piece: String) {
        let growth = growth { count in
            let type = "text/plain; x=" + String(repeating: piece, count: count)
            return { _ = TextEncoding(contentType: type) }
        }
        #expect(growth < 32)
    }

    @Test("Of a long Vary, a cache with a time to live reads no more names than it allows")
    func vary() throws {
        func rules(_ count: Int) throws -> CacheRules {
            let names = (0..<count).map { "X-\($0)" }.joined(separator: ", ")
            let head = "HTTP/1.1 200 OK\r\nVary: Accept-Encoding\r\nVary: \(names), x-0\r\n\r\n"
            return CacheRules(try TransferResult(id: 1, head: Array(head.utf8), body: []))
        }
        let most = VaryRules.most - 1
        let allowed = try rules(most)
        #expect(allowed.varying == (0..<most).map { "x-\($0)" } && !allowed.variesByAnything)
        for count in [most + 1, 4000] {
            let refused = try rules(count)
            #expect(refused.varying.isEmpty && refused.variesByAnything, "\(count)")
        }
    }
}
