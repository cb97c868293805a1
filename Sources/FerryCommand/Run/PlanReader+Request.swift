internal import Ferry
internal import FerryJSON

extension PlanReader {
    private static let words = [
        "method", "path", "query", "headers", "json", "form", "body", "basic", "bearer", "timeout", "deadline",
        "retries", "priority", "cache", "capture", "expect",
    ]

    func request(_ name: String, _ json: JSON) throws -> PlanRequest {
        if json.string != nil { return PlanRequest(name: name, path: try template(json, name)) }
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
                throw fault(json, "priority: low, normal or high is wanted")
            }
            request.priority = priority
        }
        request.cache = try members["cache"].map { try cachePolicy($0) }
        for (name, json) in try pairs(members["capture"], "capture") {
            request.captures.append((name, try pointer(json, try string(json, "capture '\(name)'"))))
        }
        if let json = members["expect"] { try expect(json, of: &request) }
        return request
    }

    private func body(_ members: PlanMembers, _ json: JSON) throws -> PlanRequest.Body? {
        let kinds = ["json", "form", "body"].filter { members[$0] != nil }
        if kinds.count > 1 { throw fault(json, "'\(kinds[0])' and '\(kinds[1])' exclude each other") }
        if let json = members["json"] { return .json(try placed(json) { () throws(PlanFault) in try PlanJSON(json) }) }
        if let form = members["form"] { return .form(try templates(form, "form")) }
        return try members["body"].map { .text(try template($0, "body")) }
    }

    /// RFC 6901.
    private func pointer(_ json: JSON, _ text: String) throws -> String {
        if !text.isEmpty && !text.hasPrefix("/") {
            throw fault(json, "'\(text)' is no JSON Pointer: it begins with '/'")
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
        if array.isEmpty { throw fault(json, "status: no status would do") }
        return try array.map { try range($0) }
    }

    private func range(_ json: JSON) throws -> ClosedRange<Int> {
        guard let text = json.int.map(String.init) ?? json.string, let range = StatusRange.reading(text) else {
            throw fault(json, "status: a code like 200, \"200-299\", or an array of these is wanted")
        }
        return range
    }
}
