internal import Ferry

/// Finds placeholders that can never have a value, whatever the servers respond.
struct PlanCheck {
    private let plan: Plan
    private let variables: Set<String>
    /// For each captured value, the requests that capture it.
    private let capturers: [String: [String]]

    init(_ plan: Plan) {
        self.plan = plan
        variables = Set(plan.variables.map(\.name))
        var capturers: [String: [String]] = [:]
        for request in plan.requests.values.sorted(by: { $0.name < $1.name }) {
            for (name, _) in request.captures { capturers[name, default: []].append(request.name) }
        }
        self.capturers = capturers
    }

    /// Throws the first mistake.
    func check() throws(PlanFault) {
        var made: Set<String> = []
        for (name, value) in plan.variables {
            try checkStart(value.places, made)
            made.insert(name)
        }
        try checkStart(plan.base?.places ?? [], made)
        try checkStart(plan.cache?.places ?? [], made)
        for (_, request) in plan.requests.sorted(by: { $0.key < $1.key }) { try check(request) }
        var order = PlanOrder(plan, needs: plan.requests.mapValues(needs), capturers)
        try order.check()
    }

    /// What is filled in before the first request may use only the variables defined earlier.
    private func checkStart(_ places: [PlanPlace], _ made: Set<String>) throws(PlanFault) {
        for place in places {
            try checkShape(place)
            let name = place.name
            if place.fallback != nil || PlanReader.reserved.contains(name) || made.contains(name) { continue }
            if variables.contains(name) { throw fault(place, "names a variable that is defined later") }
            if plan.requests[name] != nil || capturers[name] != nil {
                throw fault(place, "is used before any request has run")
            }
            throw fault(place, "is not a variable")
        }
    }

    private func check(_ request: PlanRequest) throws(PlanFault) {
        for place in request.places {
            try checkShape(place)
            let name = place.name
            if place.fallback != nil || PlanReader.reserved.contains(name) || variables.contains(name) { continue }
            if plan.requests[name] == nil && capturers[name] == nil {
                throw fault(place, "is an unknown name")
            }
        }
    }

    /// Checks whether the placeholder can have a value at all.
    private func checkShape(_ place: PlanPlace) throws(PlanFault) {
        switch place.name {
        case "env": if place.words.count < 2 { throw fault(place, "must name an environment variable") }
        case "new":
            if PlanGenerator(rawValue: place.words.dropFirst().joined(separator: ".")) == nil {
                throw fault(place, "is unknown: 'new' has \(PlanGenerator.list)")
            }
        case let name where plan.requests[name] != nil:
            switch place.words.dropFirst().first.flatMap(PlanAnswerPart.init(rawValue:)) {
            case .json: break
            case .status, .text:
                if place.words.count > 2 { throw fault(place, "names a member of a plain value") }
            case .headers: if place.words.count < 3 { throw fault(place, "must name a header field") }
            case nil: throw fault(place, "is not a part of a response: '\(name)' has \(PlanAnswerPart.list)")
            }
        default: break
        }
    }

    /// The placeholders of a request that need earlier requests, one for each name.
    private func needs(of request: PlanRequest) -> [PlanPlace] {
        var names: Set<String> = []
        return request.places.filter { place in
            place.fallback == nil && !PlanReader.reserved.contains(place.name) && !variables.contains(place.name)
                && names.insert(place.name).inserted
        }
    }

    private func fault(_ place: PlanPlace, _ message: String) -> PlanFault {
        PlanFault("'{{\(place.description)}}' \(message)", at: place.origin)
    }
}

/// Checks the expectations of a plan, and reports the expected and the actual value.
enum PlanExpectation {
    static func check(_ response: Response, _ plan: PlanRequest) throws(RequestError) {
        for (name, wanted) in plan.expectedHeaders {
            let found = response.headers[name]
            if let found, fits(found, wanted) { continue }
            throw fault("expected header \(name) '\(wanted)', found \(found.map { "'\($0)'" } ?? "none")")
        }
        for (pointer, wanted) in plan.expectedJSON {
            let what = "expected \(wanted) at \(place(pointer))"
            let found = try json(response, what).value(atPointer: pointer)
            if found != wanted { throw fault("\(what), found \(found.map { "\($0)" } ?? "nothing")") }
        }
    }

    /// The value of a captured variable.
    static func captured(_ name: String, _ pointer: String, _ response: Response) throws(RequestError) -> JSON {
        let what = "cannot capture '\(name)'"
        guard let found = try json(response, what).value(atPointer: pointer) else {
            throw fault("\(what): the body has nothing at \(place(pointer))")
        }
        return found
    }

    /// The message for people; `nil` if the error's own message is enough.
    static func explanation(of error: RequestError, _ plan: PlanRequest) -> String? {
        switch error.code {
        case .invalidStatusCode:
            let found = error.response.map { "\($0.status)" } ?? "none"
            return "expected status \(FailureText.text(plan.status)), found \(found)"
        case .applicationError: return nil
        case .invalidJSON where !error.message.hasPrefix("not JSON"): return error.message
        default: return FailureText.of(error, bounds(of: plan))
        }
    }

    private static func json(_ response: Response, _ what: String) throws(RequestError) -> JSON {
        let json: JSON?
        do throws(RequestError) {
            json = try response.json
        } catch {
            throw RequestError(error.code, message: "\(what): the body is \(error.message)")
        }
        guard let json else { throw fault("\(what): the body is empty") }
        return json
    }

    /// In RFC 6901 an empty pointer is the whole document.
    private static func place(_ pointer: String) -> String { pointer.isEmpty ? "its root" : pointer }

    private static func fits(_ found: String, _ wanted: String) -> Bool {
        // By bytes: `==` takes two spellings of a character for the same value.
        wanted.utf8.last == UInt8(ascii: "*")
            ? found.utf8.starts(with: wanted.utf8.dropLast()) : found.utf8.elementsEqual(wanted.utf8)
    }

    private static func fault(_ message: String) -> RequestError { RequestError(.applicationError, message: message) }

    /// A request with the limits that error messages name.
    private static func bounds(of plan: PlanRequest) -> HTTPRequest<Response> {
        var request = HTTPRequest(.get, plan.path.source)
        request.timeouts = plan.timeout.map { Timeouts(idle: nil, total: $0) }
        request.deadline = plan.deadline
        return request
    }
}
