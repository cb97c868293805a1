import Dispatch
// Ferry's own signatures use `JSON`, `JSONSchema` and `CacheStorage`, so importing Ferry also imports their modules.
@_exported public import FerryCache
@_exported public import FerryJSON
package import FerryTransport

/// Sends requests. An agent owns the connections, the queue of waiting requests, and the table of runs.
///
/// A program may have several agents, each with its own threads and connections. A library should take an agent as a
/// parameter; small programs can use ``shared``. Shut an agent down with ``shutdown(grace:)``, or use
/// ``withNetworkAgent(configuration:grace:isolation:_:)``. An agent that is released without a shutdown ends after its
/// last run.
///
/// Every run gets exactly one result.
public final class NetworkAgent: Sendable {
    let core: AgentCore

    /// The configuration that the agent was created with. Base URL, CDN URL and filters may have been updated since.
    public var configuration: NetworkConfiguration { core.configuration }

    /// Creates an agent.
    ///
    /// If something cannot be set up (a thread, an authority file), every run fails with the reason.
    public convenience init(configuration: NetworkConfiguration = NetworkConfiguration()) {
        self.init(configuration: configuration, transport: makeNetworkTransport(configuration))
    }

    package convenience init(configuration: NetworkConfiguration, transport: any Transporting) {
        let recorded = configuration.recorder.map { RecordingTransport(transport, $0) as any Transporting }
        self.init(AgentCore(configuration, recorded ?? transport))
    }

    init(_ core: AgentCore) { self.core = core }

    /// An agent with the default configuration, for small programs. It is never shut down.
    public static let shared = NetworkAgent()

    /// Sends a request and returns its reply. Cancelling the task cancels the run, which then throws `cancelled`.
    ///
    /// Validation and decoding run in the caller's task, but not on the caller's actor.
    @discardableResult
    public nonisolated(nonsending) func send<R: Request>(_ request: R) async throws(RequestError) -> Reply<R.Value> {
        if core.usesCache(request) {
            return try await CachedRun.send(request, request.cacheMode, by: core)
        }
        let run = AwaitedRun.start(request, by: core)
        var answer = await run.answer(by: core)
        if !run.isEnd(answer, by: core) {
            answer = await run.goOn(request, after: answer, by: core)
        }
        // If the caller is on no actor, stay here: every hop asks the runtime for an executor.
        if isOnNoActor() { return try run.conclude(request, answer, by: core) }
        return try await run.concludeOffActor(request, answer, by: core)
    }

    /// Cancels all active runs. Each gets its one result, `cancelled`.
    public func cancelAll() { core.cancelAll() }

    /// Cancels all active runs whose request has this tag.
    public func cancelAll(tagged tag: String) { core.cancelAll(tagged: tag) }

    /// The gauges and counters of the network.
    public var statistics: AgentStatistics { AgentStatistics(core.transport.statistics) }

    /// A task executor on one of the agent's event loops, for tasks that should not change threads between a result and
    /// their next request: `Task(executorPreference: agent.taskExecutor) { … }`.
    ///
    /// Use it for short code that does not block, because the event loop does nothing else while it runs. Each read
    /// returns the next event loop in turn. After a shutdown, jobs run on the global executor.
    public var taskExecutor: any TaskExecutor { core.transport.nextExecutor() ?? globalConcurrentExecutor }

    /// Shuts the agent down. It refuses new runs with `shutdown`, waits up to `grace` for active runs and their
    /// callbacks, ends the remaining runs with `shutdown`, and returns when every run has its result. The default grace
    /// period is 5 seconds. Then it waits until the cache has written what is queued, at most 10 seconds more.
    ///
    /// Within the grace period active runs continue with their redirects, retries and challenges. Members of active
    /// groups and the requests of a token refresh may still start. Shutdown also waits for an active token refresh. A
    /// callback that is blocked or queued when the grace period ends is called later. The same applies to code that
    /// creates the value of a run, and to a run that waits for a blocked queue: such a run gets its result after the
    /// shutdown.
    ///
    /// It may be called several times, also concurrently. Cancelling the waiting task ends the grace period at once.
    public func shutdown(grace: Duration = .seconds(5)) async { await core.shutdown(grace: grace) }

    /// Waits until the task is cancelled or the agent is shut down, then shuts it down with a grace period of 5
    /// seconds, and returns when every run has its result. Use it to run the agent in a task group. It has the form of
    /// `Service` in swift-service-lifecycle; it does not react to a graceful shutdown of a `ServiceGroup`, only to a
    /// cancellation, so wrap it in `cancelWhenGracefulShutdown`.
    public func run() async throws { try await run(grace: .seconds(5)) }

