/// One figure the engine is to reach, and what was measured.
struct Goal: Codable, Sendable {
    var text: String
    var limit: Double
    /// Whether the limit is an upper one.
    var isAtMost = true
    /// `nil` when its case was not run.
    var measured: Double?

    var isReached: Bool? {
        measured.map { isAtMost ? $0 <= limit : $0 >= limit }
    }

    static func all(_ table: ResultTable) -> [Goal] {
        let cpu = { (measurement: Measurement) in measurement.cpuPerRequest }
        let small = "get12@64"
        let against = { (name: String, rival: Rival) in
            table.ratio(name, rival, to: name, table.reference(of: name), cpu)
        }
        let reference = table.reference(of: small) == .peer ? "the peer" : "the C core alone"
        var goals = [
            Goal(
                text: "12 bytes, 64 at once, await: CPU × \(reference)", limit: 1.25,
                measured: against(small, .await)),
            Goal(text: "the same on the loop's executor", limit: 1.1, measured: against(small, .executor)),
            Goal(
                text: "the same by closures: CPU × await", limit: 1.2,
                measured: table.ratio(small, .closures, to: small, .await, cpu)),
            Goal(
                text: "with 3 header fields and 4 arguments: CPU × await", limit: 1.3,
                measured: table.ratio(small, .dressed, to: small, .await, cpu)),
            Goal(
                text: "in batches of 100: CPU × await", limit: 1.1,
                measured: table.ratio(small, .batch, to: small, .await, cpu)),
            Goal(
                text: "the same: CPU × a task group of the same 100", limit: 1.1,
                measured: table.ratio(small, .batch, to: small, .waves, cpu)),
            Goal(
                text: "in chains of 10: CPU × await", limit: 1.1,
                measured: table.ratio(small, .chain, to: small, .await, cpu)),
            Goal(
                text: "URLSession: CPU × await", limit: 15, isAtMost: false,
                measured: table.ratio(small, .urlSession, to: small, .await, cpu)),
        ]
        for (name, count) in [("get12@1000", "1,000"), ("get12@10000", "10,000")] {
            for rival in [Rival.await, .executor, .closures] {
                goals.append(
                    Goal(
                        text: "\(count) at once, \(rival.rawValue): CPU × 64 at once", limit: 1.2,
                        measured: table.ratio(name, rival, to: small, rival, cpu)))
            }
        }
        goals += [
            Goal(
                text: "64 KB, 64 at once, await: CPU × \(reference)", limit: 1.25,
                measured: against("get64k@64", .await)),
            Goal(
                text: "one at a time, await: median latency × \(reference)", limit: 1.5,
                measured: table.ratio("get12@1", .await, to: "get12@1", table.reference(of: "get12@1")) { $0.p50 }),
        ]
        return goals + jsonGoals(table) + specialGoals(table)
    }

    private static func jsonGoals(_ table: ResultTable) -> [Goal] {
        let ways = [
            (Rival.schema, "a schema", 1.15), (.convertible, "JSONConvertible", 1.4), (.codable, "Codable", 1.8),
        ]
        let network = ways.map { rival, words, limit in
            Goal(
                text: "2 KB of JSON, 64 at once, \(words): CPU × bytes", limit: limit,
                measured: table.ratio("json2k@64", rival, to: "json2k@64", .await) { $0.cpuPerRequest })
        }
        return network + (table.json?.goals ?? [])
    }

