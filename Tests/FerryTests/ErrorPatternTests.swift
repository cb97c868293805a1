import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// The documented ways to match an error compile, and match, in any code of an application: in a function, a closure, a
/// task, a child of a task group, and the callback of a started run. Each of these is type-checked in its own way, so
/// each has the whole of each form.
@Suite struct ErrorPatternTests {
    private static let failures: [(RequestError, String)] =
        [
            (.timeout(.connect), "connect"), (.timeout(.deadline), "timeout"), (.invalidStatusCode(404), "missing"),
            (.invalidStatusCode(503), "trouble"), (.cancelled, "other"), (.tls(.expired), "other"),
        ].map { (RequestError($0), $1) } + [(.processed(.connectionReset), "perhaps done")]

    private static func fail(_ failure: RequestError) async throws(RequestError) -> String { throw failure }

    /// With the other one, the compiler finds the type of the error in a function, and warns of a cast.
    private static func failUntyped(_ failure: RequestError) async throws -> String { throw failure }

    private static func result(_ failure: RequestError) async -> Result<String, RequestError> { .failure(failure) }

    /// The word for all others.
    private static func rest(_ error: RequestError) -> String { error.mayHaveBeenProcessed ? "perhaps done" : "other" }

    private struct Failing: Request {
        let failure: RequestError
        var path: String { "/x" }
        func value(from response: Response) throws -> Response { throw failure }
    }

    /// What the callback of a run with this error says.
    private static func word(
        of failure: RequestError, _ start: (NetworkAgent, Failing, @escaping @Sendable (String) -> Void) -> Void
    ) async -> String {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        let word = await withCheckedContinuation { continuation in
            start(agent, Failing(failure: failure)) { continuation.resume(returning: $0) }
        }
        await agent.shutdown()
        return word
    }

