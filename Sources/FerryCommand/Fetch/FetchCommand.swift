internal import Ferry

/// `ferry fetch`: one exchange, or the same one several times through one agent.
enum FetchCommand: Subcommand {
    static let name = "fetch"
    static let summary = "Sends a request and prints the answer"
    static let synopsis = "URL [OPTIONS]"
    static let notes = """
        A URL without a scheme is an http:// URL. Times are seconds, or have a unit: 500ms, 2s, 1m. Sizes are bytes,
        or have a unit: 10kB, 10MB, 10MiB. A FILE may be a pipe, such as /dev/stdin or <(command); - is standard
        input.

        On a terminal, JSON is indented and coloured, and a body with control characters is not printed.
        """

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
        _ plan: FetchPlan, to output: @escaping (UnsafeRawBufferPointer) -> Void, saying say: (String) -> Void
    ) async -> ExitCode {
        let agent = NetworkAgent(configuration: plan.configuration)
        var code = ExitCode.success
        for round in 0..<plan.count {
            if round > 0 { try? await Task.sleep(for: plan.delay) }
            if Task.isCancelled || Console.hasOutputEnded { break }
            let writer = FetchWriter(plan.form, file: plan.outputPath.map(OutputFile.init), output)
            let verdict = await TraceContext.$current.withValue(plan.trace) {
                await send(plan, by: agent, writer, to: output)
            }
            if let fault = verdict.fault, !plan.printsJSON { say("ferry fetch: \(Main.oneLine(fault.line))\n") }
            if code == .success { code = verdict.exitCode }
            guard let fault = writer.fault else { continue }
            say("ferry fetch: \(Main.oneLine(fault))\n")
            if code == .success { code = .transferFailed }
            break
        }
        await agent.shutdown(grace: .zero)
        if let path = plan.archivePath, let archive = plan.configuration.recorder?.archive {
            do {
                try archive.write(to: path)
            } catch {
                say("ferry fetch: cannot write \(Main.oneLine(path))\n")
                if code == .success { code = .transferFailed }
            }
        }
        return code
    }

    private static func send(
        _ plan: FetchPlan, by agent: NetworkAgent, _ writer: FetchWriter, to output: (UnsafeRawBufferPointer) -> Void
    ) async -> FetchVerdict {
        if plan.printsEvents { return await FetchEvents.print(plan, by: agent, to: writer) }
        let isHeld = plan.printsJSON || plan.schema != nil || plan.cache != nil
        if !isHeld { return await FetchVerdict(streaming: plan, by: agent, to: writer) }
        let report = await FetchReport(of: plan, by: agent)
        if plan.printsJSON { Array((report.json + "\n").utf8).withUnsafeBytes(output) }
        if let response = report.response, !plan.printsJSON || plan.outputPath != nil {
            writer.head(response)
            response.withBytes(writer.body)
            writer.end()
        }
        return report.verdict
    }

    private static func printCurl(_ plan: FetchPlan) throws -> ExitCode {
        let agent = NetworkAgent(configuration: plan.configuration)
        do throws(RequestError) {
            Console.out(try agent.curlCommand(for: plan.request, redacted: !plan.showsSecrets) + "\n")
            return .success
        } catch {
            let verdict = FetchVerdict(error, of: plan.request)
            Console.error("ferry fetch: \(Main.oneLine(verdict.fault?.line ?? ""))\n")
            return verdict.exitCode
        }
    }
}
