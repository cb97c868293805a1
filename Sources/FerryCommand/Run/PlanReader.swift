internal import Ferry
internal import FerryJSON
internal import FoundationEssentials

/// Reads a plan file. What is wrong with it is said as compilers do, by file and line.
struct PlanReader {
    private let path: String
    private let text: Data

    /// The file's words for what no request may be called.
    static let reserved = ["env", "new"]
    static let longest = 100_000

    static func plan(at path: String) throws -> Plan {
        let text: Data
        do {
            text = try Data(contentsOf: URL(filePath: path))
        } catch {
            throw InputError("\(path): cannot be read")
        }
        return try PlanReader(path: path, text: text).plan()
    }

    init(path: String, text: Data) {
        self.path = path
        self.text = text
    }

    func plan() throws -> Plan {
        let file: JSON
        do {
            file = try JSON(parsing: text)
        } catch {
            throw InputError("\(path):\(line(of: error.offset)): not JSON: \(error.reason)")
        }
        let members = try object(file, "a plan", allowing: ["name", "base", "cache", "variables", "requests", "run"])
        var plan = Plan(name: try members["name"].map { try string($0, "name") } ?? path)
        plan.base = try members["base"].map { try template($0, "base") }
        plan.cache = try members["cache"].map { try cache($0) }
        for (name, value) in try pairs(members["variables"], "variables") {
            plan.variables.append((name, try placed(value) { () throws(PlanFault) in try PlanJSON(value) }))
        }
        guard let requests = members["requests"] else { throw fault(file, "a plan has 'requests'") }
        for (name, value) in try object(requests, "requests") {
            if Self.reserved.contains(name) || name.contains(".") || name.isEmpty {
                throw fault(value, "no request may be called '\(name)'")
            }
            let request = try request(name, value)
            if request.cache != nil && plan.cache == nil {
                throw fault(value["cache"] ?? value, "a request's 'cache' goes with the plan's, which has 'dir'")
            }
            plan.requests[name] = request
        }
        guard let run = members["run"] else { throw fault(file, "a plan has 'run'") }
        plan.root = try node(run, plan)
        if plan.root.count > Self.longest { throw fault(run, "more than \(Self.longest) runs") }
        try check(plan, requests)
        if let cache = plan.cache {
            let variables = Set(plan.variables.map(\.name)).union(Self.reserved)
            for place in (cache.directory.places + (cache.applicationVersion?.places ?? []))
            where place.fallback == nil && !variables.contains(place.words[0]) {
                throw fault(members["cache"] ?? file, "'{{\(place.description)}}' names no variable")
            }
        }
        return plan
    }

    // MARK: What runs

    private func node(_ json: JSON, _ plan: Plan) throws -> PlanNode {
        if let name = json.string {
            if plan.requests[name] == nil { throw fault(json, "there is no request '\(name)'") }
            return .request(name)
        }
        let members = try object(
            json, "a step", allowing: ["request", "batch", "chain", "atMost", "collect", "deadline", "repeat"])
        let kinds = ["request", "batch", "chain"].filter { members[$0] != nil }
        guard kinds.count == 1, let kind = kinds.first, let value = members[kind] else {
            throw fault(json, "a step is the name of a request, or has one of 'request', 'batch' and 'chain'")
        }
        for word in ["atMost", "collect"] where kind != "batch" {
            if let value = members[word] { throw fault(value, "'\(word)' is for a batch") }
        }
        if kind == "request", let value = members["deadline"] {
            throw fault(value, "'deadline' is for a batch or chain")
        }
        let deadline = try members["deadline"].map { try seconds($0, "deadline") }
        var node: PlanNode
        switch kind {
        case "request": node = try self.node(value, plan)
        case "batch":
            node = .batch(
                try nodes(value, plan), atMost: try members["atMost"].map { try integer($0, "atMost", 1...1_000_000) },
                collects: try members["collect"].map { try bool($0, "collect") } ?? false, deadline: deadline)
        default: node = .chain(try nodes(value, plan), deadline: deadline)
        }
        if let times = members["repeat"] {
            node = .repeated(node, try integer(times, "repeat", 1...Self.longest))
            // Here too, as repeats of repeats soon are more than can be counted.
            if node.count > Self.longest { throw fault(json, "more than \(Self.longest) runs") }
        }
        return node
    }

