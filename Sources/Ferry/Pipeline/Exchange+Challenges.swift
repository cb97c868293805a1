import FerrySynchronization
import FerryTransport

extension Exchange {
    /// A credential, and where it may be sent.
    struct Granted: Sendable {
        var credential: Credential
        var schemes: CredentialSchemes
        /// The origin that it is for; `nil` for a proxy, and for that of the request, which goes where that goes.
        var origin: String?
        /// The proxy that the credential is for, `host:port`; `nil` for a server.
        var proxy: String?
        /// It was granted before any redirect, not for a target: a worker of the same download begins with it.
        var isFirst = false
    }

    /// Begins with what the other workers of the same download were granted.
    mutating func takeGrants() {
        guard let shared = carrier?.grants else { return }
        (granted, seenGrants) = shared.all
        if granted.isEmpty { return }
        hasUnknownCredentials = true
        // That of a target is added on the way there: the first URL may need another one, even on the same server.
        credentials += granted.filter { $0.isFirst && $0.origin != nil }
    }

    /// How many servers an adapter may choose in vain.
    private static let mostChallenges = 10

    /// Handles a challenge (RFC 9110, 11.4). The provider is asked once for each server and once for the proxy; after a
    /// redirect each may be a different one. What one worker of a download is granted serves the others, too.
    mutating func challenged(by result: TransferResult) async throws(RequestError) -> Next? {
        guard let provider = core.configuration.credentialProvider, let challenger = Self.challenger(of: result) else {
            return nil
        }
        // What was granted before the run began again, or to another worker, may have expired.
        switch challenger {
        case .server: if granted.contains(where: { $0.origin == Self.origin(of: url) }) { refuseCredential() }
        case .proxy: refuseProxyCredential()
        }
        let isAnswered = challenger == .server ? credential(for: url) != nil : proxyCredential != nil
        let asked = try asked()
        // libcurl answers challenges, and carries no exchange in full duplex: its caller gets the refusal.
        if carrier?.writerBody != nil { return nil }
        guard !isAnswered || carrier?.grants != nil, credentials.count < Self.mostChallenges,
            asked.body?.isReplayable ?? true, let place = try place(of: challenger, for: asked.url)
        else { return nil }
        let target = challenger == .server ? SharedGrants.Target.server(Self.origin(of: url)) : .proxy(place.text)
        // Whenever another server sends a run back, the provider decides again.
        let isBack = challenger == .server && !redirects.isAtStart && way.isBack
        let shared = isBack ? nil : carrier?.grants
        if isAnswered, !(shared?.hasMore(for: target, than: seenGrants[target] ?? 0) ?? false) { return nil }
        let challenge = CredentialChallenge(
            challenger: challenger, host: place.host, port: place.port,
            fields: Headers(result).values(of: challenger.field))
        // Nothing else is known about a refused tunnel: libcurl finds out which schemes are offered.
        let schemes = challenger == .proxy && challenge.offers.isEmpty ? .all : challenge.schemes
        if schemes.isEmpty { return nil }
        let info = call.info
        if result.succeeded { carrier?.waits(after: Response(result, url: url, origin: origin())) }
        let isFirst = redirects.isAtStart
        let found = try await grant(for: target, mayAsk: !isAnswered, in: shared) {
            [control, url, deadline] () async throws(RequestError) in
            let found = try await control.ask(url, until: deadline) {
                try await provider.credential(for: challenge, of: info)
            }
            guard let found else { return nil }
            guard found.isUsable else { throw .unusableCredential(url: url) }
            return Granted(credential: found, schemes: schemes, isFirst: isFirst, target)
        }
        guard let found else {
            carrier?.keepsResponse()
            return nil
        }
        leave(result)
        hasUnknownCredentials = true
        switch challenger {
        case .server:
            credentials.removeAll { $0.origin == found.origin }
            credentials.append(found)
        case .proxy: proxyCredential = found
        }
        leg = asked
        // The target of a redirect gets the credential that it has asked for.
        return redirects.isAtStart ? .again : .goOn
    }