    @Test(arguments: failures) func aSwitchOverTheCode(_ failure: RequestError, _ word: String) async {
        func inAFunction() async -> String {
            do throws(RequestError) {
                return try await Self.fail(failure)
            } catch {
                switch error.code {
                case .timeout(.connect): return "connect"
                case .timeout: return "timeout"
                case .invalidStatusCode(404): return "missing"
                case .invalidStatusCode(500...599): return "trouble"
                case _ where error.mayHaveBeenProcessed: return "perhaps done"
                default: return "other"
                }
            }
        }
        let inAClosure: @Sendable () async -> String = {
            do throws(RequestError) {
                return try await Self.fail(failure)
            } catch {
                switch error.code {
                case .timeout(.connect): return "connect"
                case .timeout: return "timeout"
                case .invalidStatusCode(404): return "missing"
                case .invalidStatusCode(500...599): return "trouble"
                case _ where error.mayHaveBeenProcessed: return "perhaps done"
                default: return "other"
                }
            }
        }
        let task = Task {
            do throws(RequestError) {
                return try await Self.fail(failure)
            } catch {
                switch error.code {
                case .timeout(.connect): return "connect"
                case .timeout: return "timeout"
                case .invalidStatusCode(404): return "missing"
                case .invalidStatusCode(500...599): return "trouble"
                case _ where error.mayHaveBeenProcessed: return "perhaps done"
                default: return "other"
                }
            }
        }
        let words = await withTaskGroup(of: String.self) { group in
            group.addTask {
                do throws(RequestError) {
                    return try await Self.fail(failure)
                } catch {
                    switch error.code {
                    case .timeout(.connect): return "connect"
                    case .timeout: return "timeout"
                    case .invalidStatusCode(404): return "missing"
                    case .invalidStatusCode(500...599): return "trouble"
                    case _ where error.mayHaveBeenProcessed: return "perhaps done"
                    default: return "other"
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let started = await Self.word(of: failure) { agent, failing, say in
            _ = agent.start(failing) { result in
                switch result {
                case .success: say("success")
                case .failure(let error):
                    switch error.code {
                    case .timeout(.connect): say("connect")
                    case .timeout: say("timeout")
                    case .invalidStatusCode(404): say("missing")
                    case .invalidStatusCode(500...599): say("trouble")
                    case _ where error.mayHaveBeenProcessed: say("perhaps done")
                    default: say("other")
                    }
                }
            }
        }
        #expect(
            await [inAFunction(), inAClosure(), task.value] + words + [started] == Array(repeating: word, count: 5))
    }

    @Test(arguments: failures) func isWithoutACast(_ failure: RequestError, _ word: String) async {
        func inAFunction() async -> String {
            do throws(RequestError) {
                return try await Self.fail(failure)
            } catch {
                if error.is(.timeout(.connect)) { return "connect" }
                if error.is(.timeout) { return "timeout" }
                if error.is(.invalidStatusCode(404)) { return "missing" }
                if error.is(.invalidStatusCode(500...599)) { return "trouble" }
                return Self.rest(error)
            }
        }
        let inAClosure: @Sendable () async -> String = {
            do throws(RequestError) {
                return try await Self.fail(failure)
            } catch {
                if error.is(.timeout(.connect)) { return "connect" }
                if error.is(.timeout) { return "timeout" }
                if error.is(.invalidStatusCode(404)) { return "missing" }
                if error.is(.invalidStatusCode(500...599)) { return "trouble" }
                return Self.rest(error)
            }
        }
        let task = Task {
            do throws(RequestError) {
                return try await Self.fail(failure)
            } catch {
                if error.is(.timeout(.connect)) { return "connect" }
                if error.is(.timeout) { return "timeout" }
                if error.is(.invalidStatusCode(404)) { return "missing" }
                if error.is(.invalidStatusCode(500...599)) { return "trouble" }
                return Self.rest(error)
            }
        }
        let words = await withTaskGroup(of: String.self) { group in
            group.addTask {
                do throws(RequestError) {
                    return try await Self.fail(failure)
                } catch {
                    if error.is(.timeout(.connect)) { return "connect" }
                    if error.is(.timeout) { return "timeout" }
                    if error.is(.invalidStatusCode(404)) { return "missing" }
                    if error.is(.invalidStatusCode(500...599)) { return "trouble" }
                    return Self.rest(error)
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let started = await Self.word(of: failure) { agent, failing, say in
            _ = agent.start(failing) { result in
                do throws(RequestError) {
                    _ = try result.get()
                } catch {
                    if error.is(.timeout(.connect)) { return say("connect") }
                    if error.is(.timeout) { return say("timeout") }
                    if error.is(.invalidStatusCode(404)) { return say("missing") }
                    if error.is(.invalidStatusCode(500...599)) { return say("trouble") }
                    say(Self.rest(error))
                }
            }
        }
        #expect(
            await [inAFunction(), inAClosure(), task.value] + words + [started] == Array(repeating: word, count: 5))
    }

    @Test(arguments: failures) func isBehindACast(_ failure: RequestError, _ word: String) async {
        func inAFunction() async -> String {
            do {
                return try await Self.failUntyped(failure)
            } catch let error as RequestError where error.is(.timeout(.connect)) {
                return "connect"
            } catch let error as RequestError where error.is(.timeout) {
                return "timeout"
            } catch let error as RequestError where error.is(.invalidStatusCode(404)) {
                return "missing"
            } catch let error as RequestError where error.is(.invalidStatusCode(500...599)) {
                return "trouble"
            } catch let error as RequestError {
                return Self.rest(error)
            } catch {
                return "unknown"
            }
        }
        let inAClosure: @Sendable () async -> String = {
            do {
                return try await Self.fail(failure)
            } catch let error as RequestError where error.is(.timeout(.connect)) {
                return "connect"
            } catch let error as RequestError where error.is(.timeout) {
                return "timeout"
            } catch let error as RequestError where error.is(.invalidStatusCode(404)) {
                return "missing"
            } catch let error as RequestError where error.is(.invalidStatusCode(500...599)) {
                return "trouble"
            } catch let error as RequestError {
                return Self.rest(error)
            } catch {
                return "unknown"
            }
        }
        let task = Task {
            do {
                return try await Self.fail(failure)
            } catch let error as RequestError where error.is(.timeout(.connect)) {
                return "connect"
            } catch let error as RequestError where error.is(.timeout) {
                return "timeout"
            } catch let error as RequestError where error.is(.invalidStatusCode(404)) {
                return "missing"
            } catch let error as RequestError where error.is(.invalidStatusCode(500...599)) {
                return "trouble"
            } catch let error as RequestError {
                return Self.rest(error)
            } catch {
                return "unknown"
            }
        }
        let words = await withTaskGroup(of: String.self) { group in
            group.addTask {
                do {
                    return try await Self.fail(failure)
                } catch let error as RequestError where error.is(.timeout(.connect)) {
                    return "connect"
                } catch let error as RequestError where error.is(.timeout) {
                    return "timeout"
                } catch let error as RequestError where error.is(.invalidStatusCode(404)) {
                    return "missing"
                } catch let error as RequestError where error.is(.invalidStatusCode(500...599)) {
                    return "trouble"
                } catch let error as RequestError {
                    return Self.rest(error)
                } catch {
                    return "unknown"
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let started = await Self.word(of: failure) { agent, failing, say in
            _ = agent.start(failing) { result in
                do {
                    _ = try result.get()
                } catch let error as RequestError where error.is(.timeout(.connect)) {
                    say("connect")
                } catch let error as RequestError where error.is(.timeout) {
                    say("timeout")
                } catch let error as RequestError where error.is(.invalidStatusCode(404)) {
                    say("missing")
                } catch let error as RequestError where error.is(.invalidStatusCode(500...599)) {
                    say("trouble")
                } catch let error as RequestError {
                    say(Self.rest(error))
                } catch {
                    say("unknown")
                }
            }
        }
        #expect(
            await [inAFunction(), inAClosure(), task.value] + words + [started] == Array(repeating: word, count: 5))
    }

    @Test(arguments: failures) func isInACaseOfAResult(_ failure: RequestError, _ word: String) async {
        func inAFunction() async -> String {
            switch await Self.result(failure) {
            case .success: return "success"
            case .failure(let error) where error.is(.timeout(.connect)): return "connect"
            case .failure(let error) where error.is(.timeout): return "timeout"
            case .failure(let error) where error.is(.invalidStatusCode(404)): return "missing"
            case .failure(let error) where error.is(.invalidStatusCode(500...599)): return "trouble"
            case .failure(let error): return Self.rest(error)
            }
        }
        let inAClosure: @Sendable () async -> String = {
            switch await Self.result(failure) {
            case .success: return "success"
            case .failure(let error) where error.is(.timeout(.connect)): return "connect"
            case .failure(let error) where error.is(.timeout): return "timeout"
            case .failure(let error) where error.is(.invalidStatusCode(404)): return "missing"
            case .failure(let error) where error.is(.invalidStatusCode(500...599)): return "trouble"
            case .failure(let error): return Self.rest(error)
            }
        }
        let task = Task {
            switch await Self.result(failure) {
            case .success: return "success"
            case .failure(let error) where error.is(.timeout(.connect)): return "connect"
            case .failure(let error) where error.is(.timeout): return "timeout"
            case .failure(let error) where error.is(.invalidStatusCode(404)): return "missing"
            case .failure(let error) where error.is(.invalidStatusCode(500...599)): return "trouble"
            case .failure(let error): return Self.rest(error)
            }
        }
        let words = await withTaskGroup(of: String.self) { group in
            group.addTask {
                switch await Self.result(failure) {
                case .success: return "success"
                case .failure(let error) where error.is(.timeout(.connect)): return "connect"
                case .failure(let error) where error.is(.timeout): return "timeout"
                case .failure(let error) where error.is(.invalidStatusCode(404)): return "missing"
                case .failure(let error) where error.is(.invalidStatusCode(500...599)): return "trouble"
                case .failure(let error): return Self.rest(error)
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let started = await Self.word(of: failure) { agent, failing, say in
            _ = agent.start(failing) { result in
                switch result {
                case .success: say("success")
                case .failure(let error) where error.is(.timeout(.connect)): say("connect")
                case .failure(let error) where error.is(.timeout): say("timeout")
                case .failure(let error) where error.is(.invalidStatusCode(404)): say("missing")
                case .failure(let error) where error.is(.invalidStatusCode(500...599)): say("trouble")
                case .failure(let error): say(Self.rest(error))
                }
            }
        }
        #expect(
            await [inAFunction(), inAClosure(), task.value] + words + [started] == Array(repeating: word, count: 5))
    }

    /// This form is documented only for functions.
    @Test(arguments: failures) func aCatchOfACode(_ failure: RequestError, _ word: String) async {
        func inAFunction() async -> String {
            do throws(RequestError) {
                return try await Self.fail(failure)
            } catch .timeout(.connect) {
                return "connect"
            } catch .timeout {
                return "timeout"
            } catch .invalidStatusCode(404) {
                return "missing"
            } catch .invalidStatusCode(500...599) {
                return "trouble"
            } catch {
                return Self.rest(error)
            }
        }
        #expect(await inAFunction() == word)
    }
}
