/// What a chain is made of: steps, and what is done with their values.
protocol ChainLinkKind {
    /// Whether it is a step: something that is run, and counted.
    var isStep: Bool { get }
}

/// The life of a chain: events in, actions out, nothing else.
struct ChainMachine<Link: ChainLinkKind> {
    enum Action {
        /// Do this, then come again.
        case perform(Link)
        /// All is done.
        case succeed
        /// Nothing more is begun.
        case fail(step: Int)
        /// It was ended from outside.
        case stop
    }

    private enum State { case ready, working, ended }

    private var state = State.ready
    /// The next last.
    private var rest: [Link] = []
    private var stepsAhead = 0
    /// How many steps have begun.
    private(set) var begun = 0
    private var isStepRunning = false

    init(_ links: [Link]) { push(links) }

    /// The step that runs or ran last, from 0.
    var step: Int { max(begun - 1, 0) }

    /// Steps that have ended.
    var finished: Int { begun - (isStepRunning ? 1 : 0) }

    /// Steps as far as they are known.
    var total: Int { begun + stepsAhead }

    private mutating func push(_ links: [Link]) {
        rest.append(contentsOf: links.reversed())
        stepsAhead += links.count(where: \.isStep)
    }

    /// To begin with, and when the link before has ended well.
    mutating func next() -> Action {
        if state == .ended { return .stop }
        isStepRunning = false
        guard let link = rest.popLast() else {
            state = .ended
            return .succeed
        }
        state = .working
        if link.isStep {
            stepsAhead -= 1
            begun += 1
            isStepRunning = true
        }
        return .perform(link)
    }

    /// The step that runs turned out to be these links: they stand in its place, before what was to follow.
    mutating func replaceStep(by links: [Link]) {
        precondition(state == .working && isStepRunning, "only a step that runs can turn out to be more")
        begun -= 1
        isStepRunning = false
        push(links)
    }

    /// The link that was performed has failed.
    mutating func fail() -> Action {
        if state != .working { return .stop }
        state = .ended
        return .fail(step: step)
    }

    /// The chain is ended from outside. Later links never begin.
    mutating func interrupt() -> Action {
        state = .ended
        return .stop
    }
}