    /// What another worker was granted since this one looked last; otherwise what the provider grants when it is asked.
    private mutating func grant(
        for target: SharedGrants.Target, mayAsk: Bool, in shared: SharedGrants?,
        _ question: () async throws(RequestError) -> Granted?
    ) async throws(RequestError) -> Granted? {
        guard let shared else { return try await question() }
        while true {
            switch shared.step(for: target, since: seenGrants[target] ?? 0) {
            case .take(let answer, let number):
                seenGrants[target] = number
                return try answer.get()
            case .wait:
                let isOver: Bool? = await control.wait(until: deadline) { done in shared.wait(for: target, done) }
                if isOver == nil { throw control.overdue(url: url) }
            case .ask(let turn):
                if !mayAsk { return nil }
                do throws(RequestError) {
                    let found = try await question()
                    seenGrants[target] = turn.end(with: .success(found))
                    return found
                } catch {
                    // Whoever has only stopped waiting leaves the question to the next one.
                    if error.code != .cancelled { turn.end(with: .failure(error)) }
                    throw error
                }
            }
        }
    }

    /// Whether the server or the proxy requests credentials with this response or failure.
    static func challenger(of result: TransferResult) -> CredentialChallenge.Challenger? {
        // A 407 without a failure comes from the server itself, because that of a proxy is always a failure.
        guard let failure = result.failure else { return result.status == 401 ? .server : nil }
        return failure.code == .proxy && failure.detail == .proxyAuthRequired ? .proxy : nil
    }

    private func place(
        of challenger: CredentialChallenge.Challenger, for url: String
    ) throws(RequestError) -> Place? {
        if challenger == .proxy {
            return try call.proxy.route(for: url).map { Place(host: $0.host, port: Int($0.port)) }
        }
        return (try? URLParts(url)).map { Place(host: $0.host, port: Int($0.port)) }
    }

    private struct Place {
        var host: String
        var port: Int
        var text: String { "\(host):\(port)" }
    }

    private static func origin(of url: String) -> String { HostKey(url: url)?.text ?? url }

    /// The credential for the server of a URL.
    private func credential(for url: String) -> Granted? {
        if credentials.isEmpty { return nil }
        let origin = Self.origin(of: url)
        return credentials.first { $0.origin == nil || $0.origin == origin }
    }

    /// The servers that a run was sent away from, since it began or began again.
    struct Way: Sendable {
        private var left: [HostKey?] = []
        /// Another server has sent the run back to one of them.
        private(set) var isBack = false

        mutating func goOn(from url: String, to next: String) {
            left.append(HostKey(url: url))
            isBack = left.contains(HostKey(url: next))
        }
    }

    /// The provider is not asked again for the target of a redirect that it was asked for before the run began again,
    /// unless another server has sent the run back.
    mutating func grantAgain(for url: String) {
        if granted.isEmpty || way.isBack || credential(for: url) != nil { return }
        let origin = Self.origin(of: url)
        credentials += granted.filter { $0.origin == origin && !$0.isFirst }
    }

    /// What the current servers were granted is kept for when the run begins again.
    mutating func keepGranted() {
        granted =
            credentials
            + granted.filter { old in old.proxy != nil || !credentials.contains { $0.origin == old.origin } }
    }

    /// The current credentials were accepted: if they are refused later, they have expired.
    mutating func noteAcceptedCredentials() {
        keepGranted()
        guard let proxyCredential else { return }
        granted.removeAll { $0.proxy == proxyCredential.proxy }
        granted.append(proxyCredential)
    }

    /// The proxy has refused a credential that was granted before, or that another worker was granted.
    private mutating func refuseProxyCredential() {
        guard let proxy = proxyCredential?.proxy, granted.contains(where: { $0.proxy == proxy }) else { return }
        granted.removeAll { $0.proxy == proxy }
        proxyCredential = nil
    }

    /// The server of the current URL has refused the credential, or was not sent it: the provider is asked once more.
    mutating func refuseCredential() {
        let origin = Self.origin(of: url)
        let wasSent = credential(for: url) != nil
        credentials.removeAll { $0.origin == origin }
        if wasSent { firstCredentials.removeAll { $0.origin == origin } }
        granted.removeAll { $0.origin == origin }
    }

    /// The request of the next transfer, without the field that a provider's credential replaces. That field was not
    /// accepted, and would take precedence even if adapters ran again.
    func authorized(_ leg: OutgoingRequest) -> OutgoingRequest {
        if credentials.isEmpty || call.digest != nil || leg.headers["Authorization"] == nil { return leg }
        if credential(for: (try? core.builder.checked(leg.url)) ?? leg.url) == nil { return leg }
        var leg = leg
        leg.headers["Authorization"] = nil
        return leg
    }

