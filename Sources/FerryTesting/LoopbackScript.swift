/// What the server does on a connection, step by step.
///
/// ```swift
/// server.script(path: "/slow", [
///     .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
///     .mark("half"),              // try await server.waitForMark("half")
///     .wait("go"),                // server.signal("go")
///     .send("cde"),
///     .serve,
/// ])
/// ```
///
/// A sending step ends when all its bytes were handed to the system. When the steps run out, the connection stays open
/// and silent until the client closes it. A client that goes away while a step waits for it or for the time ends the
/// script.
///
/// On a server that speaks TLS the handshake comes before the first step; unless that is `.plain`, `.stallHandshake`
/// or `.closeHandshake`, or there is a `.startTLS`: then it is there.
///
/// Scripts are read from JSON too, see ``Step`` and ``Rule``.
public struct LoopbackScript: Sendable, Equatable, ExpressibleByArrayLiteral {
    /// The steps, in order.
    public var steps: [Step]

    /// Makes a script of these steps.
    public init(_ steps: [Step]) {
        self.steps = steps
    }

    /// Makes a script of these steps.
    public init(arrayLiteral elements: Step...) {
        steps = elements
    }

    /// One step.
    ///
    /// In JSON a step is a string, `"expectHead"`, or an object whose first word is the step's:
    /// `{"send": "text"}`, `{"sendBase64": "…"}`, either with `"times": 200000`;
    /// `{"expectBytes": 100}`, `{"pattern": 1000}`, `{"drip": "text", "interval": 50, "chunk": 1}`,
    /// `{"pause": 50}`, `{"wait": "go"}`, `{"mark": "half"}`. Times are milliseconds.
    public enum Step: Sendable, Equatable {
        /// Reads a request up to its empty line; it is counted and recorded.
        case expectHead
        /// Reads the body that the last head announced, by length or in chunks.
        case expectBody
        /// Reads so many bytes.
        case expectBytes(Int)
        /// Reads until the client closes its side.
        case expectClose
        /// Sends text as it stands.
        case send(String)
        /// Sends bytes.
        case sendBytes([UInt8])
        /// Sends text so many times, without ever holding it so many times.
        case repeating(String, times: Int)
        /// Sends bytes so many times, likewise.
        case repeatingBytes([UInt8], times: Int)
        /// Sends so many bytes of ``LoopbackServer/pattern(_:)``.
        case pattern(bytes: Int)
        /// Sends text in pieces of `chunk` bytes, one each interval.
        case drip(String, interval: Duration, chunk: Int = 1)
        /// Waits; whole milliseconds.
        case pause(Duration)
        /// Waits until ``LoopbackServer/signal(_:)`` was called with this name.
        case wait(String)
        /// Lets ``LoopbackServer/waitForMark(_:count:)`` of this name return.
        case mark(String)
        /// Closes with FIN; on TLS with close_notify before it.
        case close
        /// Closes with FIN, on TLS without close_notify.
        case drop
        /// Closes with RST.
        case reset
        /// Sends FIN, and goes on reading.
        case halfClose
        /// Leaves the socket unread from here on.
        case stopReading
        /// Stays open and silent until the client closes, as at the end.
        case keepOpen
        /// Goes on as the ordinary server, for this connection's next request.
        case serve
        /// Begins again. When no step since the start waited for the client or the time, this is `.keepOpen`.
        case restart
        /// Does the TLS handshake here.
        case startTLS
        /// No TLS on this connection, though the server speaks it. First step only.
        case plain
        /// Takes the client's hello and never answers it. First step only.
        case stallHandshake
        /// Takes the client's hello and closes. First step only.
        case closeHandshake
    }

    /// A script and where it is played.
    ///
    /// In JSON `{"path": "/slow", "uses": 1, "steps": […]}`, `{"connection": 2, "steps": […]}`,
    /// `{"connections": [2, 5], "steps": […]}`, or for every connection `{"steps": […]}`. A file of them is
    /// `{"scripts": […]}`.
    public struct Rule: Sendable, Equatable {
        /// Where a script is played.
        public enum Place: Sendable, Equatable {
            /// On requests whose path begins so.
            case path(String)
            /// On connections with these numbers, 1 for the first accepted.
            case connections(ClosedRange<Int>)
            /// On every connection.
            case everyConnection
        }

        /// Where it is played.
        public var place: Place
        /// How often; nil without a bound.
        public var uses: Int?
        /// What is played.
        public var script: LoopbackScript

        /// Makes a rule.
        public init(_ place: Place, uses: Int? = nil, _ script: LoopbackScript) {
            self.place = place
            self.uses = uses
            self.script = script
        }
    }
}
