internal import Ferry
internal import FerryJSON

extension PlanReader {
    private static let words = [
        "method", "path", "query", "headers", "json", "form", "body", "basic", "bearer", "timeout", "deadline",
        "retries", "priority", "cache", "capture", "expect",
    ]

    func request(_ name: String, _ json: JSON) throws -> PlanRequest {
        if json.string != nil {
            let request = PlanRequest(name: name, path: try template(json, name))
            try check(request, PlanMembers(), json)
            return request
        }
        let members = try object(json, "a request", allowing: Self.words)
        guard let path = members["path"] else { throw fault(json, "request '\(name)' has no 'path'") }
        var request = PlanRequest(name: name, path: try template(path, "path"))
        request.query = try templates(members["query"], "query")
        request.headers = try templates(members["headers"], "headers")
        request.body = try body(members, json)
        if let method = members["method"] {
            request.method = HTTPMethod(try string(method, "method"))
        } else if request.body != nil {
            request.method = .post
        }
        request.basic = try members["basic"].map { try template($0, "basic") }
        request.bearer = try members["bearer"].map { try template($0, "bearer") }
        request.timeout = try members["timeout"].map { try seconds($0, "timeout") }
        request.deadline = try members["deadline"].map { try seconds($0, "deadline") }
        request.retries = try members["retries"].map { try integer($0, "retries", 0...100) }
        if let json = members["priority"] {
            let words: [String: RequestPriority] = ["low": .low, "normal": .normal, "high": .high]
            guard let priority = words[try string(json, "priority")] else {
                throw fault(json, "priority: expected low, normal or high")
            }
            request.priority = priority
        }
        request.cache = try members["cache"].map { try cachePolicy($0) }
        for (name, json) in try pairs(members["capture"], "capture") {
            request.captures.append((name, try pointer(json, try string(json, "capture '\(name)'"))))
        }
        if let json = members["expect"] { try expect(json, of: &request) }
        try check(request, members, json)
        return request
    }

    /// Throws if the engine would refuse what is fixed text in the request, so that nothing is sent before that.
    private func check(_ request: PlanRequest, _ members: PlanMembers, _ json: JSON) throws {
        if request.method == .head, request.hasBody {
            let body = members["json"] ?? members["form"] ?? members["body"]
            throw fault(body ?? json, "a HEAD request cannot have a body")
        }
        for field in request.headers {
            var probe = HTTPRequest(.get, "/")
            probe.headers.append(field.name, field.value.fixed ?? "any")
            // Whether a length fits its body is seen only with the body.
            try check(probe, members["headers"]?[field.name] ?? json, "header '\(field.name)'") { error in
                error.is(.invalidRequest(.headerName)) || error.is(.invalidRequest(.headerValue))
            }
        }
        try check(HTTPRequest(request.method, "/"), members["method"] ?? json, "method")
        if let path = request.path.fixed { try check(HTTPRequest(.get, path), members["path"] ?? json, "path") }
        var probe = HTTPRequest(.get, "/")
        if let text = request.basic?.fixed {
            guard let credentials = Credentials(text) else {
                throw fault(members["basic"] ?? json, "basic: expected user:password")
            }
            probe.authorization = .basic(credentials.user, credentials.password)
            try check(probe, members["basic"] ?? json, "basic")
        }
        if let token = request.bearer?.fixed {
            probe.authorization = .bearer(token)
            try check(probe, members["bearer"] ?? json, "bearer")
        }
    }

    private func check(
        _ probe: HTTPRequest<Response>, _ place: JSON, _ what: String,
        where counts: (RequestError) -> Bool = { _ in true }
    ) throws {
        guard let error = RequestCheck.fault(of: probe), counts(error) else { return }
        throw fault(place, "\(what): \(FailureText.of(error, probe))")
    }

    private func body(_ members: PlanMembers, _ json: JSON) throws -> PlanRequest.Body? {
        let kinds = ["json", "form", "body"].filter { members[$0] != nil }
        if kinds.count > 1 { throw fault(json, "'\(kinds[0])' and '\(kinds[1])' cannot be combined") }
        if let json = members["json"] { return .json(try placed(json) { () throws(PlanFault) in try PlanJSON(json) }) }
        if let form = members["form"] { return .form(try templates(form, "form")) }
        return try members["body"].map { .text(try template($0, "body")) }
    }

