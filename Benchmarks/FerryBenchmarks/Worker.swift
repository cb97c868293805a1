internal import Foundation

/// One measurement, in a process that does nothing else.
enum Worker {
    /// `NAME URL TOTAL CONCURRENCY LENGTH CONNECTIONS`; prints one line of JSON.
    static func run(_ arguments: [String]) async throws {
        guard let name = arguments.first else { throw BenchmarkError("which worker?") }
        if name == "serve" { return try LoopbackWorker.run() }
        if name == "load-urlSession" { return try await URLSessionLoad.run(Array(arguments.dropFirst())) }
        if name == "json" {
            let figures = try JSONBenchmark(Array(arguments.dropFirst())).run()
            return print(String(decoding: try JSONEncoder().encode(figures), as: UTF8.self))
        }
        if name.hasPrefix("soak") { return try await soak(name, Array(arguments.dropFirst())) }
        guard arguments.count == 6, let total = Int(arguments[2]), let concurrency = Int(arguments[3]),
            let length = Int(arguments[4]), let connections = Int(arguments[5])
        else { throw BenchmarkError("a worker takes NAME URL TOTAL CONCURRENCY LENGTH CONNECTIONS") }
        let load = Load(
            url: arguments[1], total: total, concurrency: concurrency, length: length, connections: connections)
        let measurement = try await measure(name, load)
        print(String(decoding: try JSONEncoder().encode(measurement), as: UTF8.self))
    }

    /// `soak-ferry URL SECONDS`, `soak-urlSession URL SECONDS`, or `soak-server`.
    private static func soak(_ name: String, _ arguments: [String]) async throws {
        if name == "soak-server" { return try SoakServer.run() }
        guard arguments.count == 2, let seconds = Double(arguments[1]) else {
            throw BenchmarkError("a soak takes URL SECONDS")
        }
        let report =
            try await name == "soak-ferry"
            ? SoakRunner.ferry(url: arguments[0], seconds: seconds)
            : URLSessionSoak.run(url: arguments[0], seconds: seconds)
        print(String(decoding: try JSONEncoder().encode(report), as: UTF8.self))
    }

    private static func measure(_ name: String, _ load: Load) async throws -> Measurement {
        switch name {
        case "bare": try BareRival.run(load)
        case "core": try CoreRival.run(load)
        case "await": try await FerryRivals.await(load)
        case "executor": try await FerryRivals.executor(load)
        case "closures": try await FerryRivals.closures(load)
        case "dressed": try await FerryRivals.dressed(load)
        case "plain": try await HTTPCacheCase.plain(load)
        case "validated": try await HTTPCacheCase.validated(load)
        case "schema": try await FerryRivals.schema(load)
        case "convertible": try await FerryRivals.convertible(load)
        case "codable": try await FerryRivals.codable(load)
        case "foundation": try await FerryRivals.foundation(load)
        case "waves": try await GroupRivals.waves(load)
        case "batch": try await GroupRivals.batches(load)
        case "chain": try await GroupRivals.chains(load)
        case "urlSession": try await URLSessionRival.run(load)
        case "waiting-closures": try await WaitingCase.closures(load.url)
        case "waiting-await": try await WaitingCase.tasks(load.url)
        case "waiting-batch": try await WaitingCase.batch(load.url)
        case "crowd-batch": try await CrowdCase.run(load.url)
        case "waiting-bareTask": await WaitingCase.bareTasks()
        case "slow-closures": try await SlowCase.closures(load.url)
        case "slow-await": try await SlowCase.tasks(load.url)
        case "cancel-closures": try await CancelCase.run(load.url)
        case "upload-await": try await UploadCase.ferry(load.url)
        case "cache-await": try await CacheCase.run(load.url)
        case "validation-await": try await HTTPCacheCase.run(load.url)
        case "cache-curve": try await CacheCurve.run(entries: load.total)
        case "cache-million-await": try await CacheMillionCase.run()
        case "service-await": try await ServiceCase.run(load.url)
        case "upload-curl": try UploadCase.curl(load.url)
        case "download-await": try await DownloadCase.ferry(load.url)
        case "download-curl": try DownloadCase.curl(load.url)
        case "resume-await": try await DownloadCase.resume()
        case "files-await": try await DownloadCase.files(load.url)
        default: throw BenchmarkError("unknown worker \(name)")
        }
    }
}
