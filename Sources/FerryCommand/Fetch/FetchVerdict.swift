internal import Dispatch
internal import Ferry
internal import FoundationEssentials

/// Whether an exchange went as it should have.
struct FetchVerdict: Sendable {
    /// Why it is not accepted.
    struct Fault: Sendable, Encodable {
        var code: String
        var phase: String
        var message: String
        var mayHaveBeenProcessed: Bool

        /// For stderr.
        var line: String

        private enum CodingKeys: CodingKey { case code, phase, message, mayHaveBeenProcessed }
    }

    let fault: Fault?
    let exitCode: ExitCode

    /// An answer came, with this status.
    init(status: Int, accepting accepts: (Int) -> Bool) {
        let isAccepted = accepts(status)
        fault = isAccepted ? nil : Fault(status: status)
        exitCode = isAccepted ? .success : .statusNotAccepted
    }

    /// A whole answer came; of one whose status is not accepted the body may be anything.
    init(_ response: Response, by plan: FetchPlan) {
        self.init(status: response.status, accepting: plan.accepts)
        guard exitCode == .success, let schema = plan.schema else { return }
        do throws(RequestError) {
            try response.check(by: schema)
        } catch {
            self.init(error, of: plan.request)
        }
    }

    init(_ error: RequestError, of request: FetchRequest) {
        fault = Fault(error, of: request)
        exitCode =
            switch error.code {
            case .cancelled: .interrupted
            case .invalidJSON, .schemaMismatch: .validationFailed
            default: .transferFailed
            }
    }
}

extension FetchVerdict {
    /// Sends the request and puts the body out as it comes, whatever its status, as long as somebody gets it.
    init(streaming plan: FetchPlan, by agent: NetworkAgent, to writer: FetchWriter) async {
        let end = InterruptionFlag()
        if let deadline = plan.request.deadline { Self.endIfStuck(after: deadline, unless: end) }
        defer {
            writer.end()
            _ = end.raise()
        }
        do throws(RequestError) {
            let answer = try await agent.stream(plan.request)
            writer.head(answer.head)
            for try await piece in answer.body {
                piece.withUnsafeBytes(writer.body)
                if writer.hasEnded { break }
            }
            self.init(status: answer.status, accepting: plan.accepts)
        } catch {
            self.init(error, of: plan.request)
        }
    }

    /// Ends the process soon after the deadline if it is standard output that the answer waits for then.
    private static func endIfStuck(after deadline: Duration, unless end: InterruptionFlag) {
        DispatchQueue.global().asyncAfter(deadline: .now() + deadline / .seconds(1)) {
            let limit = FailureText.text(deadline)
            let message = "ferry fetch: no end within \(limit) (deadline): standard output is blocked\n"
            Console.endsIfStuck(.transferFailed, saying: message, unless: end)
        }
    }
}

extension FetchVerdict.Fault {
    init(_ error: RequestError, of request: any Request) {
        var words = [error.code.detail ?? "", error.message].filter { !$0.isEmpty }
        // What was typed begins otherwise, most often with the host.
        if case .unsupportedScheme = error.code { words.append("a URL begins with http:// or https://") }
        self.init(
            code: error.code.name, phase: error.phase.rawValue, message: words.joined(separator: ": "),
            mayHaveBeenProcessed: error.mayHaveBeenProcessed, line: FailureText.of(error, request))
    }

    init(status: Int) {
        self.init(
            code: RequestError.Code.invalidStatusCode.name, phase: RequestPhase.processing.rawValue,
            message: "status \(status) is not accepted", mayHaveBeenProcessed: true,
            line: "status \(status) is not accepted")
    }
}
