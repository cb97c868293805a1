internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials

/// `ferry bench --har`: replays the requests of a HAR file.
enum ArchiveBench {
    /// The options that `--har` can be combined with; the file has the rest.
    private static let allowed: Set = [
        "har", "unpaced", "concurrency", "connections", "loops", "engine", "timeout", "status", "json", "html",
        "baseline", "fail-if", "help", "fleet", "workers", "join-timeout",
    ]

    static func run(_ path: String, _ arguments: ParsedArguments) async throws -> ExitCode {
        try check(arguments)
        if arguments.has("fleet") { return try await FleetBench.coordinate(arguments) }
        for name in ["workers", "join-timeout"] where arguments.has(name) {
            throw UsageError("--\(name) requires --fleet")
        }
        var plan = try BenchPlan(arguments)
        try plan.replay(path, try ArchiveLoad.archive(try InputFile.bytes(at: path), path), arguments)
        raiseDescriptorLimit()
        var (report, wasInterrupted) = try await interruptible { [plan] in BenchReport(plan, await figures(plan)) }
        plan.verdict.judge(&report)
        let ruling = BenchRuling(report, plan.verdict, mustBeRight: false, wasInterrupted: wasInterrupted)
        return plan.output.write(report, ruling)
    }

    private static func check(_ arguments: ParsedArguments) throws(UsageError) {
        for option in BenchCommand.allOptions.map(\.name) where !allowed.contains(option) && arguments.has(option) {
            throw UsageError("--har and --\(option) cannot be combined")
        }
        if let operand = arguments.operands.first {
            throw UsageError("--har and a URL ('\(operand)') cannot be combined")
        }
        if !arguments.has("unpaced") && arguments.has("concurrency") {
            throw UsageError("--har and -c can be combined only with --unpaced")
        }
    }

    /// Ends when every request has its result, or when its task is cancelled. The worker of a fleet begins at an agreed
    /// time. `look` is called ten times a second with what was measured so far.
    static func figures(
        _ plan: BenchPlan, at begin: UInt64? = nil,
        _ look: @escaping @Sendable (BenchTotals, _ seconds: Double) -> Void = { _, _ in }
    ) async -> BenchFigures {
        guard let archive = plan.archive else { preconditionFailure("the load is not a recording") }
        let agent = NetworkAgent(configuration: plan.order.configuration)
        let recorder = BenchRecorder(BodyCheck(.none), loops: 1)
        // Not while it waits for the start, which would count as idle time.
        await sleep(untilMonotonic: begin.map { $0 - min($0, 10_000_000) })
        let (cpu, usage) = (CPUShare.Reading(), ProcessUsage.now)
        await sleep(untilMonotonic: begin)
        let date = Date.now
        let start = begin ?? monotonicNanoseconds()
        let late = ArchiveLoad.time(since: start)
        let watch = Task {
            var timeline = BenchTimeline()
            while true {
                try? await Task.sleep(for: .milliseconds(100))
                if Task.isCancelled { return timeline }
                let (totals, seconds) = (recorder.total, Double(ArchiveLoad.time(since: start)) / 1e9)
                timeline.observe(totals.latencies, failed: totals.failed, at: seconds)
                look(totals, seconds)
            }
        }
        if archive.isPaced {
            await archive.replay(since: start, by: agent, recorder)
        } else {
            await archive.replay(atOnce: plan.concurrency, by: agent, recorder)
        }
        var figures = BenchFigures(recorder.total, date: date)
        figures.late = Double(late) / 1e9
        figures.seconds = Double(ArchiveLoad.time(since: start)) / 1e9
        figures.usage = ProcessUsage.now - usage
        figures.share = CPUShare.Reading().since(cpu)
        figures.connections = agent.statistics.connectionsOpened
        watch.cancel()
        var timeline = await watch.value
        timeline.finish(figures.totals.latencies, failed: figures.totals.failed, at: figures.seconds)
        figures.windows = timeline.windows
        await agent.shutdown(grace: .zero)
        return figures
    }
}

extension BenchPlan {
    /// Makes the requests of a recording the load. `path` is its name in errors and in the report.
    mutating func replay(_ path: String, _ recording: HTTPArchive, _ arguments: ParsedArguments) throws(InputError) {
        // The file has an entry for each redirect that was followed.
        order.configuration.redirectPolicy = .none
        bodies = .none
        let load = try ArchiveLoad(recording, path, order, isPaced: !arguments.has("unpaced"))
        archive = load
        requests = load.entries.count
        duration = nil
    }
}

/// The requests of a HAR file.
struct ArchiveLoad: Sendable {
    struct Entry: Sendable {
        /// Nanoseconds after the first entry.
        let time: UInt64
        let request: HTTPRequest<Response>
    }

    let path: String
    /// The entries, in the order of their times.
    var entries: [Entry]
    /// Whether each request is sent at its time, rather than as soon as possible.
    let isPaced: Bool

    /// Parses the content of a file, whose name is in the errors.
    static func archive(_ bytes: [UInt8], _ path: String) throws(InputError) -> HTTPArchive {
        do {
            return try HTTPArchive(json: bytes)
        } catch let error as DecodingError {
            throw InputError("\(path): \(text(of: error))")
        } catch {
            throw InputError("\(path): is not JSON: \(error)")
        }
    }

