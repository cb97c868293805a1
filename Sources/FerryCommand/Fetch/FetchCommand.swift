internal import Ferry

/// `ferry fetch`: one exchange, or the same one several times through one agent.
enum FetchCommand: Subcommand {
    static let name = "fetch"
    static let summary = "Sends a request and prints the answer"
    static let synopsis = "URL [OPTIONS]"

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        let plan = try FetchPlan(arguments)
        if plan.printsCurl { return try printCurl(plan) }
        let (code, wasInterrupted) = try await interruptible {
            await send(plan) {
                Console.out($0)
            } saying: {
                Console.error($0)
            }
        }
        return wasInterrupted ? .interrupted : code
    }

    /// The exit code of the first that did not go well counts.
    static func send(
        _ plan: FetchPlan, to output: (UnsafeRawBufferPointer) -> Void, saying say: (String) -> Void
    ) async -> ExitCode {
        let agent = NetworkAgent(configuration: plan.configuration)
        var code = ExitCode.success
        for round in 0..<plan.count {
            if round > 0 { try? await Task.sleep(for: plan.delay) }
            if Task.isCancelled || Console.hasOutputEnded { break }
            let verdict = await send(plan, by: agent, to: output)
            if let fault = verdict.fault, !plan.printsJSON { say("ferry fetch: \(Main.oneLine(fault.line))\n") }
            if code == .success { code = verdict.exitCode }
        }
        await agent.shutdown(grace: .zero)
        return code
    }

    private static func send(
        _ plan: FetchPlan, by agent: NetworkAgent, to output: (UnsafeRawBufferPointer) -> Void
    ) async -> FetchVerdict {
        let isHeld = plan.printsJSON || plan.schema != nil || plan.cache != nil
        if !isHeld { return await FetchVerdict(streaming: plan, by: agent, to: output) }
        let report = await FetchReport(of: plan, by: agent)
        if plan.printsJSON {
            Array((report.json + "\n").utf8).withUnsafeBytes(output)
        } else {
            report.response?.withBytes(output)
        }
        return report.verdict
    }

    private static func printCurl(_ plan: FetchPlan) throws -> ExitCode {
        let agent = NetworkAgent(configuration: plan.configuration)
        do throws(RequestError) {
            Console.out(try agent.curlCommand(for: plan.request, redacted: !plan.showsSecrets) + "\n")
            return .success
        } catch {
            let verdict = FetchVerdict(error)
            Console.error("ferry fetch: \(Main.oneLine(verdict.fault?.line ?? ""))\n")
            return verdict.exitCode
        }
    }
}
