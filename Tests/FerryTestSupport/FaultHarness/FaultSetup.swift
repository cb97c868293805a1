import Ferry
import FerryTesting
import Foundation

/// How a case differs from the usual one.
struct FaultSetup {
    var server = LoopbackServer.Options()
    var configuration = NetworkConfiguration()
    var probe = HTTPRequest.probe()
    /// The request to the server.
    var path = "/fault"
    /// The text before the secret in the query.
    var query: String?
    /// The name of the server in URLs; its address if this is nil.
    var host: String?
    /// The origin of another server with faults of its own, which gets the request instead.
    var elsewhere: String?
    /// Handlers and further scripts.
    var install: (LoopbackServer) -> Void = { _ in }
    /// Where the script is played; by default for the path.
    var place: LoopbackScript.Rule.Place?
    /// The target of the request after the fault.
    var next = Next.sameServer
    /// Whether the error names the URL made from these settings; not if the probe has one of its own.
    var checksURL = true
    /// Whether the server can see that a connection is closed.
    var seesClose = true
    /// Whether a cacheable response must be in the cache afterwards; `nil` = either is right.
    var keeps: Bool?
    /// The latest time after the start.
    var bound = Duration.seconds(10)
    /// When it has to end, by the median of its plays.
    private(set) var due: FaultDue?
    /// The maximum memory at any time, for server and client together.
    var memoryBound = 64_000_000
    /// Why it is not played in some forms, in a word.
    private(set) var omitted: [(form: Form, reason: String)] = []

    /// The forms that it is played in.
    var forms = Form.allCases

    /// All ways to play it.
    var plays: [Play] { forms.flatMap(Play.andKept) }

    /// Leaves out these forms, in which it has no meaning.
    mutating func omit(_ others: Form..., because reason: String) {
        omitted += others.map { ($0, reason) }
        forms.removeAll(where: others.contains)
    }

    /// It ends when this time has passed since the start, or since the cancel, and not before. A single play may be
    /// more than a second late.
    mutating func ends(after time: Duration = .zero, within tolerance: Duration = .milliseconds(200)) {
        due = FaultDue(time: time, tolerance: tolerance)
        bound = time + .milliseconds(1300)
    }

    enum Next: Sendable {
        case sameServer
        case otherServer
        /// A URL that gets a response.
        case url(String)
        /// The error is in the configuration: every request of the agent fails.
        case nowhere
    }
}
