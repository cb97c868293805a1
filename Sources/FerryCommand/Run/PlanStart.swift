internal import Ferry
internal import FerrySynchronization
internal import FoundationEssentials
internal import Glibc

/// A plan that is about to run, with the values of its variables and of everything that depends on them.
///
/// One run of a plan is one start: the value of `{{new.uuid}}` in a variable is the same in the base, the cache's
/// folder and every request.
struct PlanStart: Sendable {
    let plan: Plan
    let state: PlanState
    /// The configuration of its agent.
    private(set) var configuration: NetworkConfiguration
    private let given: [(name: String, value: JSON)]
    /// The variables that the configuration uses.
    private let shared: [String: JSON]

    /// Values from the command line override those of the file. With another base, the plan's base is not evaluated;
    /// see ``based(on:)``.
    init(_ plan: Plan, values: [(name: String, value: String)] = [], hasOtherBase: Bool = false) throws {
        self.plan = plan
        // The name of a request always refers to the request.
        given = Self.typed(values.filter { plan.requests[$0.name] == nil }, as: plan)
        do throws(PlanFault) {
            state = try PlanState(variables: plan.variables, overruledBy: given)
            let base = hasOtherBase ? nil : plan.base
            configuration = try Self.configuration(base, plan.cache, state)
            let places = (base?.places ?? []) + (plan.cache?.places ?? [])
            shared = state.values(of: Self.variables(of: plan, behind: places))
            try Self.check(plan, state)
        } catch {
            throw plan.file.fault(error)
        }
    }

    /// Starts a plan with another base.
    init(_ plan: Plan, values: [(name: String, value: String)] = [], base: String) throws {
        self = try PlanStart(plan, values: values, hasOtherBase: true).based(on: base)
    }

    /// The same plan with another base.
    func based(on base: String) -> PlanStart {
        var start = self
        start.configuration.baseURL = base
        return start
    }

    /// The same plan with this engine.
    func carried(by engine: TransferEngine) -> PlanStart {
        var start = self
        start.configuration.engine = engine
        return start
    }

    /// The same plan with a cache for requests without one, if the command line asks for it.
    func cached(_ arguments: ParsedArguments) throws(UsageError) -> PlanStart {
        var start = self
        try HTTPCacheOption.apply(arguments, to: &start.configuration)
        return start
    }

    /// The same plan with its exchanges recorded.
    func recorded(by recorder: Recorder) -> PlanStart {
        var start = self
        start.configuration.recorder = recorder
        return start
    }

    private init(_ start: PlanStart, _ state: PlanState) {
        (plan, configuration, given, shared) = (start.plan, start.configuration, start.given, start.shared)
        self.state = state
    }

    /// Another run with the same agent. Its variables get new values, except those that the agent's configuration uses.
    func again() throws(PlanFault) -> PlanStart {
        let kept = shared.map { (name: $0.key, value: $0.value) }
        return PlanStart(self, try PlanState(variables: plan.variables, overruledBy: given, keeping: kept))
    }

    private static func configuration(
        _ base: PlanTemplate?, _ cache: PlanCache?, _ state: PlanState
    ) throws(PlanFault) -> NetworkConfiguration {
        var configuration = NetworkConfiguration()
        if let base { configuration.baseURL = try state.text(base) }
        guard let cache else { return configuration }
        let directory = try state.text(cache.directory)
        if directory.isEmpty { throw PlanFault("the cache's 'dir' is empty", at: cache.directory.origin) }
        configuration.cache = CacheConfiguration(directory: directory)
        if let version = cache.applicationVersion {
            configuration.cache?.applicationVersion = try state.text(version)
        }
        return configuration
    }

    /// A value from the command line has the type of the plan's value if that is a number or a boolean, and if its text
    /// stays the same: `1.10` in a path must not become `1.1`. Otherwise it is a string.
    private static func typed(
        _ values: [(name: String, value: String)], as plan: Plan
    ) -> [(name: String, value: JSON)] {
        values.map { name, text in
            guard case .constant(let own)? = plan.variables.first(where: { $0.name == name })?.value,
                own.kind == .number || own.kind == .bool, let value = try? JSON(parsing: text),
                value.kind == own.kind, "\(value)" == text
            else { return (name, JSON(text)) }
            return (name, value)
        }
    }

