import Ferry
import FerryTesting

/// What of a case is not as usual.
struct FaultSetup {
    var server = LoopbackServer.Options()
    var configuration = NetworkConfiguration()
    var probe = Probe()
    /// What is asked of the server.
    var path = "/fault"
    /// Goes before the secret in the query.
    var query: String?
    /// The name the server is called by; its address when this is nil.
    var host: String?
    /// Handlers and further scripts.
    var install: (LoopbackServer) -> Void = { _ in }
    /// Where the script is played; the default is at the path.
    var place: LoopbackScript.Rule.Place?
    /// Where the request after the fault goes.
    var next = Next.sameServer
    /// Whether the error names the URL that was made of all this; not when the probe has one of its own.
    var checksURL = true
    /// Whether the server can see that a connection is closed.
    var seesClose = true
    /// Later than this after the start is too late.
    var bound = Duration.seconds(10)
    /// More memory than this must not be needed at any time, for server and client together.
    var memoryBound = 64_000_000
    /// Why it is not played in some forms, in a word.
    private(set) var omitted: [(form: Form, reason: String)] = []

    /// What it is played in.
    var forms = Form.allCases

    /// It means nothing in these forms.
    mutating func omit(_ others: Form..., because reason: String) {
        omitted += others.map { ($0, reason) }
        forms.removeAll(where: others.contains)
    }

    enum Next: Sendable {
        case sameServer
        case otherServer
        /// The configuration is at fault: the agent serves nobody.
        case nowhere
    }
}
