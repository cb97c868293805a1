import FerrySynchronization
import FerryTesting
import Glibc
import Testing

@testable import Ferry

/// Records everything that an agent reports about its runs, at the lowest level, and searches it for secrets (row
/// R107).
final class SecretWatch: RequestObserver {
    private struct State {
        var texts: [String] = []
        var started = 0
        var stopped = 0
    }

    private let state = Mutex(State())
    private let log = KeptLog(.trace)
    private let recorder = MetricsRecorder(maxHosts: 8)

    /// Makes the agents of this configuration report everything.
    func look(into configuration: inout NetworkConfiguration) {
        configuration.observers += [self, recorder]
        configuration.logSink = log
    }

    func willStart(_ run: RunInfo) {
        state.withLock { $0.started += 1 }
        keep(run)
    }

    func willStop(_ run: RunInfo, _ outcome: RunOutcome) { keep(outcome) }

    func didStop(_ run: RunInfo, _ outcome: RunOutcome) { state.withLock { $0.stopped += 1 } }

    func metrics(_ run: RunInfo, _ metrics: RequestMetrics) { keep(metrics) }

    /// What else may be shown of successful runs.
    func keep(_ outcome: FaultOutcome) {
        switch outcome {
        case .success(let answer):
            keep(answer.head)
            keep(answer.redirects)
        case .failure(let error):
            keep(error)
            keep(error.redirects)
            keep(error.message)
        }
    }

    /// In each way in which a value becomes a text.
    private func keep<Value>(_ value: Value) {
        let texts = Self.texts(of: value)
        state.withLock { $0.texts += texts }
    }

    /// The text of an array has the debug description of its elements.
    static func texts<Value>(of value: Value) -> [String] {
        if let text = value as? String { return [text] }
        var dumped = ""
        dump(value, to: &dumped)
        return ["\(value)", "\([value])", dumped]
    }

    /// None of this contains a secret, and every run that was announced has ended once.
    func expectNoSecret(
        _ core: AgentCore, asking request: HTTPRequest<Response>? = nil, _ sourceLocation: SourceLocation
    ) async {
        // An awaiting task reports the end itself, which may be late.
        let areTold = await eventually { state.withLock { $0.started == $0.stopped } }
        #expect(areTold, "I1: observers are told of every end once", sourceLocation: sourceLocation)
        // Everything else in the snapshot is numbers, of which a dump would take most of the time of the fault tests.
        let snapshot = recorder.snapshot
        keep(Array(snapshot.failures.keys) + Array(snapshot.hosts.keys))
        keep(recorder.prometheusText())
        keep(core.health.all)
        for entry in log.entries { keep(entry) }
        if let request { keep(command(for: request, core)) }
        let (texts, started) = state.withLock { ($0.texts, $0.started) }
        let telling = texts.first { Canary.isHinted(at: $0) }
        #expect(telling == nil, "R107", sourceLocation: sourceLocation)
        #expect(log.entries.count >= 2 * started, "the log is not kept", sourceLocation: sourceLocation)
    }

    /// The command that would be shown; empty if it cannot be made.
    private func command(for request: HTTPRequest<Response>, _ core: AgentCore) -> String {
        let (builder, servers) = (core.builder, core.builder.servers)
        guard let made = try? builder.snapshot(of: request, at: servers).outgoing else { return "" }
        return curlCommand(
            method: made.method, url: made.url, headers: made.headers, body: .bytes(Array(Canary.body.utf8)),
            sensitiveHeaders: core.configuration.sensitiveHeaders)
    }
}

extension Canary {
    /// Whether a text contains a secret, in upper or lower case.
    static func isHinted(at text: String) -> Bool { search.finds(text) }

    /// By regexec(3): a search by character, and even one of a copy in lower case, would take a good part of the
    /// processor time of the fault tests.
    private static let search = Search(words)

    /// Sendable because the pattern never changes.
    private struct Search: @unchecked Sendable {
        private let pattern = UnsafeMutablePointer<regex_t>.allocate(capacity: 1)

        init(_ words: [String]) {
            let result = regcomp(pattern, words.joined(separator: "|"), REG_EXTENDED | REG_ICASE)
            precondition(result == 0, "the words are not a pattern")
        }

        func finds(_ text: String) -> Bool {
            var text = text
            return text.withUTF8 { bytes in
                guard let start = bytes.baseAddress else { return false }
                // With REG_STARTEND the text may contain NUL.
                var range = regmatch_t(rm_so: 0, rm_eo: regoff_t(bytes.count))
                return start.withMemoryRebound(to: CChar.self, capacity: bytes.count) { start in
                    regexec(pattern, start, 1, &range, REG_STARTEND) == 0
                }
            }
        }
    }
}
