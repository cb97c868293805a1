internal import Ferry

/// A plan that is about to run: its variables have their values, and what is made of them has too.
///
/// One run of a plan is one start: what `{{new.uuid}}` made for a variable is the same in the base, the cache's folder
/// and every request.
struct PlanStart: Sendable {
    let plan: Plan
    let state: PlanState
    /// What an agent for it has to know.
    private(set) var configuration: NetworkConfiguration
    private let given: [(name: String, value: String)]
    /// The variables that the configuration is made of.
    private let shared: [String: JSON]

    /// Values given on the command line win over those of the file. With another base the plan's is not asked for; see
    /// ``based(on:)``.
    init(_ plan: Plan, values: [(name: String, value: String)] = [], hasOtherBase: Bool = false) throws(InputError) {
        self.plan = plan
        // A request goes by its own name, whatever else is called so.
        given = values.filter { plan.requests[$0.name] == nil }
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

    /// The same on a base of another's.
    init(_ plan: Plan, values: [(name: String, value: String)] = [], base: String) throws(InputError) {
        self = try PlanStart(plan, values: values, hasOtherBase: true).based(on: base)
    }

    /// The same on a base of another's.
    func based(on base: String) -> PlanStart {
        var start = self
        start.configuration.baseURL = base
        return start
    }

    /// The same by this engine.
    func carried(by engine: TransferEngine) -> PlanStart {
        var start = self
        start.configuration.engine = engine
        return start
    }

    /// The same with a cache for requests that say nothing of one, where the command line asks for it.
    func cached(_ arguments: ParsedArguments) throws(UsageError) -> PlanStart {
        var start = self
        try HTTPCacheOption.apply(arguments, to: &start.configuration)
        return start
    }

    private init(_ start: PlanStart, _ state: PlanState) {
        (plan, configuration, given, shared) = (start.plan, start.configuration, start.given, start.shared)
        self.state = state
    }

    /// Another run by the same agent. Its variables are made anew, but for those that the agent was made with.
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

    /// The variables that these are made of, and those that they are made of.
    private static func variables(of plan: Plan, behind places: [PlanPlace]) -> Set<String> {
        var names = Set(places.map(\.name))
        for (name, value) in plan.variables.reversed() where names.contains(name) {
            names.formUnion(value.places.map(\.name))
        }
        return names.intersection(plan.variables.map(\.name))
    }

    /// The environment stays as it is, and so do variables that no request captures anew: a place of them that has no
    /// value now never has one.
    private static func check(_ plan: Plan, _ state: PlanState) throws(PlanFault) {
        let running = Set(plan.root.names).sorted().compactMap { plan.requests[$0] }
        let captured = Set(running.flatMap { $0.captures.map(\.name) })
        let lasting = Set(plan.variables.map(\.name)).subtracting(captured).union(["env"])
        for request in running {
            for place in request.places where lasting.contains(place.name) { _ = try state.value(of: place) }
        }
    }
}
