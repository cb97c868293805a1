import FerrySynchronization
import FerryTransport
import FoundationEssentials

/// The token of an agent, independent of the token's type, and the runs that wait for a new one.
protocol TokenSession: Sendable {
    /// The request with the current token, and the generation of that token. Waits for an active refresh, and starts
    /// one if there is no token yet.
    func prepared(
        _ request: OutgoingRequest, for control: RunControl, until deadline: ContinuousClock.Instant?
    ) async throws(RequestError) -> (request: OutgoingRequest, generation: UInt64)

    /// Whether the response means that the token was refused.
    func isRefused(_ response: Response) -> Bool

    /// The token of a run was refused. Starts a refresh if none is active, and waits for it; `waits` is called first. A
    /// run that cannot be sent again does not wait.
    func refused(
        _ url: String, generation: UInt64, wasReplayed: Bool, isReplayable: Bool, for control: RunControl,
        until deadline: ContinuousClock.Instant?, waits: () -> Void
    ) async throws(RequestError) -> TokenRefusal

    /// The token of a run was accepted. `refresh` is the number of the refresh that the run has started itself.
    func accepted(generation: UInt64, after refresh: UInt64?)

    /// Ends the session: from now on no run gets a token.
    func shutDown()

    /// The generation of the current token. No two tokens have the same generation.
    var generation: UInt64 { get }

    /// The request with the current token, valid or not; `nil` without one. Starts no refresh.
    func withCurrentToken(_ request: OutgoingRequest) -> OutgoingRequest?
}

/// What follows when the token of a run was refused.
struct TokenRefusal: Sendable {
    /// Whether the request must be sent again.
    var isReplayed = false
    /// The number of the refresh that the run has started.
    var refresh: UInt64?
}

/// The session of one authenticator.
final class AuthenticatorSession<A: Authenticator>: TokenSession {
    fileprivate struct State {
        var machine: RefreshMachine
        var token: A.Token?
        /// When the token expires, in seconds since 2001; below, when it must be replaced.
        var expiry: Double?
        var dueTime = Double.infinity
        /// The waiting runs by number. A run like a segmented download may wait several times at once.
        var waiting: [UInt64: OneShot<Outcome>] = [:]
        fileprivate var numbers: UInt64 = 0
        var refresh: (number: UInt64, task: Task<Void, Never>)?
    }

    /// What happens to a run that waited.
    fileprivate struct Outcome: Sendable {
        var action: RefreshMachine.Action
        /// Why there is no token; `nil` if there is one.
        var fault: (any Error)?
    }

    /// An entry among the waiting ones.
    fileprivate struct Turn: Sendable {
        let number: UInt64
        let outcome: OneShot<Outcome>
    }

    private let state: Mutex<State>
    private let authenticator: A
    private unowned let core: AgentCore

    init(_ authenticator: A, _ core: AgentCore) {
        self.authenticator = authenticator
        self.core = core
        let token = authenticator.token
        var state = State(machine: RefreshMachine(core.configuration.refreshLimit))
        let lead = core.configuration.tokenRefreshLead
        state.take(token, until: token.flatMap(authenticator.expiration), lead: lead, isNew: false)
        self.state = Mutex(state)
    }

    var generation: UInt64 { state.withLock { $0.machine.generation } }

    func withCurrentToken(_ request: OutgoingRequest) -> OutgoingRequest? {
        state.withLock { $0.token }.map { applied($0, to: request) }
    }

    func isRefused(_ response: Response) -> Bool { authenticator.isRefused(response) }

