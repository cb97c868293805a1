internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials

/// `ferry bench --har`: replays the requests of a HAR file.
enum ArchiveBench {
    /// The options that `--har` can be combined with; the file has the rest.
    private static let allowed: Set = [
        "har", "unpaced", "concurrency", "connections", "loops", "engine", "timeout", "status", "json", "html",
        "baseline", "fail-if", "help",
    ]

    static func run(_ path: String, _ arguments: ParsedArguments) async throws -> ExitCode {
        for option in BenchCommand.allOptions.map(\.name) where !allowed.contains(option) && arguments.has(option) {
            throw UsageError("--har and --\(option) cannot be combined")
        }
        if let operand = arguments.operands.first {
            throw UsageError("--har and a URL ('\(operand)') cannot be combined")
        }
        let isPaced = !arguments.has("unpaced")
        if isPaced && arguments.has("concurrency") {
            throw UsageError("--har and -c can be combined only with --unpaced")
        }
        var plan = try BenchPlan(arguments)
        // The file has an entry for each redirect that was followed.
        plan.order.configuration.redirectPolicy = .none
        plan.bodies = .none
        let archive = try ArchiveLoad(contentsOf: path, plan.order, isPaced: isPaced)
        plan.requests = archive.entries.count
        plan.duration = nil
        raiseDescriptorLimit()
        var (report, wasInterrupted) = try await interruptible { [plan] in
            await perform(archive, plan, isPaced: isPaced)
        }
        plan.verdict.judge(&report)
        let ruling = BenchRuling(report, plan.verdict, mustBeRight: false, wasInterrupted: wasInterrupted)
        return plan.output.write(report, ruling)
    }

    /// Ends when every request has its result, or when its task is cancelled.
    static func perform(_ archive: ArchiveLoad, _ plan: BenchPlan, isPaced: Bool) async -> BenchReport {
        let agent = NetworkAgent(configuration: plan.order.configuration)
        let recorder = BenchRecorder(BodyCheck(.none), loops: 1)
        let (date, cpu, usage) = (Date.now, CPUShare.Reading(), ProcessUsage.now)
        let start = monotonicNanoseconds()
        let watch = Task {
            var timeline = BenchTimeline()
            while true {
                try? await Task.sleep(for: .milliseconds(100))
                if Task.isCancelled { return timeline }
                let totals = recorder.total
                timeline.observe(
                    totals.latencies, failed: totals.failed, at: Double(monotonicNanoseconds() - start) / 1e9)
            }
        }
        if isPaced {
            await archive.replay(since: start, by: agent, recorder)
        } else {
            await archive.replay(atOnce: plan.concurrency, by: agent, recorder)
        }
        var figures = BenchFigures(recorder.total, date: date)
        figures.seconds = Double(monotonicNanoseconds() - start) / 1e9
        figures.usage = ProcessUsage.now - usage
        figures.share = CPUShare.Reading().since(cpu)
        figures.connections = agent.statistics.connectionsOpened
        watch.cancel()
        var timeline = await watch.value
        timeline.finish(figures.totals.latencies, failed: figures.totals.failed, at: figures.seconds)
        figures.windows = timeline.windows
        await agent.shutdown(grace: .zero)
        var report = BenchReport(plan, figures)
        (report.method, report.url) = ("HAR", archive.path)
        if isPaced { report.model = .init(kind: "open", title: "open, each at its time in the file") }
        return report
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
    let entries: [Entry]

    /// Reads the file. Throws an error with the number of the entry, from 1, if a request is invalid or, with
    /// `isPaced`, cannot be sent at its time.
    init(contentsOf path: String, _ order: BenchOrder, isPaced: Bool) throws {
        self.path = path
        let archive: HTTPArchive
        do {
            archive = try HTTPArchive(json: try InputFile.bytes(at: path))
        } catch let error as InputError {
            throw error
        } catch let error as DecodingError {
            throw InputError("\(path): \(Self.text(of: error))")
        } catch {
            throw InputError("\(path): is not JSON: \(error)")
        }
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

    /// Sends each request at its time, whatever the responses to the others. Latencies count from that time.
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

    /// The clock that sleeps may be ahead of this one, as behind a suspend of the machine.
    private static func time(since start: UInt64) -> UInt64 {
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