    /// Like ``run()``, with your own grace period. Cancelling the task does not shorten it. If the agent was shut down
    /// elsewhere, the grace period of that shutdown applies until the task is cancelled, which starts this one.
    public func run(grace: Duration) async throws {
        await core.awaitClose()
        // In a task of its own, because a cancelled task would end the grace period of the shutdown.
        if Task.isCancelled { return await Task { await shutdown(grace: grace) }.value }
        let rest = Task { await core.shutdown(grace: .seconds(Int64.max), follows: true) }
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
    /// The URL to which the paths of requests are joined. Its initial value is the configuration's.
    ///
    /// Change it at any time, on any thread. Runs that start afterwards use the new URL; earlier runs keep the old one.
    /// If the text is not a valid URL, requests that are joined to it fail with `invalidURL`.
    public var baseURL: String? {
        get { core.builder.servers.baseText }
        set { core.builder.updateServers { $0.replacing(base: newValue) } }
    }

    /// The URL to which the paths of requests that use the CDN are joined. Its initial value is the configuration's,
    /// and it can be changed like ``baseURL``.
    public var cdnURL: String? {
        get { core.builder.servers.cdnText }
        set { core.builder.updateServers { $0.replacing(cdn: newValue) } }
    }

    /// The filters that change every path before it is joined, in their order. The initial value is the
    /// configuration's, and it can be changed like ``baseURL``. To add a filter while other threads may do the same,
    /// use ``updateServers(_:)``.
    public var urlFilters: [any URLFilter] {
        get { core.builder.servers.filters }
        set { core.builder.updateServers { $0.replacing(filters: newValue) } }
    }

    /// Changes base URL, CDN URL and filters together, so that no request sees a mixture of old and new values.
    ///
    ///     agent.updateServers { servers in
    ///         servers.baseURL = "https://staging.example.com"
    ///         servers.urlFilters.append(ArgumentsFilter(["staging": true]))
    ///     }
    ///
    /// Call it from any thread; concurrent calls run one after another. `change` runs under the lock that every start
    /// of a run takes, so it must not block or use the agent.
    public func updateServers(_ change: (inout ServerSelection) -> Void) {
        core.builder.updateServers { servers in
            var selection = ServerSelection(
                baseURL: servers.baseText, cdnURL: servers.cdnText, urlFilters: servers.filters)
            change(&selection)
            return Servers(base: selection.baseURL, cdn: selection.cdnURL, filters: selection.urlFilters)
        }
    }
}

/// Creates an agent, calls `body` with it, and shuts it down, also if `body` throws.
///
///     let reply = try await withNetworkAgent { agent in try await agent.send(UserInfo(id: 7)) }
///
/// `grace` is the time that runs still active after `body` may take. The default is 5 seconds.
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

/// Gauges and counters of an agent's network, summed over its event loops. Each figure is exact, but they may be read
/// at slightly different times.
///
/// A transfer is one exchange: a run with a redirect and a retry has three, and a run whose response comes from the
/// cache or an interceptor has none.
public struct AgentStatistics: Sendable, Hashable {
    /// Transfers in the queue.
    public let waiting: UInt64
    /// Active transfers, including those in a name lookup.
    public let running: UInt64
    /// Transfers submitted since the start.
    public let submitted: UInt64
    /// Transfers finished since the start.
    public let finished: UInt64
    /// Open sockets.
    public let sockets: UInt64
    /// Connections opened since the start.
    public let connectionsOpened: UInt64
    /// Name lookups since the start.
    public let lookups: UInt64
    /// Repeated lookups of a name that failed. Each is repeated after 5 seconds. The old addresses stay in use for ten
    /// minutes after the last successful lookup; then requests fail with `dns`, and their lookups do not count here.
    public let refreshFaults: UInt64
    /// Idle connections closed because unsolicited bytes arrived on them.
    public let guardedConnections: UInt64
    /// Turns of the event loops since the start.
    public let turns: UInt64
    /// The longest turn. More than a few milliseconds suggest code that blocks on ``NetworkAgent/taskExecutor``.
    public let longestTurn: Duration
    /// How often the files of ``TLSConfiguration`` had changed and were read again, counted for each event loop.
    public let trustRenewals: UInt64
    /// How often the files had changed but could not be used, so that the old ones stayed in use.
    public let trustFaults: UInt64
    /// The connections by origin, `scheme://host:port` without the scheme's default port. An origin is listed while it
    /// is in use and for ``NetworkConfiguration/idleConnectionTime`` afterwards.
    public let origins: [String: ConnectionStatistics]
    /// The sums of all origins that are no longer listed.
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

/// Creates the transport of an agent with a network. If that fails, every run fails with the reason.
func makeNetworkTransport(_ configuration: NetworkConfiguration) -> any Transporting {
    do throws(TransferFailure) {
        return try Transport(configuration.checkedTransport())
    } catch {
        return FailedTransport(error)
    }
}

/// The transport of an agent whose transport could not be created.
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

extension AgentCore {
    /// Whether a run of a request begins with the cache, or shares its transfer.
    func usesCache<R: Request>(_ request: R) -> Bool {
        (cache != nil && cachePolicy(of: request).isOn) || request.coalesces || request.cacheMode.way == .cacheOnly
    }
}
