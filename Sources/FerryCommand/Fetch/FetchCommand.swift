internal import Ferry

/// `ferry fetch`: one exchange, or the same one several times through one agent.
enum FetchCommand: Subcommand {
    static let name = "fetch"
    static let summary = "Send a request and print the response"
    static let synopsis = "URL [OPTIONS]"
    static let notes = """
        A URL without a scheme is an http:// URL. Times are seconds, or have a unit: 500ms, 2s, 1m. Sizes are bytes,
        or have a unit: 10kB, 10MB, 10MiB. A FILE to read may be a pipe, such as /dev/stdin or <(command); - is
        standard input. A FILE to write may be /dev/stdout; - is standard output with -o only.

        On a terminal, JSON is indented and coloured, and a body with control characters is not printed.
        """

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        let plan = try FetchPlan(arguments)
        if plan.printsCurl { return try printCurl(plan) }
        let (code, wasInterrupted) = try await interruptible {
            await send(plan, endingLine: Console.endLine) {
                Console.out($0)
            } saying: {
                Console.error($0)
            }
        }
        return wasInterrupted ? .interrupted : code
    }

    /// Returns the exit code of the first exchange that failed.
    static func send(
        _ plan: FetchPlan, endingLine endLine: (() -> Void)? = nil,
        to output: @escaping (UnsafeRawBufferPointer) -> Void, saying say: (String) -> Void
    ) async -> ExitCode {
        let agent = NetworkAgent(configuration: plan.configuration)
        var code = ExitCode.success
        for round in 0..<plan.count {
            if round > 0 { try? await Task.sleep(for: plan.delay) }
            if Task.isCancelled || Console.hasOutputEnded { break }
            let writer = FetchWriter(
                plan.form, file: plan.outputPath.map(OutputFile.init), endingLine: endLine, output)
            let verdict = await TraceContext.$current.withValue(plan.trace) {
                await send(plan, by: agent, writer, to: output)
            }
            // Only the report in JSON contains it, not the events.
            if let fault = verdict.fault, !plan.printsJSON || plan.printsEvents {
                say("ferry fetch: \(Main.oneLine(fault.line))\n")
            }
            if code == .success { code = verdict.exitCode }
            guard let fault = writer.fault else {
                if writer.hasEnded { break }
                continue
            }
            say("ferry fetch: \(Main.oneLine(fault))\n")
            if code == .success { code = .transferFailed }
            break
        }
        await agent.shutdown(grace: .zero)
        if let path = plan.archivePath, let recorder = plan.configuration.recorder {
            let archive = recorder.archive
            if let shortage = recorder.shortage { say("ferry fetch: \(shortage)\n") }
            do {
                // Into the file: a new one in its place would replace a pipe, a device or a link.
                try OutputFile.write(String(decoding: archive.json(), as: UTF8.self), to: path)
            } catch {
                say("ferry fetch: \(Main.oneLine((error as? InputError)?.message ?? "\(error)"))\n")
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
        var report = await FetchReport(of: plan, by: agent)
        if let response = report.response, !plan.printsJSON || plan.outputPath != nil {
            writer.head(response)
            response.withBytes(writer.body)
            writer.end()
        }
        if plan.printsJSON {
            // After the file, because the object says whether all went well.
            if let fault = writer.fault { report.failToWrite(fault) }
            Array((report.json + "\n").utf8).withUnsafeBytes(output)
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
        "Request",
        [
            CommandOption("request", "X", value: "METHOD", "Method; the default is GET, or POST with a body"),
            CommandOption("head", "I", "Send HEAD; print the status and the header fields"),
            CommandOption("header", "H", value: "'N: V'", "Add a header field; may be repeated"),
            CommandOption("query", value: "K=V", "Add a query argument; may be repeated"),
            CommandOption("compressed", "Request gzip and deflate, and decode them (default)"),
            CommandOption("no-compressed", "Request the body without compression"),
            CommandOption(
                "idempotency-key", value: "KEY",
                "Send this key with every attempt to make retries safe; auto generates one"),
            CommandOption(
                "traceparent", value: "VALUE", "Send a span of this W3C trace with each attempt; new starts a trace"),
            CommandOption("cookies", "Keep cookies across redirects and repetitions"),
        ])

    private static let body = OptionGroup(
        "Body (one of these)",
        [
            CommandOption("data", "d", value: "DATA|@FILE", "Send DATA or the contents of FILE; @- is standard input"),
            CommandOption("form", value: "K=V", "Add a field of a URL-encoded form; may be repeated"),
            CommandOption(
                "multipart", "F", value: "K=V|K=@FILE", "Add a part of a form; a file may have ;type= and ;filename="),
            CommandOption("json-body", value: "JSON|@FILE", "Send JSON after checking its syntax"),
            CommandOption(
                "compress-body", value: "CODING", words: CompressionOption.words,
                "Compress the body to gzip or zstd; the server must support that coding"),
        ])

    static let credentials = OptionGroup(
        "Credentials (one of these)",
        [
            CommandOption("basic", "u", value: "USER:PW", "Send Basic credentials with the request"),
            CommandOption("digest", value: "USER:PW", "Send Digest credentials when the server asks"),
            CommandOption("bearer", value: "TOKEN", "Send a bearer token with the request"),
        ])

    private static let bounds = OptionGroup(
        "Validation and limits",
        [
            CommandOption("status", value: "CODES", "Accept these status codes, like 200-299,404 (200-299)"),
            CommandOption("schema", value: "FILE", "Check the body against a JSON Schema; it is held in memory"),
            CommandOption(
                "max-redirects", value: "N", "Maximum number of redirects (10); 0 streams -d @-, without --events"),
            CommandOption("retries", value: "N", "Maximum number of retries (0; with --events 10)"),
            CommandOption(
                "max-body", value: "N", "Maximum body size (64 MiB with --json, --schema, a cache)"),
            CommandOption("timeout", "m", value: "S", "Time limit for each exchange, without its wait in the queue"),
            CommandOption("connect-timeout", value: "S", "Time limit for connecting"),
            CommandOption("deadline", value: "S", "Time limit for the whole run, including retries"),
            CommandOption("low-speed", value: "B", "Fail below B bytes per second over ten seconds"),
        ])

    static let connection = OptionGroup(
        "Connection",
        [
            EngineOption.option,
            CommandOption("proxy", "x", value: "URL", "Use a proxy: http://, socks5:// or socks5h://"),
            CommandOption("proxy-env", "Use http_proxy, https_proxy, all_proxy and no_proxy"),
            CommandOption("no-proxy", value: "HOSTS", "Use no proxy for these hosts, separated by commas"),
            CommandOption("unix-socket", value: "PATH", "Connect to a Unix socket, whatever host the URL names"),
            CommandOption(
                "resolve", value: "H:P:ADDR",
                "Use these addresses, separated by commas, for host H, port P; may be repeated"),
            CommandOption(
                "address-selection", value: "NAME", words: AddressSelection.words,
                "How to choose among several addresses: ordered, round-robin or least-requests (ordered)"),
            CommandOption("connect-ahead", value: "N", "Keep N connections ready for each host in use"),
            CommandOption(
                "keepalive-time", value: "S", "Probe the connection after this time without a byte (TCP keep-alive)"),
            CommandOption("public-only", "Connect to public internet addresses only"),
            CommandOption("http2", "Use HTTP/2 over TLS with servers that offer it"),
            CommandOption("max-streams", value: "N", "Maximum number of requests at once per HTTP/2 connection (100)"),
            CommandOption("cacert", value: "FILE", "Trust these authorities instead of the system's"),
            CommandOption("cert", "E", value: "FILE", "Client certificate (PEM)"),
            CommandOption("key", value: "FILE", "Private key of the certificate, unless it is in the same file"),
            CommandOption("tls-min", value: "VERSION", words: ["1.2", "1.3"], "Minimum TLS version, 1.2 or 1.3 (1.2)"),
            CommandOption("pin", value: "sha256//…", "Require this public key of the server; may be repeated"),
            CommandOption("insecure", "k", "Do not verify the server's certificate and name"),
        ])

    private static let cache = OptionGroup(
        "Cache (holds each response in memory)",
        [
            CommandOption("cache-dir", value: "FOLDER", "Store responses in FOLDER; it is created if needed"),
            CommandOption(
                "cache", value: "URL", "Store responses in Redis instead: redis[s]://HOST[:PORT][/DATABASE]"),
            CommandOption("cache-ttl", value: "S", "Reuse a stored response for S seconds"),
            CommandOption(
                "http-cache", optionalValue: "KIND",
                "Cache as the server says, instead of --cache-ttl; private or shared"),
            CommandOption("cache-version", value: "N", "Ignore responses stored under another version (0)"),
            CommandOption(
                "cache-mode", value: "MODE", words: ["else-network", "reload", "only"],
                "How to use the cache: else-network, reload or only (else-network)"),
        ])

    private static let output = OptionGroup(
        "Output",
        [
            CommandOption("output", "o", value: "FILE", "Write the body to FILE; - is standard output, unfiltered"),
            CommandOption("remote-name", "O", "Write the body to a file named as in the URL"),
            CommandOption("include", "i", "Print the status and the header fields before the body"),
            CommandOption("events", "Print server-sent events as they arrive, and reconnect if necessary"),
            CommandOption("raw", "Print JSON on a terminal unchanged, without indentation and colours"),
            CommandOption("repeat", value: "N", "Send the request N times"),
            CommandOption("repeat-delay", value: "S", "Pause between repetitions"),
            CommandOption("json", "Print one JSON object per line instead of the body"),
            CommandOption("verbose", "v", "Log to stderr; secrets are redacted"),
            CommandOption("har", value: "FILE", "Write at most 10,000 exchanges to FILE in HAR 1.2, redacted"),
            CommandOption("to-curl", "Print the equivalent curl command instead of sending; secrets are redacted"),
            CommandOption("show-secrets", "With --to-curl: print secrets, too"),
        ])
}
