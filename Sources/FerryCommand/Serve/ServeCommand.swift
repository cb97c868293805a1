internal import FerryMeasurement
internal import FerryTesting
internal import FoundationEssentials
internal import Glibc

/// `ferry serve`: the loopback server with its routes and, optionally, a script of faults.
enum ServeCommand: Subcommand {
    static let name = "serve"
    static let summary = "Run a test server, which can also misbehave"
    static let synopsis = "[OPTIONS]"
    static let optionGroups = [
        OptionGroup([
            CommandOption("port", value: "N", "Listen on port N; 0 is any free port (0)"),
            CommandOption("script", value: "FILE", "Play a script of faults: rules in JSON"),
            CommandOption(
                "tls", value: "KIND", words: Array(certificates.keys.sorted()),
                "Use TLS, with a certificate that is \(certificates.keys.sorted().joined(separator: ", "))"),
            CommandOption("until-eof", "Also stop at the end of standard input"),
            CommandOption("json", "Print the URL as a JSON object"),
        ])
    ]
    static let notes = """
        The command prints the URL to standard output, and runs until ctrl-C or SIGTERM. GET / lists the routes. If
        the port is not available, the exit code is 3.
        With --tls it prints to standard error the file of the authority that a client has to trust.
        A script is {"scripts": [RULE, …]}, and a rule {"path": "/slow", "uses": 1, "steps": [STEP, …]}. The first
        rule that matches the path and has uses left is played. A rule with "connection": 2 or "connections": [2, 5]
        applies to these connections, and a rule without any of the three to every connection. Steps are "close",
        "reset", {"send": "text"}, {"pause": 50} and more. The manual's article "Testing your code" describes all of
        them, and Examples/Serve/faults.json is an example.
        """

    private static let certificates: [String: ServerCertificate.Kind] = [
        "valid": .valid, "expired": .expired, "not-yet-valid": .notYetValid, "wrong-host": .wrongHost,
        "untrusted": .untrusted, "self-signed": .selfSigned,
    ]

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        if let operand = arguments.operands.first { throw UsageError("unexpected '\(operand)'") }
        var options = LoopbackServer.Options()
        options.port = UInt16(try arguments.integer("port", in: 0...65_535) ?? 0)
        // Nobody reads them, and the server may run for days.
        options.recordedRequests = 0
        options.certificate = try arguments.last("tls").map { word in
            guard let kind = certificates[word] else {
                throw UsageError("--tls must be \(certificates.keys.sorted().joined(separator: ", ")), not '\(word)'")
            }
            return try ServerCertificate(kind)
        }
        let rules = try arguments.last("script").map { try ServeScript.rules(at: $0) } ?? []

        raiseDescriptorLimit()
        let server = try start(options)
        for rule in rules { server.install(rule) }
        if let certificate = options.certificate { Console.error("authority: \(certificate.authorityFile)\n") }
        let place = arguments.has("json") ? "{\"url\":\"\(server.baseURL)\"}\n" : server.baseURL + "\n"

        let untilEnd = arguments.has("until-eof")
        let (_, wasInterrupted) = try await interruptible {
            Console.out(place)
            await waitForEnd(ofInput: untilEnd)
        }
        server.stop()
        // A program that starts a server of its own, as `ferry bench` does, ends it without a word.
        if untilEnd && InterruptionFlag.termination.isRaised { return .interrupted }
        Console.error("\(server.requestCount) requests on \(server.connectionCount) connections\n")
        return wasInterrupted ? .interrupted : .success
    }

    private static func start(_ options: LoopbackServer.Options) throws(ServeFault) -> LoopbackServer {
        do {
            return try LoopbackServer(options)
        } catch {
            throw ServeFault(port: options.port, error)
        }
    }

    /// Waits until the task is cancelled, or the input has ended.
    private static func waitForEnd(ofInput: Bool) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Task.sleep(for: .seconds(1_000_000_000)) }
            // Polls, because a blocked read could not be cancelled.
            if ofInput {
                group.addTask {
                    while !Task.isCancelled && !inputHasEnded() { try? await Task.sleep(for: .milliseconds(100)) }
                }
            }
            await group.next()
            group.cancelAll()
        }
    }

    /// Discards input without waiting.
    private static func inputHasEnded() -> Bool {
        var wanted = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        guard poll(&wanted, 1, 0) > 0 else { return false }
        var buffer = [UInt8](repeating: 0, count: 4096)
        return read(STDIN_FILENO, &buffer, buffer.count) <= 0
    }
}

/// Why the server could not start.
struct ServeFault: Error, CustomStringConvertible {
    let description: String

    init(port: UInt16, _ error: LoopbackError) {
        description =
            switch error {
            case .start(-EADDRINUSE): "port \(port) is in use"
            case .start(let code) where code < 0: "port \(port): \(String(cString: strerror(-code)))"
            case .start, .certificate, .file, .stopped, .script: "port \(port): \(error)"
            }
    }
}
