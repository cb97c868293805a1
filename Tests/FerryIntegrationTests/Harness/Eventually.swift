@testable import FerryTestSupport

/// Repeats a check until it has a result: for records that a server writes after its response, without notice.
func eventually<Value>(
    _ what: String, within limit: Duration = .seconds(20), _ ask: () async throws -> Value?
) async throws -> Value {
    let end = ContinuousClock.now + limit
    while true {
        if let value = try await ask() { return value }
        if ContinuousClock.now > end { throw ServerError("not within \(limit): \(what)") }
        try await Task.sleep(for: .milliseconds(5))
    }
}