    /// A JSON Pointer (RFC 6901).
    private func pointer(_ json: JSON, _ text: String) throws -> String {
        if !text.isEmpty && !text.hasPrefix("/") {
            throw fault(json, "'\(text)' is not a JSON Pointer, which begins with '/'")
        }
        return text
    }

    private func expect(_ json: JSON, of request: inout PlanRequest) throws {
        let members = try object(json, "expect", allowing: ["status", "headers", "json", "schema"])
        if let status = members["status"] { request.status = try ranges(status) }
        for (name, value) in try pairs(members["headers"], "headers") {
            request.expectedHeaders.append((name, try string(value, "header '\(name)'")))
        }
        for (place, value) in try pairs(members["json"], "json") {
            request.expectedJSON.append((try pointer(value, place), value))
        }
        request.schema = try members["schema"].map { try file.schema($0, "schema: ") }
    }

    /// `200`, `"200-299"`, or an array of these.
    private func ranges(_ json: JSON) throws -> [ClosedRange<Int>] {
        guard let array = json.array else { return [try range(json)] }
        if array.isEmpty { throw fault(json, "status: the array is empty") }
        return try array.map { try range($0) }
    }

    private func range(_ json: JSON) throws -> ClosedRange<Int> {
        guard let text = json.int.map(String.init) ?? json.string, let range = StatusRange.reading(text) else {
            throw fault(json, "status: expected a code like 200, \"200-299\", or an array of these")
        }
        return range
    }
}

extension PlanReader {
    /// Where responses are stored.
    func cache(_ json: JSON) throws -> PlanCache {
        let members = try object(json, "a plan's 'cache'", allowing: ["dir", "applicationVersion"])
        guard let directory = members["dir"] else { throw fault(json, "'cache' of a plan must have 'dir'") }
        if directory.string == "" { throw fault(directory, "dir: expected a folder") }
        return PlanCache(
            directory: try template(directory, "dir"),
            applicationVersion: try members["applicationVersion"].map { try template($0, "applicationVersion") })
    }

    /// Whether a request's responses are stored, and how they are used.
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
                throw fault(json, "write: expected asynchronous or synchronous")
            }
            policy.writing = writing
        }
        if let json = members["headers"] {
            guard let names = json.array else { throw fault(json, "headers: expected an array of names") }
            policy.headers = try names.map { try string($0, "headers") }
        }
        return policy
    }

    private func lifetime(_ json: JSON, _ members: PlanMembers) throws -> PlanCachePolicy.Lifetime {
        guard let http = members["http"] else {
            guard let time = members["ttl"] else { throw fault(json, "'cache' of a request must have 'ttl' or 'http'") }
            return .seconds(try seconds(time, "ttl"))
        }
        for name in ["ttl", "version", "headers"] where members[name] != nil {
            throw fault(http, "'http' and '\(name)' cannot be combined: the server decides how long")
        }
        switch try string(http, "http") {
        case "private": return .http(isShared: false)
        case "shared": return .http(isShared: true)
        default: throw fault(http, "http: expected private or shared")
        }
    }

    private func mode(_ members: PlanMembers) throws -> CacheMode {
        var mode = CacheMode.cacheElseNetwork
        if let json = members["mode"] {
            guard let named = CacheMode(word: try string(json, "mode")) else {
                throw fault(json, "mode: expected else-network, reload or only")
            }
            mode = named
        }
        let windows = ["staleIfError", "staleWhileRevalidate"]
        guard let first = windows.compactMap({ members[$0] }).first else { return mode }
        if mode != .cacheElseNetwork {
            throw fault(first, "staleIfError and staleWhileRevalidate require the mode else-network")
        }
        return .cacheElseNetwork(
            staleIfError: try members[windows[0]].map { try seconds($0, windows[0]) } ?? .zero,
            staleWhileRevalidate: try members[windows[1]].map { try seconds($0, windows[1]) } ?? .zero)
    }
}