    /// Throws if the base is not a URL, or, if one is required, a request has a path, but no base is known.
    func checkBase(isRequired: Bool = true) throws(InputError) {
        if let base = configuration.baseURL, !base.isEmpty {
            let isWeb = CommandURL.hasWebScheme(base)
            let reason = isWeb ? RequestCheck.fault(ofBase: base) : "it does not begin with http:// or https://"
            guard let reason else { return }
            throw plan.file.fault(PlanFault("the base '\(base)' cannot be used: \(reason)", at: plan.base?.origin))
        }
        if !isRequired { return }
        for name in Set(plan.root.names).sorted() {
            guard let path = plan.requests[name]?.path, let start = beginning(of: path) else { continue }
            if CommandURL.hasScheme(start) { continue }
            throw plan.file.fault(
                PlanFault(
                    "no base URL is configured and \"\(path.source)\" is a relative path: "
                        + "'base' in the plan, --base or --serve gives one", at: path.origin))
        }
    }

    /// The beginning of a path, as far as it is known before the first request; `nil` if it is unknown.
    private func beginning(of path: PlanTemplate) -> String? {
        var text = ""
        for part in path.parts {
            switch part {
            case .text(let piece): text += piece
            case .place(let place):
                let isLater = plan.requests[place.name] != nil || captured.contains(place.name)
                guard !isLater, let value = try? state.value(of: place) else {
                    return text.utf8.contains(UInt8(ascii: "/")) ? text : nil
                }
                text += value.string ?? value.description
            }
        }
        return text
    }

    /// The values that requests capture.
    private var captured: Set<String> { Set(plan.requests.values.flatMap { $0.captures.map(\.name) }) }

    /// The variables that these placeholders use, directly or indirectly.
    private static func variables(of plan: Plan, behind places: [PlanPlace]) -> Set<String> {
        var names = Set(places.map(\.name))
        for (name, value) in plan.variables.reversed() where names.contains(name) {
            names.formUnion(value.places.map(\.name))
        }
        return names.intersection(plan.variables.map(\.name))
    }

    /// Throws if a name of `--var` is unknown to all plans.
    static func checkNames(_ values: [(name: String, value: String)], of plans: [Plan]) throws(InputError) {
        var known: Set<String> = []
        for plan in plans {
            known.formUnion(plan.variables.map(\.name))
            for request in plan.requests.values {
                known.formUnion(request.captures.map(\.name) + request.places.map(\.name))
            }
            known.formUnion(((plan.base?.places ?? []) + (plan.cache?.places ?? [])).map(\.name))
        }
        known.subtract(PlanReader.reserved)
        // In a placeholder the name of a request is its response.
        for plan in plans { known.subtract(plan.requests.keys) }
        for (name, _) in values where !known.contains(name) {
            let whose = plans.count == 1 ? "the plan has" : "the plans have"
            let known = known.sorted()
            let list = known.isEmpty ? "" : "; there are \(known.joined(separator: ", "))"
            let suggestion = Suggestion.text(for: name, in: known)
            throw InputError("--var: \(whose) no variable '\(name)'\(suggestion.isEmpty ? list : suggestion)")
        }
    }

    /// The environment and variables that no request captures do not change, so a placeholder for them without a value
    /// now never has one.
    private static func check(_ plan: Plan, _ state: PlanState) throws(PlanFault) {
        let running = Set(plan.root.names).sorted().compactMap { plan.requests[$0] }
        let captured = Set(running.flatMap { $0.captures.map(\.name) })
        let lasting = Set(plan.variables.map(\.name)).subtracting(captured).union(["env"])
        for request in running {
            for place in request.places where lasting.contains(place.name) { _ = try state.value(of: place) }
        }
    }
}

