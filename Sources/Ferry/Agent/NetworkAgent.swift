import Dispatch
package import FerryTransport

/// Sends requests: owns the connections, the queue of what waits, and the table of what runs.
///
/// Several agents live side by side, each with threads and connections of its own. Libraries take one; small programs
/// use ``shared``. Shut it down with ``shutdown(grace:)`` or let ``withNetworkAgent(configuration:grace:isolation:_:)``
/// do it; one that is let go ends by itself when its last run is answered.
///
/// Every run gets exactly one result, whatever happens.
public final class NetworkAgent: Sendable {
    let core: AgentCore

    /// The configuration it was made with. Base, CDN and filters may have been updated since.
    public var configuration: NetworkConfiguration { core.configuration }

    /// An agent with a network of its own.
    ///
    /// What cannot be set up (a thread, a file of authorities) fails the runs, each with its own error.
    public convenience init(configuration: NetworkConfiguration = NetworkConfiguration()) {
        self.init(configuration: configuration, transport: makeNetworkTransport(configuration))
    }

    package convenience init(configuration: NetworkConfiguration, transport: any Transporting) {
        let recorded = configuration.recorder.map { RecordingTransport(transport, $0) as any Transporting }
        self.init(AgentCore(configuration, recorded ?? transport))
    }

    init(_ core: AgentCore) { self.core = core }

    /// One with the defaults, for small programs; it is never shut down.
    public static let shared = NetworkAgent()

    /// Sends a request and waits for its reply. Cancelling the task cancels the run, which then throws `cancelled`.
    ///
    /// The status is checked and the value made in the caller's task, not on the caller's actor.
    @discardableResult
    public nonisolated(nonsending) func send<R: Request>(_ request: R) async throws(RequestError) -> Reply<R.Value> {
        if CacheStage.applies(to: request, in: core) {
            return try await CachedRun.send(request, request.cacheMode, by: core)
        }
        let run = AwaitedRun.start(request, by: core)
        var answer = await run.answer(by: core)
        if !run.isEnd(answer, of: request, by: core) {
            answer = await run.goOn(request, after: answer, by: core)
        }
        // A caller on no actor stays where it is: every hop asks the runtime for an executor.
        if isOnNoActor() { return try run.conclude(request, answer, by: core) }
        return try await run.concludeOffActor(request, answer, by: core)
    }

    /// Cancels every run in flight. Each gets its one result, `cancelled`.
    public func cancelAll() { core.cancelAll() }

    /// Cancels the runs in flight whose request has this tag.
    public func cancelAll(tagged tag: String) { core.cancelAll(tagged: tag) }

    /// Gauges and counters.
    public var statistics: AgentStatistics { AgentStatistics(core.transport.statistics) }

    /// One of the agent's own threads, for tasks that should not change threads between a result and their next
    /// request: `Task(executorPreference: agent.taskExecutor) { … }`.
    ///
    /// For short code that does not block: nothing of the network moves while it runs. Every read names the next of the
    /// agent's loops in turn. After shutdown the jobs run on the global executor.
    public var taskExecutor: any TaskExecutor { core.transport.nextExecutor() ?? globalConcurrentExecutor }

    /// Ends the agent: refuses new runs with `shutdown`, waits up to `grace` for those in flight and their callbacks,
    /// then ends the rest with `shutdown`, and returns when every run has been answered. Within the grace a run goes on
    /// to its last response, redirects, retries and challenges included; the members of groups in flight and the runs
    /// of a token's refresh may begin. A refresh of the token that is under way is waited for, too. A callback that is
    /// still blocked, or stands in its queue, when the grace is over comes afterwards.
    ///
    /// Any number of times, also at once. Cancelling the task that waits ends its patience at once.
    public func shutdown(grace: Duration = .seconds(5)) async { await core.shutdown(grace: grace) }

    /// Waits until the task is cancelled or the agent is shut down, and then shuts it down with a grace of 5 seconds:
    /// the agent as one of the services of a program, in a task group or a `ServiceGroup` of swift-service-lifecycle,
    /// whose `Service` protocol this method satisfies. It returns when every run has been answered.
    public func run() async throws { try await run(grace: .seconds(5)) }

    /// The same, with a grace of one's own. The cancel of the task does not shorten the grace. Where the agent was shut
    /// down by somebody else, the grace is theirs; a cancel of the task then still begins this one.
    public func run(grace: Duration) async throws {
        await core.awaitClose()
        // In tasks of their own, as the cancelled one would end the patience of the shutdown.
        if Task.isCancelled { return await Task { await shutdown(grace: grace) }.value }
        let rest = Task { await shutdown(grace: .seconds(Int64.max)) }
        await withTaskCancellationHandler {
            await rest.value
        } onCancel: {
            Task {
                await shutdown(grace: grace)
                rest.cancel()
            }
        }
    }
}