    private static func downloadGoals(_ table: ResultTable) -> [Goal] {
        func figure(_ special: SpecialCase, _ name: String) -> Double? {
            table.median(special.rawValue, .await) { $0.extra[name] ?? .nan }
        }
        func against(_ name: String) -> Double? {
            table.ratio("download", .await, to: "download", .curl) { $0.extra[name] ?? .nan }
        }
        return [
            Goal(
                text: "file of 1 GB loaded, await: rate × the curl command", limit: 0.9, isAtMost: false,
                measured: against("mb_per_second")),
            Goal(text: "the same: CPU × the curl command", limit: 1.2, measured: against("cpu_ms")),
            Goal(
                text: "the same: MB of memory above the start", limit: 8, measured: figure(.download, "memory_mb")),
            Goal(
                text: "gone on at 900 MB of 1 GB: bytes asked for again", limit: 0,
                measured: figure(.resume, "asked_again_bytes")),
            Goal(
                text: "1,000 files of 100 KB, 32 at once: rate × one after another", limit: 3, isAtMost: false,
                measured: figure(.files, "ratio")),
        ]
    }

    private static func specialGoals(_ table: ResultTable) -> [Goal] {
        func figure(_ special: SpecialCase, _ rival: Rival, _ name: String) -> Double? {
            table.median(special.rawValue, rival) { $0.extra[name] ?? .nan }
        }
        return [
            Goal(
                text: "100,000 waiting, closures: bytes each", limit: 2048,
                measured: figure(.waiting, .closures, "bytes_each")),
            Goal(
                text: "100,000 waiting, await: bytes each, task included", limit: 2048,
                measured: figure(.waiting, .await, "bytes_each")),
            Goal(
                text: "a batch of 100,000, at most 64 at once: bytes for each that waits", limit: 1024,
                measured: figure(.waiting, .batch, "bytes_each")),
            Goal(
                text: "the same: CPU of a member × that of a batch of 10,000", limit: 1.1,
                measured: figure(.crowd, .batch, "cpu_growth")),
            Goal(
                text: "10,000 in flight for 500 ms, closures: answered", limit: 10_000, isAtMost: false,
                measured: figure(.slow, .closures, "answered")),
            Goal(text: "the same: bytes each", limit: 20_480, measured: figure(.slow, .closures, "bytes_each")),
            Goal(
                text: "10,000 in flight for 500 ms, await: answered", limit: 10_000, isAtMost: false,
                measured: figure(.slow, .await, "answered")),
            Goal(
                text: "the same: bytes each, task included", limit: 20_480,
                measured: figure(.slow, .await, "bytes_each")),
            Goal(
                text: "10,000 cancelled at once: results, each once", limit: 10_000, isAtMost: false,
                measured: figure(.cancel, .closures, "results")),
            Goal(
                text: "the same: longest time the loop was held, ms", limit: 20,
                measured: figure(.cancel, .closures, "longest_hold_ms")),
            Goal(
                text: "cache hits from memory, 2 KB JSON with schema: a second and core", limit: 300_000,
                isAtMost: false, measured: figure(.cache, .await, "memory_hits_per_core")),
            Goal(
                text: "the same from the disk", limit: 60_000, isAtMost: false,
                measured: figure(.cache, .await, "disk_hits_per_core")),
            Goal(
                text: "cache writes of 2 KB: a second", limit: 30_000, isAtMost: false,
                measured: figure(.cache, .await, "writes_per_second")),
            Goal(
                text: "a request while 30,000 writes a second go on: time × alone", limit: 1.15,
                measured: figure(.cache, .await, "slowed")),
            Goal(
                text: "a hit of 1,000,000 on the disk: CPU × of 10,000", limit: 2,
                measured: figure(.cacheMillion, .await, "ratio")),
            Goal(
                text: "the first hit of 1,000,000, opening included: ms", limit: 100,
                measured: figure(.cacheMillion, .await, "open_ms")),
            Goal(
                text: "file of 1 GB sent, await: rate × the curl command", limit: 0.9, isAtMost: false,
                measured: table.ratio("upload", .await, to: "upload", .curl) { $0.extra["mb_per_second"] ?? .nan }),
            Goal(
                text: "the same: MB of memory above the start", limit: 8, measured: figure(.upload, .await, "memory_mb")
            ),
        ] + downloadGoals(table)
    }
}
