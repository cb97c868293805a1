internal import FerryMeasurement
internal import FerryTesting
internal import FoundationEssentials
internal import Glibc

/// `ferry serve`: the loopback server, with its routes and, where wanted, a script of faults.
enum ServeCommand: Subcommand {
    static let name = "serve"
    static let summary = "Runs the loopback server, also one that misbehaves"
    static let synopsis = "[OPTIONS]"
    static let optionGroups = [
        OptionGroup([
            CommandOption("port", value: "N", "The port; 0 is any free one (0)"),
            CommandOption("script", value: "FILE", "Rules in JSON for what it does in place of answering"),
            CommandOption(
                "tls", value: "KIND", words: Array(certificates.keys.sorted()),
                "Speaks TLS, with a certificate that is \(certificates.keys.sorted().joined(separator: ", "))"),
            CommandOption("until-eof", "Ends at the end of standard input, too"),
            CommandOption("json", "Prints an object with the URL in place of the bare URL"),
        ])
    ]
    static let notes = """
        The URL goes to standard output; the server then runs until ctrl-C. GET / lists the routes. Where the port
        is not to be had, as it is in use, the exit code is 3.
        With --tls standard error gets the file of the authority that has signed the certificate, or should have.
        A script is {"scripts": [RULE, …]}, a rule {"path": "/slow", "uses": 1, "steps": [STEP, …]}: the first that
        fits the path and has uses left is played. With "connection": 2 or "connections": [2, 5] it is for these,
        without any of the three for every connection. Steps are "close", "reset", {"send": "text"}, {"pause": 50}
        and more; the manual tells all of them, and Examples/Serve/faults.json shows some.
        """

    private static let certificates: [String: ServerCertificate.Kind] = [
        "valid": .valid, "expired": .expired, "not-yet-valid": .notYetValid, "wrong-host": .wrongHost,
        "untrusted": .untrusted, "self-signed": .selfSigned,
    ]

    static func run(_ arguments: ParsedArguments) async throws -> ExitCode {
        if let operand = arguments.operands.first { throw UsageError("unexpected '\(operand)'") }
        var options = LoopbackServer.Options()
        options.port = UInt16(try arguments.integer("port", in: 0...65_535) ?? 0)
        // Nobody asks what it received, and it may run for days.
        options.recordedRequests = 0
        options.certificate = try arguments.last("tls").map { word in
            guard let kind = certificates[word] else {
                throw UsageError("--tls wants \(certificates.keys.sorted().joined(separator: ", ")), not '\(word)'")
            }
            return try ServerCertificate(kind)
        }
        let rules = try arguments.last("script").map { try ServeScript.rules(at: $0) } ?? []

        raiseDescriptorLimit()
        let server = try start(options)
        for rule in rules { server.install(rule) }
        if let certificate = options.certificate { Console.error("authority: \(certificate.authorityFile)\n") }
        Console.out(arguments.has("json") ? "{\"url\":\"\(server.baseURL)\"}\n" : server.baseURL + "\n")

        let untilEnd = arguments.has("until-eof")
        let (_, wasInterrupted) = try await interruptible { await waitForEnd(ofInput: untilEnd) }
        server.stop()
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

    /// Until the task is cancelled, or the input has ended.
    private static func waitForEnd(ofInput: Bool) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Task.sleep(for: .seconds(1_000_000_000)) }
            // Asked again and again, as a blocked read could not be cancelled.
            if ofInput {
                group.addTask {
                    while !Task.isCancelled && !inputHasEnded() { try? await Task.sleep(for: .milliseconds(100)) }
                }
            }
            await group.next()
            group.cancelAll()
        }
    }

    /// Takes away what has come, without waiting.
    private static func inputHasEnded() -> Bool {
        var wanted = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        guard poll(&wanted, 1, 0) > 0 else { return false }
        var buffer = [UInt8](repeating: 0, count: 4096)
        return read(STDIN_FILENO, &buffer, buffer.count) <= 0
    }
}

/// Why the server does not run.
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
