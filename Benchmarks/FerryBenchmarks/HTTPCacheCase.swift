internal import Ferry
internal import FerryMeasurement
internal import FerryTesting
internal import Foundation

/// The cache according to RFC 9111: hits from memory, and validations beside plain GETs of the same 2 KB.
enum HTTPCacheCase {
    /// Like `CacheCase.Document`, with a lifetime from the server.
    private struct Document: Request {
        typealias Value = Response
        let number: Int
        var path: String { "/questions/\(number)" }
        var jsonSchema: JSONSchema? { CacheCase.Document.schema }
        var cachePolicy: CachePolicy { .http() }
    }

    /// A response that has to be validated each time.
    private struct Validated: Request {
        var path: String { "/bytes/2048" }
        var headers: Headers { ["Cache-Control": "no-cache"] }
        var cachePolicy: CachePolicy { .http() }
    }

    /// The same without the cache.
    private struct Plain: Request {
        var path: String { "/bytes/2048" }
        var headers: Headers { ["Cache-Control": "no-cache"] }
        var cachePolicy: CachePolicy { .none }
    }

    /// Hits per second and core, by one task.
    static func memoryHits(_ folder: String) async throws -> Double {
        var configuration = NetworkConfiguration(baseURL: "http://127.0.0.1")
        configuration.cache = CacheConfiguration(directory: folder)
        let headers: Headers = [
            "Content-Type": "application/json; charset=utf-8", "ETag": "\"7d1f0c52\"", "Cache-Control": "max-age=3600",
        ]
        let agent = NetworkAgent(
            configuration: configuration, stub: StubTransport(always: .response(headers: headers, body: CacheCase.body))
        )
        for number in 0..<1000 { _ = try await agent.send(Document(number: number)) }
        let count = 300_000
        let before = ProcessUsage.now
        for number in 0..<count {
            let reply = try await agent.send(Document(number: number % 1000))
            guard reply.isFromCache, reply.bodyLength == CacheCase.body.utf8.count else {
                throw BenchmarkError("no hit")
            }
        }
        let used = ProcessUsage.now - before
        await agent.shutdown()
        return Double(count) * 1_000_000 / (used.user + used.system)
    }

    /// Only the validations.
    static func run(_ server: String) async throws -> Measurement {
        let folder = try CacheCase.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var measurement = Measurement()
        measurement.extra = try await validations(folder, server)
        return measurement
    }

    /// Only validated requests, to be profiled.
    static func validated(_ load: Load) async throws -> Measurement { try await profiled(load) { Validated() } }

    /// Only plain requests.
    static func plain(_ load: Load) async throws -> Measurement { try await profiled(load) { Plain() } }

    private static func profiled<R: Request>(
        _ load: Load, _ make: @escaping @Sendable () -> R
    ) async throws -> Measurement {
        let folder = try CacheCase.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var configuration = NetworkConfiguration(baseURL: load.origin)
        configuration.cache = CacheConfiguration(directory: folder)
        let agent = NetworkAgent(configuration: configuration)
        _ = try await agent.send(make())
        let each = max(1, load.total / 64)
        var measurement = Measurement()
        let before = ProcessUsage.now
        _ = try await Turns.processTime(each: each) { _ = try await agent.send(make()) }
        let used = ProcessUsage.now - before
        measurement.extra["user_us"] = used.user / Double(64 * each)
        measurement.extra["system_us"] = used.system / Double(64 * each)
        await agent.shutdown()
        return measurement
    }

    /// CPU time of this process for one of 64 concurrent requests, in microseconds: validated, and plain.
    static func validations(_ folder: String, _ server: String) async throws -> [String: Double] {
        var configuration = NetworkConfiguration(baseURL: server)
        configuration.cache = CacheConfiguration(directory: folder)
        let agent = NetworkAgent(configuration: configuration)
        guard try await agent.send(Validated()).status == 200,
            try await agent.send(Validated()).cacheStatus?.forwardStatus == 304
        else { throw BenchmarkError("no validation") }
        let turns = try await Turns(rounds: 101) {
            try await Turns.processTime(each: 20) { _ = try await agent.send(Plain()) }
        } _: {
            try await Turns.processTime(each: 20) { _ = try await agent.send(Validated()) }
        }
        await agent.shutdown()
        let (plain, validated) = turns.medians
        return ["cpu_us_plain": plain, "cpu_us_validated": validated, "validated": turns.ratio]
    }
}
