/// Asks until there is an answer: for what a server writes down after it has answered, and tells nobody of.
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
