/// Answers the challenges of servers and proxies (RFC 9110, 11): 401 and 407.
///
/// It is asked in a task of the run, once for the server and once for the proxy: a credential that is not accepted is
/// not asked for again, and the answer is delivered. A server of another origin behind a redirect, and another proxy on
/// the way there, get none of what was given before; for them it is asked anew.
public protocol CredentialProvider: Sendable {
    /// The credential to try, or `nil` to let the run go on with the answer as it is. What is thrown fails the run: a
    /// `RequestError` as it is, anything else as `userError`.
    func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential?
}
