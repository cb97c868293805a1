/// Changes requests before they leave: a signature, a trace header, a token.
///
/// Adapters run in their order, each on what the one before has made, anew for every attempt of a run, in a task of the
/// run. A redirect to another place passes them by: what they add is meant for the server that was asked. Where the
/// origin changes, header fields of theirs stay behind, and a body of theirs goes nowhere: a redirect that keeps the
/// body ends the run with `redirectForbidden(policy)`.
public protocol RequestAdapter: Sendable {
    /// Changes `request`. What is thrown fails the run: a `RequestError` as it is, anything else as `userError`.
    func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws
}