/// The values of a running plan: variables, captured values, and the latest response of each request.
final class PlanState: Sendable {
    private struct State {
        var values: [String: JSON] = [:]
        var answers: [String: Response] = [:]
        var counter = 0
    }

    private let state = Mutex(State())

    /// Each variable is computed from those before it, except given ones and those kept from an earlier run.
    init(
        variables: [(name: String, value: PlanJSON)], overruledBy given: [(name: String, value: JSON)],
        keeping kept: [(name: String, value: JSON)] = []
    ) throws(PlanFault) {
        var ready: [String: JSON] = [:]
        for (name, value) in kept { ready[name] = value }
        for (name, value) in given { ready[name] = value }
        state.withLock { [ready] in $0.values = ready }
        for (name, value) in variables where ready[name] == nil {
            let made = try json(value)
            state.withLock { $0.values[name] = made }
        }
    }

    /// The current variables and captured values.
    func values(of names: Set<String>) -> [String: JSON] {
        state.withLock { $0.values.filter { names.contains($0.key) } }
    }

    func capture(_ value: JSON, as name: String) { state.withLock { $0.values[name] = value } }

    func answered(_ name: String, _ response: Response) { state.withLock { $0.answers[name] = response } }

    // MARK: Filling in

    func text(_ template: PlanTemplate) throws(PlanFault) -> String {
        var text = ""
        for part in template.parts {
            switch part {
            case .text(let piece): text += piece
            case .place(let place): text += plain(try value(of: place))
            }
        }
        return text
    }

    func json(_ template: PlanJSON) throws(PlanFault) -> JSON {
        switch template {
        case .constant(let json): return json
        case .text(let text):
            if let place = text.onlyPlace { return try value(of: place) }
            return JSON(try self.text(text))
        case .array(let elements):
            var made: [JSON] = []
            for element in elements { made.append(try json(element)) }
            return JSON(made)
        case .object(let members):
            var made: [(String, JSON)] = []
            for (key, value) in members { made.append((key, try json(value))) }
            return JSON(members: made)
        }
    }

    /// A string unchanged, everything else as JSON.
    private func plain(_ json: JSON) -> String { json.string ?? json.description }

    func value(of place: PlanPlace) throws(PlanFault) -> JSON {
        if let found = find(place.words) { return found }
        if let fallback = place.fallback { return JSON(fallback) }
        throw PlanFault("'{{\(place.description)}}' has no value", at: place.origin)
    }

    private func find(_ words: [String]) -> JSON? {
        let first = words[0]
        if first == "env" { return getenv(words.dropFirst().joined(separator: ".")).map { JSON(String(cString: $0)) } }
        if first == "new" {
            return PlanGenerator(rawValue: words.dropFirst().joined(separator: ".")).map(generated)
        }
        let (value, answer) = state.withLock { ($0.values[first], $0.answers[first]) }
        if let value { return inside(value, words.dropFirst()) }
        guard let answer, let part = words.dropFirst().first.flatMap(PlanAnswerPart.init(rawValue:)) else { return nil }
        switch part {
        case .status: return JSON(answer.status)
        case .text: return JSON(answer.text)
        case .headers: return answer.headers[words.dropFirst(2).joined(separator: ".")].map { JSON($0) }
        case .json: return (try? answer.json).flatMap { inside($0, words.dropFirst(2)) }
        }
    }

    private func inside(_ json: JSON, _ words: ArraySlice<String>) -> JSON? {
        var place = json
        for word in words {
            let next = place.array != nil ? Int(word).flatMap { $0 < 0 ? nil : place[$0] } : place[word]
            guard let next else { return nil }
            place = next
        }
        return place
    }

    private func generated(_ kind: PlanGenerator) -> JSON {
        switch kind {
        case .uuid: JSON(UUID().uuidString.lowercased())
        case .time: JSON(Int(time(nil)))
        case .number: JSON(Int.random(in: 0...999_999_999))
        case .counter:
            JSON(
                state.withLock { state in
                    state.counter += 1
                    return state.counter
                })
        }
    }
}
