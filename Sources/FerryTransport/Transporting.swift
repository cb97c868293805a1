/// Carries transfers. `Transport` does it by the network; a stand-in for tests does it by a script.
///
/// Every accepted id gets exactly one result at the receiver, whatever happens.
package protocol Transporting: AnyObject, Sendable {
    /// Sets who receives; called once, before the first submit. The receiver is held weakly.
    func attach(_ receiver: any TransferReceiver)

    /// The loop a new transfer should go to, as the top byte of its id: the one on whose thread this is called, so that
    /// a task on a loop's executor stays there; else each in turn.
    func chooseLoop() -> UInt8

    /// Hands one transfer over, from any thread. What is thrown gets no result.
    func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure)

    /// Ends a transfer with `cancelled`, unless it has ended. Any thread; an unknown id is nothing.
    func cancel(_ id: TransferID)

    /// Goes on after a pause of receiving. Any thread.
    func resume(_ id: TransferID)

    /// Asks for bytes of the request's body again, after a `later`; what is held of the answer stays held. Any thread.
    func resumeSending(_ id: TransferID)

    /// Leaves the socket unread until `resume`. Any thread.
    func pause(_ id: TransferID)

    /// Sends the rest of a streamed body to a file, and resumes. Any thread.
    func write(_ id: TransferID, to sink: TransferSink)

    /// Moves a waiting transfer to another ring. Any thread.
    func setRing(_ ring: PriorityRing, of id: TransferID)

    /// Ends everything: what waits or runs is answered with `shutdown`, later submits throw it. Idempotent, does not
    /// wait.
    func shutdown()

    /// Names one of the loops in turn, for tasks that want to run on its thread; `nil` where there is no loop.
    func nextExecutor() -> (any TaskExecutor)?

    /// The clocks of all loops, for code that sends on their threads; empty where there is no loop.
    var clocks: [LoopClock] { get }

    var statistics: TransportStatistics { get }

    /// What the jar holds; empty without one. Any thread, as the three below.
    var cookies: [TransferCookie] { get }

    /// Whether the jar holds a cookie that has not expired. Unlike a list of them it costs the same for every jar.
    var hasCookies: Bool { get }

    /// Puts a cookie into the jar, in the place of one with its name, domain and path; nothing without a jar.
    func setCookie(_ cookie: TransferCookie)

    /// Empties the jar.
    func removeCookies()
}

/// Receives what a transport brings, on a loop's thread: none of these may block.
package protocol TransferReceiver: AnyObject, Sendable {
    /// All the results of one turn of a loop.
    func transfersFinished(_ results: [TransferResult])

    /// The transfer has left the queue. Only for those with `reportsStart`.
    func transferStarted(_ id: TransferID)

    /// The final head of a streamed response: a result without a body, and with what was measured so far.
    func transfer(_ id: TransferID, receivedHead head: TransferResult)

    /// The head of an informational response, as it came; it lives until this returns. Only for those with
    /// `reportsInformational`.
    func transfer(_ id: TransferID, receivedInformational head: UnsafeRawBufferPointer)

    /// The response is whole, with its trailers, and the request is still being sent. Only for those with `isDuplex`.
    func transfer(_ id: TransferID, answered result: TransferResult)

    /// A piece of a streamed body; it lives until this returns.
    func transfer(_ id: TransferID, receivedChunk chunk: UnsafeRawBufferPointer) -> TransferFlow

    /// So many bytes of the body have been written to its descriptor.
    func transfer(_ id: TransferID, written count: UInt64)

    /// Wants the next bytes of a request's body.
    func transfer(_ id: TransferID, fill space: UnsafeMutableRawBufferPointer) -> TransferFill

    /// Wants the trailers of a request, behind the end of its body: lines of fields. How many bytes they are; `nil`
    /// when there is no room. Only for those with `sendsTrailers`.
    func transfer(_ id: TransferID, fillTrailers space: UnsafeMutableRawBufferPointer) -> Int?

    /// The files of TLS have changed, and count for new connections; with a `fault` they cannot be used, and the old
    /// ones go on counting.
    func trustChanged(fault: String?)
}

