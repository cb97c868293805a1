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
        var line: String { message.isEmpty ? code : "\(code): \(message)" }
    }

    let fault: Fault?
    let exitCode: ExitCode

    /// An answer came, with this status.
    init(status: Int, accepting accepts: (Int) -> Bool) {
        let isAccepted = accepts(status)
        fault = isAccepted ? nil : Fault(status: status)
        exitCode = isAccepted ? .success : .statusNotAccepted
    }

    init(_ error: RequestError) {
        fault = Fault(error)
        exitCode = error.code == .cancelled ? .interrupted : .transferFailed
    }
}

extension FetchVerdict {
    /// Sends the request and puts the body out as it comes, whatever its status.
    init(
        streaming plan: FetchPlan, by agent: NetworkAgent, to output: (UnsafeRawBufferPointer) -> Void
    ) async {
        do throws(RequestError) {
            let answer = try await agent.stream(plan.request)
            for try await piece in answer.body { piece.withUnsafeBytes(output) }
            self.init(status: answer.status, accepting: plan.accepts)
        } catch {
            self.init(error)
        }
    }
}

extension FetchVerdict.Fault {
    init(_ error: RequestError) {
        let words = [error.code.detail ?? "", error.message].filter { !$0.isEmpty }
        self.init(
            code: error.code.name, phase: error.phase.rawValue, message: words.joined(separator: ": "),
            mayHaveBeenProcessed: error.mayHaveBeenProcessed)
    }

    init(status: Int) {
        self.init(
            code: "invalidStatusCode", phase: RequestPhase.processing.rawValue,
            message: "status \(status) is not accepted", mayHaveBeenProcessed: true)
    }
}
