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

extension FetchCommand {
    static let optionGroups = [request, body, credentials, bounds, connection, cache, output]

    private static let request = OptionGroup(
        "The request",
        [
            CommandOption("request", "X", value: "METHOD", "GET, or POST with a body, unless said otherwise"),
            CommandOption("head", "I", "Sends HEAD, and prints the status and the header fields"),
            CommandOption("header", "H", value: "'N: V'", "A header field; may be repeated"),
            CommandOption("query", value: "K=V", "Added to the query; may be repeated"),
            CommandOption("compressed", "Asks for gzip and deflate, and undoes them; the default"),
            CommandOption("no-compressed", "Asks for the body as it is"),
            CommandOption(
                "idempotency-key", value: "KEY", "Sent with every attempt, so that retries are safe; auto makes one"),
            CommandOption(
                "traceparent", value: "VALUE", "Sends a span of this W3C trace with each attempt; new begins a trace"),
            CommandOption("cookies", "Keeps cookies over redirects and repetitions"),
        ])

    private static let body = OptionGroup(
        "Its body, one kind of it",
        [
            CommandOption("data", "d", value: "DATA|@FILE", "As it is, or a file as it is read; @- is standard input"),
            CommandOption("form", value: "K=V", "A field of a URL-encoded form; may be repeated"),
            CommandOption(
                "multipart", "F", value: "K=V|K=@FILE", "A part of a form; of a file ;type= and ;filename= may follow"),
            CommandOption("json-body", value: "JSON|@FILE", "JSON, which is checked"),
            CommandOption(
                "compress-body", value: "CODING", words: CompressionOption.words,
                "Compresses it as it is read, to gzip or zstd; the server must know that coding"),
        ])

    static let credentials = OptionGroup(
        "Credentials, one of them",
        [
            CommandOption("basic", "u", value: "USER:PW", "Sent at once"),
            CommandOption("digest", value: "USER:PW", "Sent as a digest, when the server asks"),
            CommandOption("bearer", value: "TOKEN", "A token, sent at once"),
        ])

    private static let bounds = OptionGroup(
        "What is accepted, and how long it may take",
        [
            CommandOption("status", value: "CODES", "Accepted status codes, like 200-299,404 (200-299)"),
            CommandOption("schema", value: "FILE", "A JSON Schema that the body must fit; it is held in memory"),
            CommandOption(
                "max-redirects", value: "N", "Redirects to follow; 0 for none, and -d @- goes as it comes (10)"),
            CommandOption("retries", value: "N", "How often to try again what may be tried again (0)"),
            CommandOption(
                "max-body", value: "N", "Most bytes of the body (64 MiB with --json, --schema, --cache-dir)"),
            CommandOption("timeout", "m", value: "S", "Seconds for each exchange, once it has left the queue"),
            CommandOption("connect-timeout", value: "S", "Seconds for the connection"),
            CommandOption("deadline", value: "S", "Seconds for everything, retries included"),
            CommandOption("low-speed", value: "B", "Fail below B bytes a second over ten seconds"),
        ])

    static let connection = OptionGroup(
        "The way there",
        [
            EngineOption.option,
            CommandOption("proxy", "x", value: "URL", "Through a proxy: http://, socks5:// or socks5h://"),
            CommandOption("proxy-env", "Through that of http_proxy, https_proxy, all_proxy and no_proxy"),
            CommandOption("no-proxy", value: "HOSTS", "Hosts to reach without it, with commas"),
            CommandOption("unix-socket", value: "PATH", "Through a Unix socket, whatever host the URL names"),
            CommandOption(
                "resolve", value: "H:P:ADDR", "The addresses of host H at port P, with commas; may be repeated"),
            CommandOption(
                "address-selection", value: "NAME", words: AddressSelection.words,
                "Of several addresses: ordered, round-robin or least-requests (ordered)"),
            CommandOption("connect-ahead", value: "N", "N connections that lie ready at each host in use"),
            CommandOption("keepalive-time", value: "S", "Seconds without a byte until TCP probes the server"),
            CommandOption("public-only", "To addresses of the public internet only"),
            CommandOption("http2", "HTTP/2 with servers that offer it over TLS"),
            CommandOption("max-streams", value: "N", "Requests at once on a connection of HTTP/2 (100)"),
            CommandOption("cacert", value: "FILE", "Authorities to trust instead of the system's"),
            CommandOption("cert", "E", value: "FILE", "The client's certificate, PEM"),
            CommandOption("key", value: "FILE", "The key to it, unless it is in the same file"),
            CommandOption("tls-min", value: "VERSION", words: ["1.2", "1.3"], "1.2 or 1.3 (1.2)"),
            CommandOption("pin", value: "sha256//…", "The server's public key; may be repeated"),
            CommandOption("insecure", "k", "Verifies neither certificate nor name"),
        ])

    private static let cache = OptionGroup(
        "What is kept of the answers, which are held in memory then",
        [
            CommandOption("cache-dir", value: "FOLDER", "Where; made when it is not there"),
            CommandOption("cache-ttl", value: "S", "Seconds for which a kept answer is used again"),
            CommandOption(
                "http-cache", optionalValue: "KIND", "In place of --cache-ttl: as the server says; private or shared"),
            CommandOption("cache-version", value: "N", "Answers of another version are not used (0)"),
            CommandOption(
                "cache-mode", value: "MODE", words: ["else-network", "reload", "only"],
                "else-network, reload or only (else-network)"),
        ])

    private static let output = OptionGroup(
        "What is done with it",
        [
            CommandOption("output", "o", value: "FILE", "Writes the body to FILE; - is standard output, unguarded"),
            CommandOption("remote-name", "O", "Writes the body to a file with the name in the URL"),
            CommandOption("include", "i", "Prints the status and the header fields before the body"),
            CommandOption("events", "Prints server-sent events as they come, and connects again when it has to"),
            CommandOption("raw", "Prints JSON on a terminal as it comes, neither indented nor coloured"),
            CommandOption("repeat", value: "N", "Sends it N times"),
            CommandOption("repeat-delay", value: "S", "Seconds between two of them"),
            CommandOption("json", "Prints one object a line in place of the body"),
            CommandOption("verbose", "v", "Says on stderr what happens, secrets left out"),
            CommandOption("har", value: "FILE", "Writes all exchanges to FILE, in HAR 1.2, secrets left out"),
            CommandOption("to-curl", "Sends nothing: prints the command of curl, secrets left out"),
            CommandOption("show-secrets", "With --to-curl: prints all of it, ready to run"),
        ])
}
