import Ferry
import FerryTesting
import FoundationEssentials
import Glibc
import Testing

/// The error that an exchange ends with.
func exchangeError(_ run: () async throws -> Void) async -> RequestError? {
    do {
        try await run()
        Issue.record("it did not fail")
    } catch let error as RequestError {
        return error
    } catch {
        Issue.record("\(error)")
    }
    return nil
}

extension NetworkAgent {
    /// Sends a pattern to an echo, and compares what comes back with it.
    func expectRoundTrip(_ size: Int, _ request: HTTPRequest<Response>) async throws {
        let period = 37
        let pattern = LoopbackServer.pattern(0..<(100_000 + period))
        let received = try await exchange(request) { response, body in
            async let sent: Void = {
                var written = 0
                while written < size {
                    let count = min(100_000, size - written)
                    let from = written % period
                    try await body.write(pattern[from..<from + count])
                    written += count
                }
                try body.finish()
            }()
            var received = 0
            for try await piece in try await response.body {
                var at = 0
                while at < piece.count {
                    let count = min(100_000, piece.count - at)
                    let from = (received + at) % period
                    let isSame = piece.withUnsafeBytes { bytes in
                        pattern.withUnsafeBytes { pattern in
                            bytes.baseAddress.map { memcmp($0 + at, pattern.baseAddress! + from, count) == 0 } ?? true
                        }
                    }
                    #expect(isSame, "other bytes behind \(received + at)")
                    at += count
                }
                received += piece.count
            }
            try await sent
            return received
        }
        #expect(received == size)
    }
}