func isOnNoActor(_ isolation: isolated (any Actor)? = #isolation) -> Bool { isolation == nil }

extension NetworkAgent {
    /// Where the paths of requests are joined to; at first the configuration's.
    ///
    /// It can be exchanged while the agent runs, on any thread: a request that is started afterwards goes to the new
    /// one, and what was started before stays with the old. A text that is no URL fails the requests that are joined to
    /// it, each with `invalidURL`.
    public var baseURL: String? {
        get { core.builder.servers.baseText }
        set { core.builder.updateServers { $0.replacing(base: newValue) } }
    }

    /// Where the paths of requests that use the CDN are joined to; at first the configuration's. It can be exchanged as
    /// ``baseURL`` can.
    public var cdnURL: String? {
        get { core.builder.servers.cdnText }
        set { core.builder.updateServers { $0.replacing(cdn: newValue) } }
    }

    /// What changes every path before it is joined, in their order; at first the configuration's. They can be exchanged
    /// as ``baseURL`` can. To add one to those that are there while another thread may do the same, use
    /// ``updateServers(_:)``.
    public var urlFilters: [any URLFilter] {
        get { core.builder.servers.filters }
        set { core.builder.updateServers { $0.replacing(filters: newValue) } }
    }

    /// Updates base, CDN and filters together, so that no request sees some of the new and some of the old.
    ///
    ///     agent.updateServers { servers in
    ///         servers.baseURL = "https://staging.example.com"
    ///         servers.urlFilters.append(ArgumentsFilter(["staging": true]))
    ///     }
    ///
    /// Any thread; two that do so at once come one after the other. `change` runs under the lock that every start
    /// takes: it must not block, and not use the agent.
    public func updateServers(_ change: (inout ServerSelection) -> Void) {
        core.builder.updateServers { servers in
            var selection = ServerSelection(
                baseURL: servers.baseText, cdnURL: servers.cdnText, urlFilters: servers.filters)
            change(&selection)
            return Servers(base: selection.baseURL, cdn: selection.cdnURL, filters: selection.urlFilters)
        }
    }
}

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

/// Gauges and counters of an agent's network, summed over its loops. Each is exact; together they may differ by a
/// moment.
///
/// A transfer is one exchange: a run with a redirect and a retry has three of them, one that the cache or an
/// interceptor answers has none.
public struct AgentStatistics: Sendable, Hashable {
    /// Transfers that wait for their turn.
    public let waiting: UInt64
    /// Transfers at work; those whose name is being looked up are.
    public let running: UInt64
    /// Transfers taken on since the start.
    public let submitted: UInt64
    /// Transfers answered since the start.
    public let finished: UInt64
    /// Sockets that are open.
    public let sockets: UInt64
    /// Connections opened since the start.
    public let connectionsOpened: UInt64
    /// Names looked up since the start.
    public let lookups: UInt64
    /// Of these, lookups that failed for a name that had been looked up before: its old addresses stayed in use.
    public let refreshFaults: UInt64
    /// Idle connections given up because bytes came that nobody had asked for.
    public let guardedConnections: UInt64
    /// Rounds of the loops since the start.
    public let turns: UInt64
    /// The longest of them: more than a few milliseconds speak of code that blocks on ``NetworkAgent/taskExecutor``.
    public let longestTurn: Duration
    /// Times that the files of ``TLSConfiguration`` had changed and were read again, by each loop.
    public let trustRenewals: UInt64
    /// Times that they had changed and could not be used, so that the old ones stayed in use.
    public let trustFaults: UInt64
    /// The connections of each origin that is in use, or was until ``NetworkConfiguration/idleConnectionTime`` ago; by
    /// `scheme://host:port`, without a port that is the scheme's own.
    public let origins: [String: ConnectionStatistics]
    /// The sums of all origins that have been forgotten since.
    public let forgottenOrigins: ConnectionStatistics

    init(_ from: TransportStatistics) {
        waiting = from.waiting
        running = from.running
        submitted = from.submitted
        finished = from.finished
        sockets = from.sockets
        connectionsOpened = from.connectionsOpened
        lookups = from.lookups
        refreshFaults = from.refreshFaults
        guardedConnections = from.guardedConnections
        turns = from.turns
        longestTurn = .microseconds(Int64(clamping: from.longestTurn))
        trustRenewals = from.trustRenewals
        trustFaults = from.trustFaults
        forgottenOrigins = ConnectionStatistics(from.pastOrigins)
        var origins: [String: ConnectionStatistics] = [:]
        origins.reserveCapacity(from.origins.count)
        for (origin, figures) in from.origins {
            origins[HostKey(url: origin + "/")?.text ?? origin] = ConnectionStatistics(figures)
        }
        self.origins = origins
    }
}

/// The transport of an agent that has a network. One that cannot be made fails every run, each with the reason.
func makeNetworkTransport(_ configuration: NetworkConfiguration) -> any Transporting {
    do throws(TransferFailure) {
        return try Transport(configuration.checkedTransport())
    } catch {
        return FailedTransport(error)
    }
}

/// Stands where no transport could be made.
private final class FailedTransport: Transporting {
    private let failure: TransferFailure

    init(_ failure: TransferFailure) { self.failure = failure }

    func attach(_ receiver: any TransferReceiver) {}
    func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure) { throw failure }
    func cancel(_ id: TransferID) {}
    func resumeSending(_ id: TransferID) {}
    func setRing(_ ring: PriorityRing, of id: TransferID) {}
    func shutdown() {}
    func nextExecutor() -> (any TaskExecutor)? { nil }
    var statistics: TransportStatistics { TransportStatistics() }
}

#if FERRY_TSAN
import FerryTransport

/// Shadows `Synchronization.Mutex` in this module, in builds for the thread sanitizer only; FerryTransport says why.
struct Mutex<Value: ~Copyable>: ~Copyable, Sendable {
    private let base: FerryTransport.Mutex<Value>

    init(_ initial: consuming sending Value) { base = FerryTransport.Mutex(initial) }

    borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try base.withLock(body)
    }
}
#endif
