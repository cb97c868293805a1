import Ferry
import FerryMeasurement
import FoundationEssentials
import Testing

@testable import FerryCommand

/// What the processes of a fleet tell each other.
@Suite struct FleetMessageTests {
    private func parsed(_ line: String...) throws -> ParsedArguments {
        try ParsedArguments(line, of: BenchCommand.allOptions)
    }

    private func sent(_ order: FleetOrder) throws -> FleetOrder { try FleetOrder.reading(FleetMessage.bytes(order)) }

    @Test func aWorkerSendsTheRequestOfTheCoordinator() throws {
        let file = try TemporaryFile(Array("{\"a\": 1}".utf8))
        let order = try sent(
            FleetOrder(
                parsed(
                    "h/x", "--fleet", "redis://r#n", "--workers", "3", "-c", "7", "-n", "100", "-H", "X-One: 1",
                    "--json-body", "@\(file.path)", "--bearer", "t", "--max-redirects", "2", "--json", "--fail-if",
                    "p99>1s")))
        let plan = try order.plan(with: parsed("--join", "redis://r#n", "--json", "--http2"))
        #expect(plan.order.request.path == "http://h/x" && plan.order.request.method == .post)
        #expect(plan.order.request.headers["X-One"] == "1" && plan.order.request.authorization != nil)
        #expect(plan.order.configuration.http2 == .negotiated && plan.verdict.thresholds.isEmpty)
        let parts = (0..<3).map { plan.part(FleetShare(index: $0, count: 3)) }
        #expect(parts.map(\.concurrency) == [3, 2, 2] && parts.map(\.requests) == [34, 33, 33])
        #expect(parts.map(\.connections) == [3, 2, 2])
        let rate = try FleetOrder(parsed("h", "-r", "900", "-z", "2", "--connections", "10")).plan(with: parsed())
        let open = (0..<3).map { rate.part(FleetShare(index: $0, count: 3)) }
        #expect(open.allSatisfy { $0.model == .open(rate: 900) } && open.map(\.connections) == [4, 3, 3])
        #expect(open[1].order.configuration.limits.transfersPerHost == 3)
        #expect(open[1].title == "open, 900 per second, part 2 of 3")
    }

