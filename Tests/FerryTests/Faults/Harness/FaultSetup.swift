import Ferry
import FerryTesting
import Foundation

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
    /// The origin of another server, which has its faults by itself: it is asked instead.
    var elsewhere: String?
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
    /// Whether an answer is found in the cache afterwards, where it was asked to be kept; `nil` = either is right.
    var keeps: Bool?
    /// Later than this after the start is too late.
    var bound = Duration.seconds(10)
    /// When it has to end, by the middle one of its plays.
    private(set) var due: FaultDue?
    /// More memory than this must not be needed at any time, for server and client together.
    var memoryBound = 64_000_000
    /// Why it is not played in some forms, in a word.
    private(set) var omitted: [(form: Form, reason: String)] = []

    /// What it is played in.
    var forms = Form.allCases

    /// All ways to play it.
    var plays: [Play] { forms.flatMap(Play.andKept) }

    /// It means nothing in these forms.
    mutating func omit(_ others: Form..., because reason: String) {
        omitted += others.map { ($0, reason) }
        forms.removeAll(where: others.contains)
    }

    /// It ends when so much time has passed since the start, or since the cancel, and not before. A single play may be
    /// more than a second late.
    mutating func ends(after time: Duration = .zero, within tolerance: Duration = .milliseconds(200)) {
        due = FaultDue(time: time, tolerance: tolerance)
        bound = time + .milliseconds(1300)
    }

    enum Next: Sendable {
        case sameServer
        case otherServer
        /// A URL that is answered.
        case url(String)
        /// The configuration is at fault: the agent serves nobody.
        case nowhere
    }
}
