/// Carries transfers. `Transport` does it over the network; a stand-in for tests follows a script.
///
/// The receiver gets exactly one result for every accepted id.
package protocol Transporting: AnyObject, Sendable {
    /// Sets the receiver; called once, before the first submit. The receiver is held weakly.
    func attach(_ receiver: any TransferReceiver)

    /// Chooses the loop for a new transfer, as the top byte of its id. On a loop's thread it is that loop, so that a
    /// task on a loop's executor stays there; otherwise the loops alternate.
    func chooseLoop() -> UInt8

    /// Submits one transfer. Any thread. If it throws, there is no result.
    func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure)

    /// Ends a transfer with `cancelled`, unless it has ended. An unknown id is ignored. Any thread.
    func cancel(_ id: TransferID)

    /// Continues receiving after a pause. Any thread.
    func resume(_ id: TransferID)

    /// Asks for bytes of the request's body again, after a `later`. A response that is held stays held. Any thread.
    func resumeSending(_ id: TransferID)

    /// Stops reading the socket until `resume`. Any thread.
    func pause(_ id: TransferID)

    /// Writes the rest of a streamed body to a file, and resumes. Any thread.
    func write(_ id: TransferID, to sink: TransferSink)

    /// Moves a waiting transfer to another queue. Any thread.
    func setRing(_ ring: PriorityRing, of id: TransferID)

    /// Ends everything: queued and running transfers end with `shutdown`, and later submits throw it. Idempotent; does
    /// not wait.
    func shutdown()

    /// Returns the executors of the loops in turn, for tasks that want to run on a loop's thread; `nil` if there is no
    /// loop.
    func nextExecutor() -> (any TaskExecutor)?

    /// The clocks of all loops, for code that sends on their threads; empty if there is no loop.
    var clocks: [LoopClock] { get }

    var statistics: TransportStatistics { get }

    /// The cookies in the jar; empty without a jar. Any thread, like the four members below.
    var cookies: [TransferCookie] { get }

    /// Whether the jar holds a cookie that has not expired. The cost does not depend on the size of the jar.
    var hasCookies: Bool { get }

    /// Grows whenever a cookie is set.
    var cookieAdditions: UInt64 { get }

    /// Puts a cookie into the jar; it replaces one with the same name, domain and path. No effect without a jar.
    func setCookie(_ cookie: TransferCookie)

    /// Removes all cookies.
    func removeCookies()
}

/// Receives the results of a transport, on a loop's thread: none of these may block.
package protocol TransferReceiver: AnyObject, Sendable {
    /// Delivers all results of one turn of a loop.
    func transfersFinished(_ results: [TransferResult])

    /// The transfer has left the queue. Only called for those with `reportsStart`.
    func transferStarted(_ id: TransferID)

    /// Delivers the final head of a streamed response: a result without a body, with the measurements so far.
    func transfer(_ id: TransferID, receivedHead head: TransferResult)

    /// The head of an informational response, as received; it is valid until this returns. Only for those with
    /// `reportsInformational`.
    func transfer(_ id: TransferID, receivedInformational head: UnsafeRawBufferPointer)

    /// The response is complete, with its trailers, but the request is still being sent. Only for those with
    /// `isDuplex`.
    func transfer(_ id: TransferID, answered result: TransferResult)

    /// Delivers a piece of a streamed body; it is valid until this returns.
    func transfer(_ id: TransferID, receivedChunk chunk: UnsafeRawBufferPointer) -> TransferFlow

    /// This many bytes of the body have been written to its descriptor.
    func transfer(_ id: TransferID, written count: UInt64)

    /// Asks for the next bytes of a request's body.
    func transfer(_ id: TransferID, fill space: UnsafeMutableRawBufferPointer) -> TransferFill

    /// Asks for the trailers of a request after the end of its body, as lines. Returns their size; `nil` if there is
    /// not enough room. Only for those with `sendsTrailers`.
    func transfer(_ id: TransferID, fillTrailers space: UnsafeMutableRawBufferPointer) -> Int?

    /// The TLS files have changed and apply to new connections. With a `fault` they are unusable, and the old ones stay
    /// in use.
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
    package var cookieAdditions: UInt64 { 0 }
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
    /// Stop reading the socket until `resume`.
    case pause
}

package enum TransferFill: Sendable {
    case bytes(Int)
    /// The bytes are in a file, not in the space.
    case piece(TransferPiece)
    case end
    /// No bytes yet: `resumeSending` asks again.
    case later
    case failed
}

/// Gauges and counters, summed over the event loops.
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
    /// In microseconds.
    package var longestTurn: UInt64 = 0
    package var trustRenewals: UInt64 = 0
    package var trustFaults: UInt64 = 0
    /// The figures by scheme, host and port.
    package var origins: [String: OriginFigures] = [:]
    /// The sums of origins that were forgotten.
    package var pastOrigins = OriginFigures()

    package init() {}
}

/// The figures of the connections to one origin.
package struct OriginFigures: Sendable, Hashable {
    package var open: UInt64 = 0
    package var idle: UInt64 = 0
    package var pending: UInt64 = 0
    package var opened: UInt64 = 0
    package var reused: UInt64 = 0
    package var failed: UInt64 = 0
    /// In microseconds.
    package var waited: UInt64 = 0
    /// The number of closed connections by ``CloseCause``.
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