extension Transporting {
    package func chooseLoop() -> UInt8 { 0 }
    package var clocks: [LoopClock] { [] }
    package func resume(_ id: TransferID) {}
    package func pause(_ id: TransferID) {}
    package func write(_ id: TransferID, to sink: TransferSink) {}
    package var cookies: [TransferCookie] { [] }
    package var hasCookies: Bool { !cookies.isEmpty }
    package func setCookie(_ cookie: TransferCookie) {}
    package func removeCookies() {}
}

extension TransferReceiver {
    package func trustChanged(fault: String?) {}
    package func transferStarted(_ id: TransferID) {}
    package func transfer(_ id: TransferID, receivedHead head: TransferResult) {}
    package func transfer(_ id: TransferID, receivedChunk chunk: UnsafeRawBufferPointer) -> TransferFlow { .proceed }
    package func transfer(_ id: TransferID, receivedInformational head: UnsafeRawBufferPointer) {}
    package func transfer(_ id: TransferID, answered result: TransferResult) {}
    package func transfer(_ id: TransferID, fillTrailers space: UnsafeMutableRawBufferPointer) -> Int? { nil }
    package func transfer(_ id: TransferID, written count: UInt64) {}
    package func transfer(_ id: TransferID, fill space: UnsafeMutableRawBufferPointer) -> TransferFill { .failed }
}

package enum TransferFlow: Sendable {
    case proceed
    /// Leaves the socket unread until `resume`.
    case pause
}

package enum TransferFill: Sendable {
    case bytes(Int)
    /// They stand in a file, and not in the space.
    case piece(TransferPiece)
    case end
    /// Nothing yet: `resumeSending` asks again.
    case later
    case failed
}

/// Gauges and counters, summed over the loops.
package struct TransportStatistics: Sendable, Equatable {
    package var waiting: UInt64 = 0
    package var resolving: UInt64 = 0
    package var running: UInt64 = 0
    package var sockets: UInt64 = 0
    package var handles: UInt64 = 0
    package var submitted: UInt64 = 0
    package var finished: UInt64 = 0
    package var connectionsOpened: UInt64 = 0
    package var lookups: UInt64 = 0
    package var refreshFaults: UInt64 = 0
    package var guardedConnections: UInt64 = 0
    package var turns: UInt64 = 0
    /// Microseconds.
    package var longestTurn: UInt64 = 0
    package var trustRenewals: UInt64 = 0
    package var trustFaults: UInt64 = 0
    /// By scheme, host and port, each once.
    package var origins: [String: OriginFigures] = [:]
    /// Of those that are forgotten.
    package var pastOrigins = OriginFigures()

    package init() {}
}

/// What is counted of the connections of one origin.
package struct OriginFigures: Sendable, Hashable {
    package var open: UInt64 = 0
    package var idle: UInt64 = 0
    package var pending: UInt64 = 0
    package var opened: UInt64 = 0
    package var reused: UInt64 = 0
    package var failed: UInt64 = 0
    /// Microseconds.
    package var waited: UInt64 = 0
    /// By ``CloseCause``.
    package var closed = [UInt64](repeating: 0, count: CloseCause.allCases.count)

    package init() {}

    package mutating func add(_ other: OriginFigures) {
        open += other.open
        idle += other.idle
        pending += other.pending
        opened += other.opened
        reused += other.reused
        failed += other.failed
        waited += other.waited
        for index in closed.indices { closed[index] += other.closed[index] }
    }
}

/// Why a connection was closed, in the core's order.
package enum CloseCause: Int, Sendable, CaseIterable {
    case error, lifetime, idle, server, poisoned, evicted, cancelled, request, shutdown, unknown
}