    private static func entry(_ index: Int, at time: String) -> String {
        #"""
        {"startedDateTime": "2026-01-01T12:00:0\#(time)Z", "time": 1, "cache": {},
         "timings": {"send": 0, "wait": 1, "receive": 0},
         "request": {"method": "GET", "url": "http://h/\#(index)", "httpVersion": "HTTP/1.1",
          "headers": [{"name": "X-A", "value": "sent"}]},
         "response": {"status": 200, "statusText": "", "httpVersion": "HTTP/1.1",
          "headers": [{"name": "Set-Cookie", "value": "canary"}],
          "content": {"size": 6, "mimeType": "text/plain", "text": "canary"}}}
        """#
    }

    @Test func aRecordingIsDividedAndItsResponsesStay() throws {
        let entries = ["2", "0", "1.5", "1"].enumerated().map { Self.entry($0, at: $1) }
        let file = try TemporaryFile(
            Array(#"{"log": {"version": "1.2", "entries": [\#(entries.joined(separator: ","))]}}"#.utf8))
        let order = try sent(
            FleetOrder(parsed("--har", file.path, "--fleet", "redis://r#n", "--workers", "3", "-m", "5")))
        let text = String(decoding: try #require(order.recording).bytes, as: UTF8.self)
        #expect(text.contains("sent") && !text.contains("canary"))
        let plan = try order.plan(with: parsed("--join", "redis://r#n", "--http2"))
        #expect(plan.order.configuration.http2 == .negotiated)
        let parts = (0..<3).map { plan.part(FleetShare(index: $0, count: 3)) }
        #expect(
            parts.map { $0.archive?.entries.map(\.request.path) } == [
                ["http://h/1", "http://h/0"], ["http://h/3"], ["http://h/2"],
            ])
        #expect(
            parts.map { $0.archive?.entries.map(\.time) } == [
                [0, 2_000_000_000], [1_000_000_000], [1_500_000_000],
            ])
        #expect(parts.map(\.requests) == [2, 1, 1] && parts.allSatisfy { $0.duration == nil })
        #expect(parts[1].title == "open, each at its time in the file, part 2 of 3")
        #expect(plan.obstacle(to: 5) == "\(file.path) has 4 requests, which is less than --workers 5")
        var broken = order
        broken.recording?.bytes = Data("{}".utf8)
        let fault = #expect(throws: FleetError.self) { try broken.plan(with: parsed()) }
        #expect(fault?.description.hasPrefix("the coordinator's order: \(file.path): ") == true)
    }

    @Test func aRecordingTooLargeForAMessageIsAnError() throws {
        let body = String(decoding: [UInt8](repeating: 0x78, count: FleetOrder.mostRecordedBytes), as: UTF8.self)
        let headers = #""headers": [{"name": "X-A""#
        let entry = Self.entry(0, at: "0").replacing(
            headers, with: #""postData": {"mimeType": "", "text": "\#(body)"}, \#(headers)"#)
        let file = try TemporaryFile(Array(#"{"log": {"version": "1.2", "entries": [\#(entry)]}}"#.utf8))
        let fault = #expect(throws: InputError.self) {
            try FleetOrder(parsed("--har", file.path, "--fleet", "redis://r#n"))
        }
        let limit = "bytes (limit \(FleetOrder.mostRecordedBytes) with --fleet)"
        #expect(fault?.message.hasSuffix(limit) == true, "\(fault?.message ?? "")")
    }

    /// Nothing that comes from Redis opens a file of the worker, or writes one.
    @Test(arguments: [
        ("data", "@/etc/passwd"), ("json", "/tmp/x"), ("html", "/tmp/x"), ("cacert", "/etc/passwd"), ("key", "/x"),
        ("schema", "/etc/passwd"), ("from-curl", "curl -d @/etc/passwd h"), ("plan", "/x"), ("cache-dir", "/tmp"),
        ("unix-socket", "/x"), ("har", "/x"), ("join", "redis://r#n"), ("no-such-option", "1"),
    ]) func anOrderHasNoPathsOfFiles(name: String, value: String) throws {
        var order = try FleetOrder(parsed("http://h/"))
        order.options.append(.init(name: name, value: value))
        let fault = #expect(throws: FleetError.self) { try order.plan(with: parsed()) }
        #expect(fault?.description.contains("'\(name)'") == true)
    }

    @Test func theValuesOfAnOrderAreCheckedLikeAnyCommandLine() throws {
        for (name, value) in [("concurrency", "0"), ("rate", "nan"), ("duration", "-1"), ("header", "none")] {
            var order = try FleetOrder(parsed("http://h/"))
            order.options.append(.init(name: name, value: value))
            let fault = #expect(throws: FleetError.self) { try order.plan(with: parsed()) }
            #expect(fault?.description.hasPrefix("the coordinator's order: --\(name)") == true)
        }
        var order = try FleetOrder(parsed("http://h/"))
        order.url = "ftp://h/"
        #expect(throws: FleetError.self) { try order.plan(with: parsed()) }
        order.url = "http://h/"
        order.options = Array(repeating: .init(name: "header", value: "A: b"), count: 1001)
        #expect(throws: FleetError.self) { try order.plan(with: parsed()) }
    }

    @Test(arguments: [
        (["h", "--fleet", "r#n"], "--fleet: invalid Redis URL"),
        (["h", "--fleet", "redis://u:canary@r/0"], "#NAME is missing"),
        (["h", "--fleet", "redis://r#a b"], "--fleet: the name must consist of 1 to 64 letters"),
        (["h", "--fleet", "redis://r#n"], "--fleet requires --workers N"),
        (["h", "--fleet", "redis://r#n", "--workers", "0"], "--workers must be a whole number"),
        (["--fleet", "redis://r#n", "--workers", "2"], "--fleet requires the URL of a server"),
        (["h", "--fleet", "redis://r#n", "--workers", "9", "-c", "8"], "-c 8 is less than --workers 9"),
        (["h", "--fleet", "redis://r#n", "--workers", "9", "-r", "9", "-n", "5"], "-n 5 is less than --workers 9"),
        (["h", "--fleet", "redis://r#n", "--workers", "2", "--cacert", "x"], "pass it to each --join"),
        (["h", "--fleet", "redis://r#n", "--workers", "2", "--compare", "urlsession"], "--compare cannot be combined"),
        (["h", "--fleet", "redis://r#n", "--workers", "2", "--from-curl", "curl h"], "--from-curl cannot be combined"),
        (["--join", "redis://r#n", "-c", "3"], "--join and --concurrency cannot be combined"),
        (["h", "--join", "redis://r#n"], "--join and a URL"),
        (["h", "--workers", "3"], "--workers requires --fleet"),
        (["--har", "x", "--workers", "3"], "--workers requires --fleet"),
        (["h", "--har", "x", "--fleet", "redis://r#n", "--workers", "2"], "--har and a URL"),
        (["--har", "x", "-c", "9", "--fleet", "redis://r#n"], "--har and -c can be combined only with --unpaced"),
        (["h", "--plan", "x", "--fleet", "redis://r#n"], "--plan and --fleet cannot be combined"),
    ]) func senselessCombinationsAreUsageErrors(line: [String], message: String) throws {
        let end = try FerryProgram.run(["bench"] + line)
        #expect(end.code == 1 && end.output.contains(message), "\(end.output)")
        #expect(!end.output.contains("canary"))
    }

    @Test(arguments: [
        "", "{}", "[]", "\u{0}",
        #"{"version":2,"run":"a","phase":"joining","workers":2}"#,
        #"{"version":1,"run":"../x","phase":"joining","workers":2}"#,
        #"{"version":1,"run":"","phase":"joining","workers":2}"#,
        #"{"version":1,"run":"a","phase":"joining","workers":0}"#,
        #"{"version":1,"run":"a","phase":"joining","workers":1001}"#,
        #"{"version":1,"run":"a","phase":"started","workers":2}"#,
        #"{"version":1,"run":"a","phase":"running","workers":2}"#,
        #"{"version":1,"run":"a","phase":"joining","workers":2,"reason":"\#(String(repeating: "x", count: 5000))"}"#,
    ]) func anInvalidStateIsAnError(text: String) {
        #expect(throws: FleetError.self) { try FleetState.reading(Array(text.utf8)) }
    }

    @Test func aStateOfAnotherVersionIsNamed() {
        let text = #"{"version":2,"run":"a","phase":"joining","workers":2}"#
        let fault = #expect(throws: FleetError.self) { try FleetState.reading(Array(text.utf8)) }
        #expect(fault?.description == "the coordinator's state has version 2, and this ferry understands 1")
    }

    private static let lies: [@Sendable (inout FleetFigures) -> Void] = [
        { $0.seconds = 1e-300 }, { $0.seconds = -1 }, { $0.machine = 2 }, { $0.process = -1 }, { $0.memory = -1 },
        { $0.connections = .max }, { $0.late = 1e9 }, { $0.user = 1e30 }, { $0.totals.failed = 1 << 50 },
        { $0.totals.bytes = .max }, { ($0.seconds, $0.totals.bytes) = (1e9, 1 << 63) }, { $0.totals.unsent = 1 },
        { $0.totals.statuses = [-1: 1] },
        { $0.totals.statuses = Dictionary(uniqueKeysWithValues: (0...1000).map { ($0, 1) }) },
        { $0.totals.latencies.record(.max) }, { $0.date = Date(timeIntervalSince1970: 1e18) },
        { $0.totals.latencies = made(#"{"first":0,"counts":[1],"minimum":0,"maximum":0,"sum":1e308}"#) },
        { $0.windows = [BenchWindow(start: 2, end: 1, latencies: Histogram(), failed: 0)] },
        { $0.windows = [BenchWindow(start: 0, end: 1e-9, latencies: Histogram(), failed: 0)] },
        { figures in
            figures.windows = (0..<300).map {
                BenchWindow(start: Double($0), end: Double($0 + 1), latencies: Histogram(), failed: 0)
            }
        },
    ]

    private static func made(_ text: String) -> Histogram {
        (try? JSONDecoder().decode(Histogram.self, from: Data(text.utf8))) ?? Histogram()
    }

    /// Their sum overflows.
    @Test func moreWindowsThanThereCanBeAreNotSummedUp() {
        var figures = FleetFigures(BenchFigures(BenchTotals(), date: Date(timeIntervalSince1970: 1e9)))
        let full = Self.made(#"{"first":0,"counts":[281474976710656],"minimum":0,"maximum":0,"sum":0}"#)
        #expect(full.count == 1 << 48 && figures.isSound)
        figures.windows = Array(
            repeating: BenchWindow(start: 0, end: 1, latencies: full, failed: 0), count: 1 << 16)
        #expect(!figures.isSound)
    }

    @Test func whatAWorkerSaysOfItselfDoesNotCommandTheTerminal() {
        var report = madeReport()
        let member = FleetMember(name: "a\u{1B}[2J", outcome: .interrupted, requests: 7, late: 0)
        report.fleet = [member]
        report.warnings = [member.complaint(number: 1) ?? ""]
        report.errors = ["timeout\u{1B}[2J": 1]
        let text = BenchTable(report).text
        #expect(!text.contains("\u{1B}[2J") && text.contains("a?[2J") && text.contains("timeout?[2J"))
    }

    /// Each would overflow a sum or a figure of the report.
    @Test(arguments: lies.indices) func impossibleFiguresAreRefused(index: Int) throws {
        var figures = FleetFigures(BenchFigures(BenchTotals(), date: Date(timeIntervalSince1970: 1e9)))
        figures.seconds = 10
        let honest = FleetResult(token: "t", figures: figures, wasInterrupted: false)
        _ = try FleetResult.reading(FleetMessage.bytes(honest), token: "t")
        #expect(throws: FleetError.self) { try FleetResult.reading(FleetMessage.bytes(honest), token: "u") }
        Self.lies[index](&figures)
        let lie = FleetResult(token: "t", figures: figures, wasInterrupted: false)
        #expect(throws: FleetError("its result is not valid")) {
            try FleetResult.reading(FleetMessage.bytes(lie), token: "t")
        }
    }

    @Test func tooLargeValuesAreNotRead() {
        #expect(throws: FleetError.self) { try FleetBeat.reading([UInt8](repeating: 0x20, count: 1 << 20 | 1)) }
        #expect(throws: FleetError.self) {
            try FleetMessage.bytes(
                String(decoding: [UInt8](repeating: 0x78, count: FleetMessage.mostBytes), as: UTF8.self))
        }
    }

    @Test func theRequestsOfAnOpenModelAreDividedInTurn() {
        let load = 20
        let numbers = (0..<3).flatMap { worker in
            (0..<2).flatMap { loop in stride(from: loop * 3 + worker, to: load, by: 6) }
        }
        #expect(numbers.sorted() == Array(0..<load))
    }

    @Test func mergedWindowsAreThoseOfTheCoarsestProcess() {
        func windows(_ ends: [Double], _ value: UInt64) -> [BenchWindow] {
            var start = 0.0
            return ends.map { end in
                var latencies = Histogram()
                latencies.record(value)
                defer { start = end }
                return BenchWindow(start: start, end: end, latencies: latencies, failed: 1)
            }
        }
        let merged = BenchWindow.merged([windows([0.1, 0.2, 0.3, 0.4], 5), [], windows([0.21, 0.38], 9)])
        #expect(merged.map(\.latencies.count) == [3, 3] && merged.map(\.failed) == [3, 3])
        #expect(merged.map(\.end) == [0.21, 0.4] && BenchWindow.merged([[], []]).isEmpty)
    }

    @Test func aMissingPartFailsTheLoadWhateverTheConditions() throws {
        let verdict = BenchVerdict([try BenchThreshold("failed>99%")], baseline: nil)
        var report = madeReport()
        verdict.judge(&report)
        for outcome in [FleetMember.Outcome.finished, .lost, .interrupted] {
            report.fleet = [FleetMember(name: "a:<1>", outcome: outcome, requests: 7, late: 0)]
            let ruling = BenchRuling(report, verdict, mustBeRight: false)
            #expect(ruling.exitCode == (outcome == .finished ? .success : .transferFailed))
            #expect(BenchTable(report).text.contains("\n  worker 1     a:<1>  7 requests, \(outcome.rawValue)\n"))
            #expect(BenchPage(report, ruling).html.contains(">a:&lt;1&gt;</td>"))
        }
    }
}
