internal import Ferry

/// What a plan expects of a response, and what is said where it is otherwise: what was expected, and what was found.
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

    /// For people; `nil` where the error says it itself.
    static func explanation(of error: RequestError, _ plan: PlanRequest) -> String? {
        switch error.code {
        case .invalidStatusCode:
            let ranges = plan.status.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
            let found = error.response.map { "\($0.status)" } ?? "none"
            return "expected status \(ranges.joined(separator: ", ")), found \(found)"
        case .schemaMismatch: return "the body does not fit the schema: \(error.message)"
        case .applicationError, .invalidJSON: return nil
        default: return FailureText.of(error, PlanBounds(plan))
        }
    }

    private static func json(_ response: Response, _ what: String) throws(RequestError) -> JSON {
        let json: JSON?
        do throws(RequestError) {
            json = try response.json
        } catch {
            throw RequestError(error.code, message: "\(what): the body is not JSON: \(error.message)")
        }
        guard let json else { throw fault("\(what): the body is empty") }
        return json
    }

    /// RFC 6901 points at the whole document with nothing.
    private static func place(_ pointer: String) -> String { pointer.isEmpty ? "its root" : pointer }

    private static func fits(_ found: String, _ wanted: String) -> Bool {
        wanted.hasSuffix("*") ? found.hasPrefix(wanted.dropLast()) : found == wanted
    }

    private static func fault(_ message: String) -> RequestError { RequestError(.applicationError, message: message) }
}

/// What of a request of a plan its failures are explained with.
private struct PlanBounds: Request {
    let path: String
    let timeouts: Timeouts?
    let deadline: Duration?

    init(_ plan: PlanRequest) {
        path = plan.path.source
        timeouts = plan.timeout.map { Timeouts(idle: nil, total: $0) }
        deadline = plan.deadline
    }
}
