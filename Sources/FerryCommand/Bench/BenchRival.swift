internal import Dispatch
internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials
internal import Glibc

/// `--compare`: the same load by another client, afterwards and in a process of its own.
///
/// URLSession's is in `FerryBenchmarks`: neither Ferry nor its command links FoundationNetworking.
struct BenchRival: Sendable {
    static let names = ["urlsession"]

    private let program: String

    /// `nil` when there is nothing to compare with.
    init?(_ arguments: ParsedArguments) throws {
        guard let name = arguments.last("compare") else { return nil }
        guard Self.names.contains(name) else { throw UsageError("--compare knows urlsession, not '\(name)'") }
        for option in arguments.options.map(\.name) where !Self.allowed.contains(option) {
            throw UsageError("--compare and --\(option) exclude each other")
        }
        let beside = URL(filePath: ownExecutable).deletingLastPathComponent().appending(path: "FerryBenchmarks").path
        let isBeside = FileManager.default.isExecutableFile(atPath: beside)
        guard let program = isBeside ? beside : findProgram("FerryBenchmarks") else {
            throw InputError("--compare urlsession needs FerryBenchmarks beside ferry (make bench builds it)")
        }
        self.program = program
    }

    /// What both clients do alike; conditions and files have nothing to do with it. The other one looks at no body, so
    /// there is none to compare with a digest.
    private static let allowed: Set = [
        "compare", "concurrency", "duration", "requests", "warm-up", "connections", "loops", "engine", "request",
        "header",
        "any-body", "json", "html", "baseline", "fail-if",
    ]

    /// `nil` when its task was cancelled, which ends the other process.
    func perform(_ plan: BenchPlan) async throws -> RivalReport? {
        let request = plan.order.request
        let order = RivalOrder(
            method: request.method.rawValue, url: request.path,
            headers: request.headers.fields.flatMap { [$0.name, $0.value] }, concurrency: plan.concurrency,
            connections: plan.connections, requests: plan.requests,
            seconds: plan.duration.map { Double($0.microseconds) / 1e6 },
            warmUp: Double(plan.warmUp.microseconds) / 1e6)
        let text = String(decoding: try JSONEncoder().encode(order), as: UTF8.self)
        let end = try await Self.end(of: ChildProcess([program, "worker", "load-urlSession", text]))
        if Task.isCancelled { return nil }
        guard end.code == 0, var report = try? JSONDecoder().decode(RivalReport.self, from: Data(end.output.utf8))
        else {
            throw InputError("--compare urlsession: FerryBenchmarks ended with \(end.code)")
        }
        // As Ferry's own is counted.
        report.rps = report.seconds > 0 ? rounded(Double(report.ok) / report.seconds, 1) : 0
        return report
    }

    private static func end(of process: ChildProcess) async -> ChildProcess.End {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async { continuation.resume(returning: process.finish()) }
            }
        } onCancel: {
            process.signal(SIGTERM)
        }
    }
}
