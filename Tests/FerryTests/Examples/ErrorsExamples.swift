import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// The code of the article "Errors".
@Suite struct ErrorsExamples {
    private struct Transfer: Request {
        let amount: Int
        var path: String { "/transfer" }
        var method: HTTPMethod { .post }
        var arguments: Arguments { ["amount": .integer(amount)] }
    }

    private func transfer(by agent: NetworkAgent) async -> String {
        do throws(RequestError) {
            try await agent.send(Transfer(amount: 100))
        } catch {
            switch error.code {
            case .timeout(.connect): return "nobody there"  // certainly nothing was done
            case .invalidStatusCode(409): return "done before"
            case .invalidStatusCode(500...599): return "the server is in trouble"
            case _ where error.mayHaveBeenProcessed: return "look before sending it again"
            default: return "\(error.code) in \(error.phase)"
            }
        }
        return "done"
    }

    private func start(_ agent: NetworkAgent) {
        agent.start(Transfer(amount: 100)) { result in
            switch result {
            case .success: print("done")
            case .failure(let error) where error.is(.timeout): print("too slow")
            case .failure(let error): print(error)
            }
        }
    }

    private func total(_ response: Response) throws -> Int {
        throw RequestError(.decoding, message: "the response has no total")
    }

    @Test(arguments: [
        (200, "done"), (409, "done before"), (503, "the server is in trouble"), (404, "look before sending it again"),
    ])
    func codesAreMatchedInTheirOrder(status: Int, said: String) async {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response(status: status)))
        #expect(await transfer(by: agent) == said)
        await agent.shutdown()
    }
}
