import Ferry
import FerryJSON
import FerryMeasurement
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryCommand

/// Loads against the loopback server.
@Suite(.timeLimit(.minutes(2))) struct BenchRunTests {
    private func report(_ line: String...) async throws -> BenchReport {
        await BenchRun(try BenchPlan(ParsedArguments(line, of: BenchCommand.allOptions))).perform()
    }

    @Test func theClosedModelSendsAsManyAsAsked() async throws {
        try await withLoopbackServer { server in
            let report = try await report(server.baseURL + "/hello", "-n", "200", "-c", "4")
            #expect(report.requests == 200 && report.ok == 200 && report.failed == 0)
            #expect(report.statuses == ["200": 200] && report.errors.isEmpty && report.wrongBodies == 0)
            #expect(report.bytes == 200 * 12 && server.requestCount == 200)
            #expect(report.connections >= 1 && report.connections <= 4)
            #expect(report.series.map(\.failed).reduce(0, +) == 0)
            #expect(report.histogram.map(\.count).reduce(0, +) == 200)
            #expect(report.phases["first_byte"]?["count"] == 200 && report.phases["tls"] == nil)
        }
    }

    @Test func cacheHitsAreCountedAndNotSent() async throws {
        try await withLoopbackServer { server in
            server.handle("/fresh") { _ in LoopbackResponse(headers: ["Cache-Control": "max-age=60"], text: "a") }
            let report = try await report(server.baseURL + "/fresh", "-n", "200", "-c", "1", "--http-cache")
            #expect(report.requests == 200 && report.ok == 200 && report.failed == 0 && report.bytes == 200)
            #expect(server.requestCount == 1)
        }
        #expect(await Main.run(["bench", "http://h/", "--http-cache", "-r", "10"]) == .usage)
        #expect(await Main.run(["bench", "http://h/", "--cache-dir", "/x"]) == .usage)
    }

    /// None gets a response before all have arrived.
    @Test func theClosedModelHasAConnectionForEach() async throws {
        try await withLoopbackServer { server in
            server.script(
                path: "/", [.wait("all"), .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), .close])
            let load = Task { try await report(server.baseURL + "/", "-c", "80", "-n", "80") }
            try await server.waitForRequests(80)
            server.signal("all")
            #expect(try await load.value.ok == 80)
        }
    }

    @Test func whatCannotBeSentIsKnownBeforeTheLoad() async throws {
        let end = try FerryProgram.run("bench", "ftp://127.0.0.1:1/hello", "-n", "5")
        #expect(end.code == 1 && end.output.contains("a URL begins with http:// or https://"), "\(end)")
        #expect(!end.output.contains("closed, "))
        #expect(await Main.run(["bench", "http://a b/"]) == .usage)
        #expect(await Main.run(["bench", "http://h/", "-X", "a b"]) == .usage)
        #expect(await Main.run(["bench", "--from-curl", "curl ftp://h/"]) == .usage)
    }

    @Test func theOpenModelSendsWhatIsDue() async throws {
        try await withLoopbackServer { server in
            let report = try await report(server.baseURL + "/hello", "-r", "200", "-z", "0.5")
            #expect(report.requests == 100 && report.ok == 100 && server.requestCount == 100)
            #expect(report.seconds >= 0.495)
            #expect(report.model.kind == "open" && report.model.rate == 200)
            #expect(report.generator.lateness != nil && report.generator.loopLag["max"] != nil)
        }
    }

    /// Ten are due within 90 ms, and one connection carries one each 50 ms: the last waits for all before it.
    @Test func theOpenModelCountsFromTheDueTime() async throws {
        try await withLoopbackServer { server in
            let url = server.baseURL + "/delay/50"
            let open = try await report(url, "-r", "100", "-n", "10", "--connections", "1")
            #expect(try #require(open.latency["max"]) >= 400_000)
            #expect(open.ok == 10)
        }
    }

    /// One event loop has several libcurl handles, for 64 transfers each.
    @Test(arguments: [("100", 100), ("150", 150), ("400", 100)], ["automatic", "libcurl"])
    func noMoreConnectionsAreOpenedThanAskedFor(load: (String, Int), engine: String) async throws {
        let (concurrency, connections) = load
        try await withLoopbackServer { server in
            let report = try await report(
                server.baseURL + "/hello", "-n", "6000", "-c", concurrency, "--connections", "\(connections)",
                "--engine", engine)
            #expect(report.ok == 6000 && report.connections <= connections, "\(report.connections)")
            #expect(server.connectionCount <= connections)
        }
    }

    @Test(arguments: [("automatic", "http1"), ("libcurl", "libcurl")])
    func theReportTellsWhatCarriedTheAnswers(engine: String, carrier: String) async throws {
        try await withLoopbackServer { server in
            let report = try await report(server.baseURL + "/hello", "-n", "30", "-c", "3", "--engine", engine)
            #expect(report.engine == engine && report.engines == [carrier: 30])
            #expect(BenchTable(report).text.contains("\n  engine       \(carrier) 100 %\n"))
        }
        let known = BenchCommand.allOptions
        #expect(throws: UsageError.self) {
            try BenchPlan(ParsedArguments(["http://h/", "--engine", "curl"], of: known))
        }
        let curl = ["--from-curl", "curl http://h/", "--engine", engine]
        let plan = try BenchPlan(ParsedArguments(curl, of: known))
        #expect(plan.order.configuration.engine == (engine == "automatic" ? .automatic : .libcurl))
    }

    /// Each loop sends its share; together they send the requested number.
    @Test(arguments: [["-c", "5"], ["-r", "2000"]])
    func severalLoopsShareTheLoad(model: [String]) async throws {
        try await withLoopbackServer { server in
            let line = [server.baseURL + "/hello", "-n", "300", "--loops", "3"] + model
            let plan = try BenchPlan(ParsedArguments(line, of: BenchCommand.allOptions))
            let report = await BenchRun(plan).perform()
            #expect(report.ok == 300 && report.failed == 0 && server.requestCount == 300)
            #expect(report.connections >= 3)
        }
    }

    /// A run that continues after its response does so in a task, and returns to the event loop.
    @Test(arguments: [["-c", "4"], ["-r", "1000"]])
    func redirectsAreFollowedAndCountOnce(model: [String]) async throws {
        try await withLoopbackServer { server in
            let line = [server.baseURL + "/redirect/1", "-n", "40"] + model
            let plan = try BenchPlan(ParsedArguments(line, of: BenchCommand.allOptions))
            let report = await BenchRun(plan).perform()
            #expect(report.ok == 40 && report.statuses == ["200": 40], "\(report.errors)")
            #expect(server.requestCount == 80 && report.phases["body"] == nil)
        }
    }

    @Test func theWarmUpDoesNotCount() async throws {
        try await withLoopbackServer { server in
            let report = try await report(server.baseURL + "/hello", "-n", "5", "-c", "1", "-w", "0.2")
            #expect(report.requests == 5 && report.warmUp == 0.2)
            #expect(server.requestCount > 5)
            // Its connections exist already.
            #expect(report.phases["connect"] == nil)
        }
    }

    @Test func failuresAreCountedByCodeAndStatus() async throws {
        try await withLoopbackServer { server in
            let refused = try await report(server.baseURL + "/status/503", "-n", "10", "-c", "2")
            #expect(refused.failed == 10 && refused.ok == 0 && refused.statuses == ["503": 10])
            #expect(refused.errors == ["invalidStatusCode(503)": 10])
            #expect(refused.failedBy == .init(transfer: 0, status: 10, body: 0))
            let accepted = try await report(server.baseURL + "/status/503", "-n", "10", "--status", "503")
            #expect(accepted.ok == 10 && accepted.statuses == ["503": 10])
            let closed = try await report("http://127.0.0.1:1/", "-n", "3", "-c", "1")
            #expect(closed.errors == ["connect(refused)": 3])
            let message = "could not connect to 127.0.0.1:1: connection refused"
            #expect(closed.errorMessages == ["connect(refused)": message])
            let late = try await report(server.baseURL + "/delay/60000", "-n", "2", "-c", "1", "-m", "50ms")
            #expect(late.errorMessages == ["timeout(total)": "no complete response within 50 ms (timeout)"])
            #expect(closed.failedBy == .init(transfer: 3, status: 0, body: 0))
            #expect(closed.rps == 0 && closed.attemptsPerSecond > 0)
            #expect(BenchTable(closed).text.contains("\n  error        connect(refused)  3: "))
            #expect(madePage(closed).contains("connect(refused)<br><small>"))
        }
    }

    @Test func bodiesUnlikeTheFirstAreWrong() async throws {
        try await withLoopbackServer { server in
            let bodies = ["same", "same", "sane", "same, and more"]
            let next = Counting()
            server.handle("/turns") { _ in LoopbackResponse(text: bodies[next.next() % 4]) }
            #expect(try await report(server.baseURL + "/turns", "-n", "8", "-c", "1").wrongBodies == 4)
            #expect(try await report(server.baseURL + "/turns", "-n", "8", "-c", "1", "--any-body").wrongBodies == 0)
            // Of "same".
            let digest = "0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5"
            let report = try await report(server.baseURL + "/turns", "-n", "8", "-c", "1", "--expect-sha256", digest)
            #expect(report.wrongBodies == 4 && report.ok == 8)
        }
    }

    @Test func theSchemasChecksAreAPhase() async throws {
        let schema = try TemporaryFile(Array(#"{"type": "array"}"#.utf8))
        try await withLoopbackServer { server in
            let right = try await report(server.baseURL + "/json", "-n", "20", "-c", "2", "--schema", schema.path)
            #expect(right.ok == 20 && right.phases["decode"]?["count"] == 20)
            let wrong = try await report(server.baseURL + "/hello", "-n", "5", "-c", "1", "--schema", schema.path)
            #expect(wrong.errors == ["invalidJSON": 5] && wrong.failedBy.body == 5)
        }
    }

    @Test func theObjectIsAsItsSchemaSays() async throws {
        let folder = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let path = folder + "/Sources/FerryCommand/Schemas/bench-report.schema.json"
        let schema = try SchemaFile.schema(at: path)
        let described = try JSON(parsing: Data(contentsOf: URL(filePath: path)))["properties"]
        try await withLoopbackServer { server in
            let url = server.baseURL
            for report in [
                try await report(url + "/hello", "-n", "50", "-c", "2"),
                try await report(url + "/hello", "-r", "100", "-n", "20", "-w", "0.1"),
                try await report(url + "/status/500", "-n", "5"),
            ] {
                let json = try JSON(parsing: report.json)
                try schema.check(json)
                for (name, _) in try #require(json.object) {
                    #expect(described?[name] != nil, "\(name) is not described")
                }
                #expect(try JSONDecoder().decode(BenchReport.self, from: Data(report.json.utf8)) == report)
            }
        }
    }

    @Test func theURLIsShownAsInALog() async throws {
        try await withLoopbackServer { server in
            let base = server.baseURL.replacing("://", with: "://kim:SECRET@")
            let report = try await report(base + "/hello?token=HUSH#part", "-n", "1")
            #expect(report.ok == 1 && report.url == server.baseURL + "/hello?token=***")
            #expect(server.requests.first?.target == "/hello?token=HUSH")
            #expect(server.requests.first?.headers["Authorization"] != nil)
            for text in [report.json, BenchTable(report).text, madePage(report)] {
                #expect(!text.contains("SECRET") && !text.contains("HUSH"))
            }
        }
    }

    @Test func aBaselineMayComeThroughAPipe() throws {
        let file = try TemporaryFile([])
        let own = try FerryProgram.run("bench", "-n", "5", "--json=\(file.path)")
        #expect(own.code == 0, "\(own)")
        let line = #"cat "$1" | "$0" bench -n 5 --baseline "$2" --fail-if 'rps>+1000000%' 2>&1"#
        for path in ["-", "/dev/stdin"] {
            let end = try ChildProcess(["/bin/sh", "-c", line, try FerryProgram.path, file.path, path]).finish()
            #expect(end.code == 0, "\(end)")
        }
        let none = try FerryProgram.run("bench", "-n", "5", "--baseline", "/nowhere")
        #expect(none.code == 2 && none.output == "ferry bench: cannot read /nowhere: No such file or directory\n")
    }

    @Test func nothingIsShownWhereThereIsNoTerminal() throws {
        let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
        let program = URL(filePath: bundle).deletingLastPathComponent().appending(path: "ferry").path
        let shell = ["/bin/sh", "-c", #""$0" bench -n 200 -w 0.3 2>&1 >/dev/null"#, program]
        let end = try ChildProcess(shell).finish()
        #expect(end.code == 0 && end.output == "")
    }
}

/// 0, 1, 2…
private final class Counting: Sendable {
    private let count = Atomic(0)

    func next() -> Int { count.wrappingAdd(1, ordering: .relaxed).oldValue }
}
