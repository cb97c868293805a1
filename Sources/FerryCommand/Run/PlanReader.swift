internal import Ferry
internal import FerryJSON
internal import FoundationEssentials

/// Reads a plan file. Mistakes are reported by file and line, as in compilers.
struct PlanReader {
    let file: JSONFile

    /// Reserved words that cannot be the name of a request.
    static let reserved = ["env", "new"]
    static let longest = 100_000

    static func plan(at path: String) throws -> Plan {
        try PlanReader(file: JSONFile(at: path)).plan()
    }

    init(file: JSONFile) { self.file = file }

    init(path: String, text: Data) { self.init(file: JSONFile(path: path, text: text)) }

    func plan() throws -> Plan {
        let document = try file.document()
        let members = try object(
            document, "a plan", allowing: ["$schema", "name", "base", "cache", "variables", "requests", "run"])
        var plan = Plan(file: file, name: try members["name"].map { try string($0, "name") } ?? file.path)
        plan.base = try members["base"].map { try template($0, "base") }
        plan.cache = try members["cache"].map { try cache($0) }
        for (name, value) in try pairs(members["variables"], "variables") {
            plan.variables.append((name, try placed(value) { () throws(PlanFault) in try PlanJSON(value) }))
        }
        guard let requests = members["requests"] else { throw fault(document, "a plan must have 'requests'") }
        for (name, value) in try object(requests, "requests") {
            if Self.reserved.contains(name) || name.contains(".") || name.isEmpty {
                throw fault(value, "'\(name)' cannot be the name of a request")
            }
            let request = try request(name, value)
            if request.cache != nil && plan.cache == nil {
                throw fault(value["cache"] ?? value, "'cache' of a request requires 'cache' of the plan, with 'dir'")
            }
            plan.requests[name] = request
        }
        try checkNames(plan, members["variables"], requests)
        guard let run = members["run"] else { throw fault(document, "a plan must have 'run'") }
        plan.root = try node(run, plan)
        if plan.root.work > Self.longest { throw fault(run, "more than \(Self.longest) runs") }
        try placed(run) { () throws(PlanFault) in try PlanCheck(plan).check() }
        return plan
    }

    // MARK: Steps

    private func node(_ json: JSON, _ plan: Plan) throws -> PlanNode {
        if let name = json.string {
            if plan.requests[name] == nil { throw fault(json, "unknown request '\(name)'") }
            return PlanNode(.request(name))
        }
        let members = try object(
            json, "a step", allowing: ["request", "batch", "chain", "atMost", "collect", "deadline", "repeat"])
        let kinds = ["request", "batch", "chain"].filter { members[$0] != nil }
        guard kinds.count == 1, let kind = kinds.first, let value = members[kind] else {
            throw fault(json, "a step must be the name of a request, or have one of 'request', 'batch' and 'chain'")
        }
        for word in ["atMost", "collect"] where kind != "batch" {
            if let value = members[word] { throw fault(value, "'\(word)' is only for a batch") }
        }
        if kind == "request", let value = members["deadline"] {
            throw fault(value, "'deadline' is only for a batch or chain")
        }
        let deadline = try members["deadline"].map { try seconds($0, "deadline") }
        var node: PlanNode
        switch kind {
        case "request":
            _ = try string(value, kind)
            node = try self.node(value, plan)
        case "batch":
            node = PlanNode(
                .batch(
                    try nodes(value, plan),
                    atMost: try members["atMost"].map { try integer($0, "atMost", 1...1_000_000) },
                    collects: try members["collect"].map { try bool($0, "collect") } ?? false, deadline: deadline))
        default: node = PlanNode(.chain(try nodes(value, plan), deadline: deadline))
        }
        if let times = members["repeat"] {
            node = PlanNode(.repeated(node, try integer(times, "repeat", 1...Self.longest)))
            // Checked here, too, because nested repeats could overflow.
            if node.work > Self.longest { throw fault(json, "more than \(Self.longest) runs") }
        }
        return node
    }

    private func nodes(_ json: JSON, _ plan: Plan) throws -> [PlanNode] {
        guard let array = json.array else { throw fault(json, "expected an array of steps") }
        var nodes: [PlanNode] = []
        for element in array { nodes.append(try node(element, plan)) }
        return nodes
    }

    /// A name in a placeholder must be unambiguous.
    private func checkNames(_ plan: Plan, _ variables: JSON?, _ requests: JSON) throws {
        func check(_ name: String, _ place: JSON?) throws {
            if Self.reserved.contains(name) || name.contains(".") || name.isEmpty {
                throw fault(place ?? requests, "'\(name)' cannot be the name of a value")
            }
            if plan.requests[name] != nil {
                throw fault(place ?? requests, "'\(name)' is the name of both a request and a value")
            }
        }
        for (name, _) in plan.variables { try check(name, variables?[name]) }
        for request in plan.requests.values.sorted(by: { $0.name < $1.name }) {
            for (name, _) in request.captures { try check(name, requests[request.name]?["capture"]?[name]) }
        }
    }

    // MARK: Values

    func fault(_ json: JSON, _ message: String) -> InputError { file.fault(json, message) }

    /// The members in order. An unknown member is an error that lists the known ones.
    func object(_ json: JSON, _ what: String, allowing known: [String]? = nil) throws -> PlanMembers {
        guard let object = json.object else { throw fault(json, "\(what): expected an object, found \(json.kind)") }
        var members: [(key: String, value: JSON)] = []
        var keys: Set<String> = []
        for (key, value) in object {
            if let known, !known.contains(key) {
                throw fault(value, "unknown member '\(key)' in \(what); members are \(known.joined(separator: ", "))")
            }
            if !keys.insert(key).inserted { throw fault(value, "'\(key)' appears twice") }
            members.append((key, value))
        }
        return PlanMembers(members: members)
    }

    /// Members with any name; empty if there is no object.
    func pairs(_ json: JSON?, _ what: String) throws -> [(key: String, value: JSON)] {
        try json.map { try object($0, what).members } ?? []
    }

    func string(_ json: JSON, _ what: String) throws -> String {
        guard let text = json.string else { throw fault(json, "\(what): expected a string, found \(json.kind)") }
        return text
    }

    func bool(_ json: JSON, _ what: String) throws -> Bool {
        guard let value = json.bool else { throw fault(json, "\(what): expected true or false, found \(json.kind)") }
        return value
    }

    func integer(_ json: JSON, _ what: String, _ range: ClosedRange<Int>) throws -> Int {
        guard let value = json.int, range.contains(value) else {
            throw fault(json, "\(what): expected a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func seconds(_ json: JSON, _ what: String) throws -> Duration {
        guard let value = json.double, value != 0, let duration = Duration(seconds: value) else {
            throw fault(json, "\(what): expected a number of seconds")
        }
        return duration
    }

    func template(_ json: JSON, _ what: String) throws -> PlanTemplate {
        let text = json.int.map(String.init) ?? json.double.map { "\($0)" } ?? json.bool.map { "\($0)" }
        let source = try text ?? string(json, what)
        return try placed(json) { () throws(PlanFault) in try PlanTemplate(source, at: json) }
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
            throw fault(error.origin ?? json, error.description)
        }
    }
}

/// The members of an object, in order.
struct PlanMembers: Sequence {
    fileprivate let members: [(key: String, value: JSON)]

    fileprivate init(members: [(key: String, value: JSON)]) { self.members = members }

    init() { members = [] }

    subscript(key: String) -> JSON? { members.first { $0.key == key }?.value }

    func makeIterator() -> [(key: String, value: JSON)].Iterator { members.makeIterator() }
}
