/// Makes an agent, calls `body` with it, and shuts it down, also when `body` throws.
///
///     let reply = try await withNetworkAgent { agent in try await agent.send(UserInfo(id: 7)) }
///
/// `grace` is how long runs that `body` left behind may still take. The default is 5 seconds.
public func withNetworkAgent<Value: Sendable, Failure: Error>(
    configuration: NetworkConfiguration = NetworkConfiguration(), grace: Duration = .seconds(5),
    isolation: isolated (any Actor)? = #isolation, _ body: (NetworkAgent) async throws(Failure) -> Value
) async throws(Failure) -> Value {
    let agent = NetworkAgent(configuration: configuration)
    do throws(Failure) {
        let value = try await body(agent)
        await agent.shutdown(grace: grace)
        return value
    } catch {
        await agent.shutdown(grace: grace)
        throw error
    }
}