    private func nodes(_ json: JSON, _ plan: Plan) throws -> [PlanNode] {
        guard let array = json.array else { throw fault(json, "an array of steps is wanted") }
        var nodes: [PlanNode] = []
        for element in array { nodes.append(try node(element, plan)) }
        return nodes
    }

    /// Places must name something that there is.
    private func check(_ plan: Plan, _ requests: JSON) throws {
        var known = Set(plan.requests.keys).union(Self.reserved)
        let values = plan.variables.map(\.name) + plan.requests.values.flatMap { $0.captures.map(\.name) }
        for name in values {
            if plan.requests[name] != nil || Self.reserved.contains(name) {
                throw fault(requests, "'\(name)' is the name of a request and of a value")
            }
            known.insert(name)
        }
        for (name, request) in plan.requests.sorted(by: { $0.key < $1.key }) {
            for place in request.places where place.fallback == nil && !known.contains(place.words[0]) {
                throw fault(requests[name] ?? requests, "'{{\(place.description)}}' names nothing that there is")
            }
        }
    }

    // MARK: Pieces

    func fault(_ json: JSON, _ message: String) -> InputError {
        let offset = text.withUnsafeBytes { json.offset(in: $0) } ?? 0
        return InputError("\(path):\(line(of: offset)): \(message)")
    }

    /// Counted from 1.
    private func line(of offset: Int) -> Int { 1 + text.prefix(offset).count { $0 == UInt8(ascii: "\n") } }

    /// In the order of the file; unknown members are refused, where it is said which are known.
    func object(_ json: JSON, _ what: String, allowing known: [String]? = nil) throws -> PlanMembers {
        guard let object = json.object else { throw fault(json, "\(what): an object is wanted, not \(json.kind)") }
        var members: [(key: String, value: JSON)] = []
        for (key, value) in object {
            if let known, !known.contains(key) {
                throw fault(value, "\(what) has no '\(key)'; there are \(known.joined(separator: ", "))")
            }
            if members.contains(where: { $0.key == key }) { throw fault(value, "'\(key)' stands there twice") }
            members.append((key, value))
        }
        return PlanMembers(members: members)
    }

    /// Members of any name; none when there is no object.
    func pairs(_ json: JSON?, _ what: String) throws -> [(key: String, value: JSON)] {
        try json.map { try object($0, what).members } ?? []
    }

    func string(_ json: JSON, _ what: String) throws -> String {
        guard let text = json.string else { throw fault(json, "\(what): a string is wanted, not \(json.kind)") }
        return text
    }

    func bool(_ json: JSON, _ what: String) throws -> Bool {
        guard let value = json.bool else { throw fault(json, "\(what): true or false is wanted, not \(json.kind)") }
        return value
    }

    func integer(_ json: JSON, _ what: String, _ range: ClosedRange<Int>) throws -> Int {
        guard let value = json.int, range.contains(value) else {
            throw fault(json, "\(what): a whole number from \(range.lowerBound) to \(range.upperBound) is wanted")
        }
        return value
    }

    func seconds(_ json: JSON, _ what: String) throws -> Duration {
        guard let value = json.double, value > 0, value <= 31_536_000 else {
            throw fault(json, "\(what): a number of seconds is wanted")
        }
        return .nanoseconds(Int64((value * 1e9).rounded()))
    }

    func template(_ json: JSON, _ what: String) throws -> PlanTemplate {
        let text = json.int.map(String.init) ?? json.double.map { "\($0)" } ?? json.bool.map { "\($0)" }
        let source = try text ?? string(json, what)
        return try placed(json) { () throws(PlanFault) in try PlanTemplate(source) }
    }

    func templates(_ json: JSON?, _ what: String) throws -> [(name: String, value: PlanTemplate)] {
        guard let json else { return [] }
        var fields: [(name: String, value: PlanTemplate)] = []
        for (name, value) in try object(json, what) { fields.append((name, try template(value, "\(what) '\(name)'"))) }
        return fields
    }

    func placed<Value>(_ json: JSON, _ make: () throws(PlanFault) -> Value) throws -> Value {
        do {
            return try make()
        } catch {
            throw fault(json, error.description)
        }
    }
}

/// The members of an object, in their order.
struct PlanMembers: Sequence {
    fileprivate let members: [(key: String, value: JSON)]

    fileprivate init(members: [(key: String, value: JSON)]) { self.members = members }

    subscript(key: String) -> JSON? { members.first { $0.key == key }?.value }

    func makeIterator() -> [(key: String, value: JSON)].Iterator { members.makeIterator() }
}
