internal import Ferry

extension PlanReader {
    /// Where answers are kept.
    func cache(_ json: JSON) throws -> PlanCache {
        let members = try object(json, "a plan's 'cache'", allowing: ["dir", "applicationVersion"])
        guard let directory = members["dir"] else { throw fault(json, "a plan's 'cache' has 'dir'") }
        if directory.string == "" { throw fault(directory, "dir: a folder is wanted") }
        return PlanCache(
            directory: try template(directory, "dir"),
            applicationVersion: try members["applicationVersion"].map { try template($0, "applicationVersion") })
    }

    /// Whether a request's answers are kept, and how kept ones are used.
    func cachePolicy(_ json: JSON) throws -> PlanCachePolicy {
        let members = try object(
            json, "a request's 'cache'",
            allowing: [
                "ttl", "http", "version", "mode", "staleIfError", "staleWhileRevalidate", "sensitiveData", "headers",
                "write",
            ])
        var policy = PlanCachePolicy(lifetime: try lifetime(json, members))
        policy.version = try members["version"].map { try integer($0, "version", 0...Int.max) } ?? 0
        policy.sensitiveData = try members["sensitiveData"].map { try template($0, "sensitiveData") }
        policy.mode = try mode(members)
        if let json = members["write"] {
            let words: [String: CachePolicy.Writing] = ["asynchronous": .asynchronous, "synchronous": .synchronous]
            guard let writing = words[try string(json, "write")] else {
                throw fault(json, "write: asynchronous or synchronous is wanted")
            }
            policy.writing = writing
        }
        if let json = members["headers"] {
            guard let names = json.array else { throw fault(json, "headers: an array of names is wanted") }
            policy.headers = try names.map { try string($0, "headers") }
        }
        return policy
    }

    private func lifetime(_ json: JSON, _ members: PlanMembers) throws -> PlanCachePolicy.Lifetime {
        guard let http = members["http"] else {
            guard let time = members["ttl"] else { throw fault(json, "a request's 'cache' has 'ttl' or 'http'") }
            return .seconds(try seconds(time, "ttl"))
        }
        for name in ["ttl", "version", "headers"] where members[name] != nil {
            throw fault(http, "'http' and '\(name)' exclude each other: the server says how long")
        }
        switch try string(http, "http") {
        case "private": return .http(isShared: false)
        case "shared": return .http(isShared: true)
        default: throw fault(http, "http: private or shared is wanted")
        }
    }

    private func mode(_ members: PlanMembers) throws -> CacheMode {
        var mode = CacheMode.cacheElseNetwork
        if let json = members["mode"] {
            guard let named = CacheMode(word: try string(json, "mode")) else {
                throw fault(json, "mode: else-network, reload or only is wanted")
            }
            mode = named
        }
        let windows = ["staleIfError", "staleWhileRevalidate"]
        guard let first = windows.compactMap({ members[$0] }).first else { return mode }
        if mode != .cacheElseNetwork { throw fault(first, "windows for stale answers are for the mode else-network") }
        return .cacheElseNetwork(
            staleIfError: try members[windows[0]].map { try seconds($0, windows[0]) } ?? .zero,
            staleWhileRevalidate: try members[windows[1]].map { try seconds($0, windows[1]) } ?? .zero)
    }
}
