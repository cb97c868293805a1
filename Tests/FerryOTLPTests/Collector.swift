import Dispatch
import Ferry
import FerryJSON
import FerryOTLP
import FerrySynchronization
import FerryTesting
import Testing

/// A collector that keeps the exports it receives.
final class Collector: Sendable {
    let server: LoopbackServer
    private let bodies = Mutex<[(path: String, body: [UInt8])]>([])

    init(answer: LoopbackResponse = LoopbackResponse(json: "{}")) throws {
        server = try LoopbackServer()
        server.handle("POST", "/otlp/v1/*") { [weak self] request in
            self?.bodies.withLock { $0.append((request.path, request.body)) }
            return answer
        }
    }

    /// An exporter that only sends when the test says so.
    func exporter(_ change: (inout OTLPConfiguration) -> Void = { _ in }) -> OTLPExporter {
        var configuration = OTLPConfiguration(serviceName: "shop")
        configuration.endpoint = server.baseURL + "/otlp"
        configuration.spanInterval = .seconds(3600)
        configuration.metricsInterval = .seconds(3600)
        change(&configuration)
        return OTLPExporter(configuration)
    }

    var texts: [String] { bodies.withLock { $0.map { String(decoding: $0.body, as: UTF8.self) } } }

    func documents(_ kind: String) throws -> [JSON] {
        try bodies.withLock { $0 }.filter { $0.path == "/otlp/v1/" + kind }.map { try JSON(parsing: $0.body) }
    }

    var spans: [Span] {
        get throws {
            try documents("traces").flatMap { document in
                let scope = document["resourceSpans"]?[0]?["scopeSpans"]?[0]
                return (scope?["spans"]?.array.map { Array($0) } ?? []).map { Span(json: $0) }
            }
        }
    }

    /// The points of the histogram in the last document of metrics.
    var points: [JSON] {
        get throws {
            let metric = try documents("metrics").last?["resourceMetrics"]?[0]?["scopeMetrics"]?[0]?["metrics"]?[0]
            #expect(metric?["name"]?.string == "http.client.request.duration")
            return metric?["histogram"]?["dataPoints"]?.array.map { Array($0) } ?? []
        }
    }

    struct Span {
        let json: JSON
        var name: String? { json["name"]?.string }
        var kind: Int? { json["kind"]?.int }
        var trace: String? { json["traceId"]?.string }
        var id: String? { json["spanId"]?.string }
        var parent: String? { json["parentSpanId"]?.string }
        var start: UInt64? { json["startTimeUnixNano"]?.string.flatMap { UInt64($0) } }
        var end: UInt64? { json["endTimeUnixNano"]?.string.flatMap { UInt64($0) } }
        var failed: Bool { json["status"]?["code"]?.int == 2 }
        subscript(attribute: String) -> String? { attributeValue(attribute, in: json) }
    }
}

/// A text, or a number as a text.
func attributeValue(_ name: String, in json: JSON) -> String? {
    let found = json["attributes"]?.array?.first { $0["key"]?.string == name }
    return found?["value"]?["stringValue"]?.string ?? found?["value"]?["intValue"]?.string
        ?? found?["value"]?["boolValue"]?.bool.map { "\($0)" }
}

/// An agent of an observed service.
func observed(_ exporter: OTLPExporter) -> NetworkAgent {
    var configuration = NetworkConfiguration()
    configuration.observers = [exporter]
    return NetworkAgent(configuration: configuration)
}

func statistics(exported: UInt64 = 0, rejected: UInt64 = 0, dropped: UInt64 = 0, failed: UInt64 = 0) -> [UInt64] {
    [exported, rejected, dropped, failed]
}

extension OTLPStatistics {
    var figures: [UInt64] { [exportedSpans, rejectedSpans, droppedRuns, failedExports] }
}

/// Runs the jobs of a task one after another, and reports when those so far are done.
private final class QueueExecutor: TaskExecutor {
    let queue = DispatchQueue(label: "test.executor")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// A task that waits in its first suspension when this returns.
func waiting(_ operation: @escaping @Sendable () async -> Void) async -> Task<Void, Never> {
    let executor = QueueExecutor()
    let task = Task(executorPreference: executor) { await operation() }
    await withCheckedContinuation { done in executor.queue.async { done.resume() } }
    return task
}
