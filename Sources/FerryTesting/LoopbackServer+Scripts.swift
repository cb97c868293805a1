internal import CLoopback

extension LoopbackServer {
    /// Plays a script on every request whose path begins with `path`.
    ///
    /// The head of the request has been read when it begins; a leading `.expectHead` is satisfied by it. The earliest
    /// script that fits and has uses left is taken, before any handler.
    ///
    /// - Parameters:
    ///   - path: What the path begins with.
    ///   - uses: How often it is played; nil without a bound.
    ///   - script: What is done.
    public func script(path: String, uses: Int? = nil, _ script: LoopbackScript) {
        install(LoopbackScript.Rule(.path(path), uses: uses, script))
    }

    /// Plays a script on one connection, 1 for the first accepted, from its first moment on.
    public func script(connection: Int, _ script: LoopbackScript) {
        install(LoopbackScript.Rule(.connections(connection...connection), script))
    }

    /// Plays a script on every connection, from its first moment on.
    public func script(_ script: LoopbackScript) {
        install(LoopbackScript.Rule(.everyConnection, script))
    }

    /// Installs a rule, such as one of ``LoopbackScript/rules(contentsOf:)``.
    public func install(_ rule: LoopbackScript.Rule) {
        var arena = LoopbackStepArena()
        for step in rule.script.steps { arena.add(step) }
        let uses = UInt64(clamping: rule.uses ?? 0)
        arena.withSteps { steps in
            // An array has an address, also where nothing is in it; then nothing is read there.
            switch rule.place {
            case .path(let path):
                loopback_script(handle.pointer, steps.baseAddress!, steps.count, path, 0, 0, uses)
            case .connections(let numbers):
                let first = UInt64(clamping: numbers.lowerBound), last = UInt64(clamping: numbers.upperBound)
                loopback_script(handle.pointer, steps.baseAddress!, steps.count, nil, first, last, uses)
            case .everyConnection:
                loopback_script(handle.pointer, steps.baseAddress!, steps.count, nil, 0, .max, uses)
            }
        }
    }

    /// Lets every present and later `.wait(name)` of this server's scripts pass.
    public func signal(_ name: String) {
        loopback_signal(handle.pointer, name)
    }
}