    /// Throws an error with the number of the entry, from 1, if a request is invalid or, with `isPaced`, cannot be sent
    /// at its time.
    init(_ archive: HTTPArchive, _ path: String, _ order: BenchOrder, isPaced: Bool) throws(InputError) {
        self.path = path
        self.isPaced = isPaced
        if archive.entries.isEmpty { throw InputError("\(path): has no entries") }
        var found: [(date: Date, request: HTTPRequest<Response>)] = []
        for (index, entry) in archive.entries.enumerated() {
            func fault(_ text: String) -> InputError { InputError("\(path): entry \(index + 1): \(text)") }
            guard let date = Self.date(entry.startedDateTime) else {
                throw fault("startedDateTime is not an ISO 8601 time: '\(entry.startedDateTime)'")
            }
            var request = order.request
            request.path = entry.request.url
            request.method = HTTPMethod(entry.request.method)
            for field in entry.request.headers where !Self.isOwn(field.name) {
                request.headers.append(field.name, field.value)
            }
            if let data = entry.request.postData {
                if let bytes = data.bytes {
                    request.body = .bytes(bytes)
                } else if data._encoding != nil || entry.request.bodySize ?? -1 > 0
                    || (entry.request.bodySize ?? -1 < 0 && !data.mimeType.isEmpty)
                {
                    // Without a size a media type says that there was one.
                    throw fault("the file does not have its body")
                }
            }
            if request.statusValidation == nil { request.statusValidation = .range(200...399) }
            do {
                try BenchOrder(request: request, configuration: order.configuration).check()
            } catch {
                throw fault(error.message)
            }
            found.append((date, request))
        }
        let first = found.map(\.date).min() ?? .now
        if isPaced, let late = found.firstIndex(where: { $0.date.timeIntervalSince(first) > Self.longest }) {
            let time = archive.entries[late].startedDateTime
            throw InputError(
                "\(path): entry \(late + 1): startedDateTime '\(time)' is more than a year after the first; "
                    + "--unpaced does not go by it")
        }
        entries = found.map { entry in
            Entry(time: wholeNumber(entry.date.timeIntervalSince(first) * 1e9), request: entry.request)
        }.sorted { $0.time < $1.time }
    }

    /// One worker's part of a fleet's load: of N workers each has every Nth entry, at its time.
    func part(_ share: FleetShare) -> ArchiveLoad {
        var part = self
        part.entries = stride(from: share.index, to: entries.count, by: share.count).map { entries[$0] }
        return part
    }

    /// Seconds between the first and the last entry: a year. A date that is that far off is a mistake.
    private static let longest = 31_536_000.0

    /// Whether the client sets the field itself, or HTTP/1.1 has no such field (`:authority`).
    private static func isOwn(_ name: String) -> Bool {
        name.hasPrefix(":")
            || ["host", "content-length", "connection", "transfer-encoding"].contains(name.lowercased())
    }

    private static func date(_ text: String) -> Date? {
        (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
            ?? (try? Date(text, strategy: .iso8601))
    }

    private static func text(of error: DecodingError) -> String {
        let (context, missing): (DecodingError.Context, String?) =
            switch error {
            case .keyNotFound(let key, let context): (context, key.stringValue)
            case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
                (context, nil)
            @unknown default: (.init(codingPath: [], debugDescription: "is not a HAR archive"), nil)
            }
        let place = context.codingPath.firstIndex { $0.intValue != nil }
        let entry = place.flatMap { context.codingPath[$0].intValue }.map { "entry \($0 + 1): " } ?? ""
        let names = context.codingPath[(place.map { $0 + 1 } ?? 0)...].map(\.stringValue)
        if case .dataCorrupted = error, context.codingPath.isEmpty { return "is not JSON: " + context.debugDescription }
        if let missing { return entry + "missing " + (names + [missing]).joined(separator: ".") }
        return entry + (names.isEmpty ? "" : names.joined(separator: ".") + ": ") + context.debugDescription
    }

    // MARK: Sending

    /// Sends each request at its time, regardless of the responses to the others. Latencies count from that time.
    func replay(since start: UInt64, by agent: NetworkAgent, _ recorder: BenchRecorder) async {
        await withDiscardingTaskGroup { group in
            for entry in entries {
                let due = start + entry.time
                let now = monotonicNanoseconds()
                if due > now { try? await Task.sleep(for: .nanoseconds(Int64(clamping: due - now))) }
                if Task.isCancelled { return }
                group.addTask {
                    recorder.recordLateness(Self.time(since: due), stripe: 0)
                    await Self.send(entry.request, since: due, by: agent, recorder)
                }
            }
        }
    }

    /// Keeps a number of requests in flight, in the order of their times.
    func replay(atOnce: Int, by agent: NetworkAgent, _ recorder: BenchRecorder) async {
        await withTaskGroup(of: Void.self) { group in
            for (index, entry) in entries.enumerated() {
                if index >= atOnce { await group.next() }
                if Task.isCancelled { return }
                group.addTask {
                    await Self.send(entry.request, since: monotonicNanoseconds(), by: agent, recorder)
                }
            }
        }
    }

    /// The clock that sleeps may be ahead of this one, for example after the machine was suspended.
    fileprivate static func time(since start: UInt64) -> UInt64 {
        let now = monotonicNanoseconds()
        return now > start ? now - start : 0
    }

    private static func send(
        _ request: HTTPRequest<Response>, since start: UInt64, by agent: NetworkAgent, _ recorder: BenchRecorder
    ) async {
        do throws(RequestError) {
            let response = try await agent.send(request).response
            recorder.record(response, nanoseconds: time(since: start), stripe: 0)
        } catch {
            if error.code == .cancelled {
                recorder.recordUnanswered(time(since: start), stripe: 0)
            } else {
                recorder.record(error, stripe: 0)
            }
        }
    }
}
