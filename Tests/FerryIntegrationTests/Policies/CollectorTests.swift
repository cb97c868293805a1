import Ferry
import FerryOTLP
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Exports, read with the messages that OpenTelemetry publishes.
@Suite("OTLP against opentelemetry-proto", .timeLimit(.minutes(2))) struct CollectorTests {
    private struct Line: Decodable {
        struct Value: Decodable, Equatable {
            let text: String

            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                text = try (try? container.decode(Int.self)).map(String.init) ?? container.decode(String.self)
            }
        }

        var fault: String?
        var span: String?
        var metric: String?
        var kind: Int?
        var status: Int?
        var nanoseconds: Int64?
        var count: Int?
        var unit: String?
        var temporality: Int?
        var resource: [String: Value]?
        var attributes: [String: Value]?

        subscript(name: String) -> String? { attributes?[name]?.text }
    }

    /// Fetched by `make test-integration`.
    private static let modules = URL(filePath: #filePath).appending(path: "../../../../.build/python").standardized.path
    private static var hasModules: Bool { FileManager.default.fileExists(atPath: modules + "/opentelemetry") }

    @Test(.enabled(if: hasModules, "make test-integration fetches opentelemetry-proto from PyPI"))
    func spansAndHistogramsAreValidMessages() async throws {
        let (process, ports) = try ServerProcess.start(ports: 1) { folder, ports in
            let script = try String(contentsOfFile: ServerProcess.script("collector.py"), encoding: .utf8)
            try folder.write(script, to: "collector.py")
            try folder.write("", to: "record")
            // A copy, because the server's user has no access to the tests' folder.
            try FileManager.default.copyItem(atPath: Self.modules, toPath: folder.file("python"))
            return [
                "/usr/bin/env", "PYTHONPATH=" + folder.file("python"), "/usr/bin/python3", folder.file("collector.py"),
                String(ports[0]),
                folder.file("record"),
            ]
        }
        let service = try LoopbackServer()
        var collector = OTLPConfiguration(serviceName: "shop")
        collector.endpoint = "http://127.0.0.1:\(ports[0])"
        collector.resource = ["deployment.environment.name": "täst"]
        let exporter = OTLPExporter(collector)
        var configuration = NetworkConfiguration(baseURL: service.baseURL)
        configuration.observers = [exporter]
        let agent = NetworkAgent(configuration: configuration)
        let context = try #require(
            TraceContext(traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "a=1"))
        try await TraceContext.$current.withValue(context) { _ = try await agent.get("/redirect/2") }
        await #expect(throws: RequestError.self) { try await agent.get("/status/503?body=no") }
        await #expect(throws: RequestError.self) { try await agent.get("http://127.0.0.1:1/") }
        await agent.shutdown()
        await exporter.shutdown()
        #expect(exporter.statistics.exportedSpans == 8 && exporter.statistics.failedExports == 0)
        let lines = try process.folder.read("record").split(separator: "\n").map {
            try JSONDecoder().decode(Line.self, from: Data($0.utf8))
        }
        #expect(lines.compactMap(\.fault) == [])
        let spans = lines.filter { $0.span != nil }
        #expect(spans.count == 8)
        #expect(spans.map(\.kind) == [1, 3, 3, 3, 1, 3, 1, 3])
        #expect(spans.map(\.status) == [0, 0, 0, 0, 2, 2, 2, 2])
        #expect(spans.allSatisfy { ($0.nanoseconds ?? -1) >= 0 })
        #expect(spans.allSatisfy { $0.resource?["service.name"]?.text == "shop" })
        #expect(spans.allSatisfy { $0.resource?["deployment.environment.name"]?.text == "täst" })
        #expect(spans[3]["http.request.resend_count"] == "2" && spans[3]["server.port"] == "\(service.port)")
        let points = lines.filter { $0.metric == "http.client.request.duration" }
        #expect(points.map { $0["http.response.status_code"] ?? "none" }.sorted() == ["200", "503", "none"])
        #expect(points.allSatisfy { $0.count == 1 && $0.unit == "s" && $0.temporality == 2 })
        withExtendedLifetime(process) {}
    }
}