    func prepared(
        _ request: OutgoingRequest, for control: RunControl, until deadline: ContinuousClock.Instant?
    ) async throws(RequestError) -> (request: OutgoingRequest, generation: UInt64) {
        if control.isRefresh { return (request, 0) }
        let (action, token, turn, early) = state.withLock {
            state -> (RefreshMachine.Action, A.Token?, Turn?, UInt64?) in
            let number = state.nextNumber()
            var action = state.machine.starting(number, isRefresh: false)
            guard case .send = action else { return (action, state.token, state.keep(number, action), nil) }
            if state.token == nil {
                action = state.machine.missing(number)
            } else if state.dueTime < .infinity, let expiry = state.expiry {
                let now = Date.now.timeIntervalSinceReferenceDate
                if now >= expiry {
                    action = state.machine.expiring(number, isOver: true)
                } else if now >= state.dueTime {
                    let generation = state.machine.generation
                    // The token is still valid, so the refresh runs in parallel with the run.
                    if case .startRefresh(let early) = state.machine.expiring(number, isOver: false) {
                        return (.send(generation: generation), state.token, nil, early)
                    }
                }
            }
            return (action, state.token, state.keep(number, action), nil)
        }
        if let early { start(early) }
        if case .send(let generation) = action, let token { return (applied(token, to: request), generation) }
        if case .startRefresh(let number) = action { start(number) }
        let outcome = try await outcome(of: action, turn, request.url, control, deadline)
        switch (outcome.action, state.withLock { $0.token }) {
        case (.send(let generation), let token?), (.replay(let generation), let token?):
            return (applied(token, to: request), generation)
        default:
            throw outcome.fault.map { .withoutToken($0, url: request.url) }
                ?? RequestError(TransferFailure(.shutdown), url: request.url)
        }
    }

    func refused(
        _ url: String, generation: UInt64, wasReplayed: Bool, isReplayable: Bool, for control: RunControl,
        until deadline: ContinuousClock.Instant?, waits: () -> Void
    ) async throws(RequestError) -> TokenRefusal {
        let resource = url.prefix { $0 != "?" && $0 != "#" }.hashValue
        let (action, turn) = state.withLock { state in
            let number = state.nextNumber()
            let action = state.machine.unauthorized(
                number, generation: generation, wasReplayed: wasReplayed, isRefresh: control.isRefresh, by: resource,
                waits: isReplayable)
            return (action, isReplayable ? state.keep(number, action) : nil)
        }
        var refusal = TokenRefusal()
        // Before the refresh starts, because it may need the place.
        if turn != nil { waits() }
        if case .startRefresh(let number) = action {
            start(number)
            refusal.refresh = number
        }
        guard isReplayable else { return refusal }
        if case .replay = try await outcome(of: action, turn, url, control, deadline).action {
            refusal.isReplayed = true
        }
        return refusal
    }

    func accepted(generation: UInt64, after refresh: UInt64?) {
        state.withLock { $0.machine.accepted(generation: generation, after: refresh) }
    }

    func shutDown() {
        let (released, task) = state.withLock { state in
            (state.release(state.machine.shutDown(), nil), state.refresh.take())
        }
        for (turn, outcome) in released { turn.finish(outcome) }
        task?.task.cancel()
    }

    private func applied(_ token: A.Token, to request: OutgoingRequest) -> OutgoingRequest {
        var request = request
        authenticator.apply(token, to: &request)
        return request
    }

    /// Waits for the outcome of a run that has to wait.
    private func outcome(
        of action: RefreshMachine.Action, _ turn: Turn?, _ url: String, _ control: RunControl,
        _ deadline: ContinuousClock.Instant?
    ) async throws(RequestError) -> Outcome {
        guard let turn else { return Outcome(action: action) }
        do throws(RequestError) {
            return try await control.ask(url, until: deadline) { await turn.outcome.value() }
        } catch {
            state.withLock { state in
                _ = state.machine.cancelled(turn.number)
                state.waiting[turn.number] = nil
            }
            // The session no longer knows this entry, so nobody else ends its wait.
            turn.outcome.finish(Outcome(action: .giveUp, fault: error))
            throw error
        }
    }

