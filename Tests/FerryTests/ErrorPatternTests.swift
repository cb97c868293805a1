import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// The documented ways to match an error compile, and match, in any code of an application.
@Suite struct ErrorPatternTests {
    private static let errors: [(RequestError.Code, String)] = [
        (.timeout(.connect), "connect"), (.timeout(.deadline), "timeout"), (.invalidStatusCode(404), "missing"),
        (.invalidStatusCode(503), "trouble"), (.cancelled, "other"), (.tls(.expired), "other"),
    ]

    private static func fail(_ code: RequestError.Code) async throws(RequestError) -> String {
        throw RequestError(code)
    }

    @Test(arguments: errors) func inAFunction(_ code: RequestError.Code, _ word: String) async {
        func match() async -> String {
            do throws(RequestError) {
                return try await Self.fail(code)
            } catch {
                switch error.code {
                case .timeout(.connect): return "connect"
                case .timeout: return "timeout"
                case .invalidStatusCode(404): return "missing"
                case .invalidStatusCode(500...599): return "trouble"
                default: return "other"
                }
            }
        }
        #expect(await match() == word)
    }

    @Test(arguments: errors) func inAClosure(_ code: RequestError.Code, _ word: String) async {
        let match: @Sendable () async -> String = {
            do throws(RequestError) {
                return try await Self.fail(code)
            } catch {
                switch error.code {
                case .timeout(.connect): return "connect"
                case .timeout: return "timeout"
                case .invalidStatusCode(404): return "missing"
                case .invalidStatusCode(500...599): return "trouble"
                default: return "other"
                }
            }
        }
        #expect(await match() == word)
    }

    @Test(arguments: errors) func inATask(_ code: RequestError.Code, _ word: String) async {
        let task = Task {
            do throws(RequestError) {
                return try await Self.fail(code)
            } catch {
                if error.is(.timeout(.connect)) { return "connect" }
                if error.is(.invalidStatusCode(500...599)) { return "trouble" }
                switch error.code {
                case .timeout: return "timeout"
                case .invalidStatusCode(404): return "missing"
                default: return "other"
                }
            }
        }
        #expect(await task.value == word)
    }

    @Test(arguments: errors) func inAChildOfATaskGroup(_ code: RequestError.Code, _ word: String) async {
        let words = await withTaskGroup(of: String.self) { group in
            group.addTask {
                do {
                    return try await Self.fail(code)
                } catch let error as RequestError where error.is(.timeout(.connect)) {
                    return "connect"
                } catch let error as RequestError {
                    switch error.code {
                    case .timeout: return "timeout"
                    case .invalidStatusCode(404): return "missing"
                    case .invalidStatusCode(500...599): return "trouble"
                    default: return "other"
                    }
                } catch {
                    return "unknown"
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(words == [word])
    }

    @Test(arguments: errors) func inTheCallbackOfAStartedRun(_ code: RequestError.Code, _ word: String) async {
        struct Failing: Request {
            let code: RequestError.Code
            var path: String { "/x" }
            func value(from response: Response) throws -> Response { throw RequestError(code) }
        }
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        let found = await withCheckedContinuation { continuation in
            _ = agent.start(Failing(code: code)) { result in
                switch result {
                case .success: continuation.resume(returning: "success")
                case .failure(let error) where error.is(.timeout(.connect)): continuation.resume(returning: "connect")
                case .failure(let error):
                    switch error.code {
                    case .timeout: continuation.resume(returning: "timeout")
                    case .invalidStatusCode(404): continuation.resume(returning: "missing")
                    case .invalidStatusCode(500...599): continuation.resume(returning: "trouble")
                    default: continuation.resume(returning: "other")
                    }
                }
            }
        }
        #expect(found == word)
        await agent.shutdown()
    }
}