    /// Adds the granted credentials, for the server and for the proxy.
    mutating func authorize(_ transfer: inout TransferRequest) {
        if let credential = credential(for: transfer.url) {
            transfer.credentials = TransferCredentials(
                user: credential.credential.user, password: credential.credential.password,
                schemes: .init(rawValue: credential.schemes.rawValue))
        }
        // After a redirect the transfer may use another proxy, which has to challenge first.
        if transfer.proxy?.kind != .http || transfer.proxy?.address != proxyCredential?.proxy { proxyCredential = nil }
        if proxyCredential == nil, let proxy = transfer.proxy, proxy.kind == .http {
            proxyCredential = granted.first { $0.proxy == proxy.address }
        }
        guard let proxyCredential else { return }
        transfer.proxy?.user = proxyCredential.credential.user
        transfer.proxy?.password = proxyCredential.credential.password
        transfer.proxy?.schemes = .init(rawValue: proxyCredential.schemes.rawValue)
    }
}

extension CredentialChallenge.Challenger {
    /// The header field of its challenges.
    fileprivate var field: String { self == .server ? "WWW-Authenticate" : "Proxy-Authenticate" }
}

/// What a provider has answered to the workers of one download, which share it: it is asked once for each server and
/// proxy, and once more when a credential has expired. Thread-safe.
final class SharedGrants: Sendable {
    /// `nil` if the provider has no credential.
    typealias Answer = Result<Exchange.Granted?, RequestError>

    enum Target: Hashable, Sendable {
        case server(String)
        /// `host:port`
        case proxy(String)
    }

    enum Step {
        /// Another worker was answered. The number is that of the answer.
        case take(Answer, UInt64)
        /// Another worker is asking.
        case wait
        case ask(Turn)
    }

    private struct State {
        /// The latest answers, with their numbers.
        var answers: [Target: (answer: Answer, number: UInt64)] = [:]
        var last: UInt64 = 0
        /// The workers that wait while another one asks.
        var waiting: [Target: [@Sendable (Bool) -> Void]] = [:]
    }

    private let state = Mutex(State())

    /// The right to ask. If this object is released without an answer, the next worker asks.
    final class Turn: Sendable {
        private let grants: SharedGrants
        private let target: Target

        fileprivate init(_ grants: SharedGrants, _ target: Target) { (self.grants, self.target) = (grants, target) }

        deinit { grants.end(target) }

        /// Returns the number of the answer. The other workers continue when this object is released.
        @discardableResult
        func end(with answer: Answer) -> UInt64 {
            let (number, old) = grants.state.withLock { state in
                state.last += 1
                return (state.last, state.answers.updateValue((answer, state.last), forKey: target))
            }
            // An error of the application is not released under the lock.
            withExtendedLifetime(old) {}
            return number
        }
    }

    /// All that was granted, and the numbers of the answers.
    var all: ([Exchange.Granted], [Target: UInt64]) {
        state.withLock { state in
            (state.answers.values.compactMap { try? $0.answer.get() }, state.answers.mapValues { $0.number })
        }
    }

    /// The download has ended: what was granted is not kept as long as its handle.
    func forget() {
        let old = state.withLock { state in
            defer { state.answers = [:] }
            return state.answers
        }
        withExtendedLifetime(old) {}
    }

    /// Whether there is a later answer, or will be.
    func hasMore(for target: Target, than number: UInt64) -> Bool {
        state.withLock { $0.waiting[target] != nil || ($0.answers[target]?.number ?? 0) > number }
    }

    /// What a worker does that knows the answers up to a number.
    func step(for target: Target, since number: UInt64) -> Step {
        state.withLock { state in
            if let (answer, latest) = state.answers[target], latest > number { return .take(answer, latest) }
            if state.waiting[target] != nil { return .wait }
            state.waiting[target] = []
            return .ask(Turn(self, target))
        }
    }

    /// Calls back once, when nobody asks any more, or now.
    func wait(for target: Target, _ done: @escaping @Sendable (Bool) -> Void) {
        let isAsked = state.withLock { state in
            state.waiting[target]?.append(done)
            return state.waiting[target] != nil
        }
        if !isAsked { done(true) }
    }

    private func end(_ target: Target) {
        let waiting = state.withLock { $0.waiting.removeValue(forKey: target) }
        for done in waiting ?? [] { done(true) }
    }
}

extension Exchange.Granted {
    fileprivate init(
        credential: Credential, schemes: CredentialSchemes, isFirst: Bool, _ target: SharedGrants.Target
    ) {
        self.init(credential: credential, schemes: schemes, isFirst: isFirst)
        switch target {
        case .server(let origin): self.origin = origin
        case .proxy(let proxy): self.proxy = proxy
        }
    }
}