    private func start(_ number: UInt64) {
        let agent = NetworkAgent(core)
        core.refreshBegan()
        let task = Task.detached { [self] in
            let scope = RefreshScope(agent.core)
            defer {
                scope.isOver.store(true, ordering: .relaxed)
                agent.core.refreshEnded()
            }
            await RefreshScope.$current.withValue(scope) {
                let old = state.withLock { $0.token }
                do {
                    end(number, .success(try await authenticator.refresh(old, with: agent)))
                } catch {
                    end(number, .failure(error))
                }
            }
        }
        // The task may already have ended. Then cancelling it has no effect, and another may have begun.
        let isShutDown = state.withLock { state in
            if number > state.refresh?.number ?? 0 { state.refresh = (number, task) }
            return state.machine.isShutDown
        }
        if isShutDown { task.cancel() }
    }

    private func end(_ number: UInt64, _ result: Result<A.Token, any Error>) {
        let expiration = (try? result.get()).flatMap { authenticator.expiration(of: $0) }
        let lead = core.configuration.tokenRefreshLead
        let released = state.withLock { state in
            switch result {
            case .success(let token):
                let released = state.machine.refreshed(number)
                state.take(token, until: expiration, lead: lead, isNew: true)
                if let expiry = state.expiry, expiry > Date.now.timeIntervalSinceReferenceDate {
                    state.machine.lasts(number)
                }
                return state.release(released, nil)
            case .failure(let error):
                return state.release(state.machine.refreshFailed(number), error)
            }
        }
        for (turn, outcome) in released { turn.finish(outcome) }
    }
}

extension RequestError {
    /// The error of a run without a token. The code is that of the refresh, but not its phase, because this run was not
    /// sent.
    fileprivate static func withoutToken(_ fault: any Error, url: String) -> RequestError {
        guard let error = fault as? RequestError else { return .thrown(fault, url: url) }
        return RequestError(preparing: error.code, message: error.message, url: url, cause: error).ofApplication
    }
}

extension AuthenticatorSession.State {
    /// Sets the token to send from now on. A new token whose lifetime is short is replaced after half of its lifetime.
    fileprivate mutating func take(_ token: A.Token?, until expiration: Date?, lead: Duration, isNew: Bool) {
        self.token = token
        expiry = expiration?.timeIntervalSinceReferenceDate
        let half = expiry.map { max($0 - Date.now.timeIntervalSinceReferenceDate, 0) / 2 } ?? 0
        let lead = max(lead / .seconds(1), 0)
        dueTime = expiry.map { $0 - (isNew ? min(lead, half) : lead) } ?? .infinity
    }

    /// A number that no other entry has.
    fileprivate mutating func nextNumber() -> UInt64 {
        numbers += 1
        return numbers
    }

    /// The entry of a waiting run.
    fileprivate mutating func keep(_ number: UInt64, _ action: RefreshMachine.Action) -> AuthenticatorSession.Turn? {
        switch action {
        case .startRefresh, .wait:
            let outcome = OneShot<AuthenticatorSession.Outcome>()
            waiting[number] = outcome
            return AuthenticatorSession.Turn(number: number, outcome: outcome)
        case .send, .replay, .giveUp: return nil
        }
    }

    fileprivate mutating func release(
        _ runs: [(run: RefreshMachine.RunID, action: RefreshMachine.Action)], _ fault: (any Error)?
    ) -> [(OneShot<AuthenticatorSession.Outcome>, AuthenticatorSession.Outcome)] {
        runs.compactMap { run, action in
            waiting.removeValue(forKey: run).map { ($0, AuthenticatorSession.Outcome(action: action, fault: fault)) }
        }
    }
}

/// The refresh that the current task belongs to: what it sends must not wait for that refresh. A task that the refresh
/// has started and that outlives it belongs to it no longer.
final class RefreshScope: Sendable {
    @TaskLocal static var current: RefreshScope?

    /// The agent whose token is being refreshed.
    let core: ObjectIdentifier
    let isOver = Atomic<Bool>(false)

    init(_ core: AgentCore) { self.core = ObjectIdentifier(core) }
}
