/// All goals, and the figures of a run for them.
struct GoalSheet {
    let table: ResultTable

    /// In the order of the design: the promised speed first, then the other figures that are watched.
    var all: [Goal] { promised + engine + further }

    // MARK: What was promised

    private var promised: [Goal] {
        requests + waiting + bodies + documents + cache + groups + download + rivals
    }

    private static let small = "get12@64"

    private var requests: [Goal] {
        let small = Self.small
        return [
            cpu("12 bytes, 64 at once, await: CPU × the bare client", 1.25, small, .await, against: .bare),
            cpu("URLSession: CPU × await", 15, isAtMost: false, small, .urlSession, against: .await),
            cpu("tasks on the loop's executor: CPU × the bare client", 1.1, small, .executor, against: .bare),
            cpu("closures on a queue: CPU × await", 1.2, small, .closures, against: .await),
        ]
    }

    private var waiting: [Goal] {
        let crowds = [("get12@1000", "1,000"), ("get12@10000", "10,000")].flatMap { name, count in
            [Rival.await, .executor, .closures].map { rival in
                ratio("\(count) at once, \(rival.rawValue): CPU × 64 at once", 1.2, name, rival, to: Self.small, rival)
            }
        }
        return crowds + [
            special("100,000 waiting, closures: memory of each", 2048, "bytes", .waiting, .closures, "bytes_each"),
            besideTask("100,000 waiting, await: memory of each beside its task", 2048, .waiting),
        ]
    }

    private var bodies: [Goal] {
        let large = "get64k@64"
        return [
            cpu("64 KB, 64 at once, await: CPU × the bare client", 1.25, large, .await, against: .bare)
        ]
    }

    private var documents: [Goal] {
        let ways = [
            (Rival.schema, "a schema", 1.15), (.convertible, "JSONConvertible", 1.4), (.codable, "Codable", 1.8),
        ]
        let network = ways.map { rival, words, limit in
            cpu("GET of 2 KB of JSON, \(words): CPU × bytes", limit, "json2k@64", rival, against: .await)
        }
        return network + JSONFigures.goals(of: [.small], in: table.json)
    }

    private var cache: [Goal] {
        [
            special(
                "cache hits from memory, 2 KB with schema", 300_000, isAtMost: false, "per second and core", .cache,
                .awaitNative, "memory_hits_per_core"),
            special(
                "cache hits from the disk", 60_000, isAtMost: false, "per second and core", .cache, .awaitNative,
                "disk_hits_per_core"),
            special(
                "cache writes of 2 KB", 30_000, isAtMost: false, "per second", .cache, .awaitNative, "writes_per_second"
            ),
            special(
                "hits from memory by RFC 9111, 2 KB with schema", 300_000, isAtMost: false, "per second and core",
                .cache, .awaitNative, "http_memory_hits_per_core"),
            quotient(
                "a validation with 304 of 2 KB: CPU × a plain GET", 1.2, .cache, .awaitNative, "validated",
                of: "cpu_us_validated", "cpu_us_plain", "µs"),
            special(
                "a hit from Redis on loopback, 2 KB with schema: median", 250, "µs", .cache, .awaitNative,
                "redis_hit_us"),
            quotient(
                "a request while 30,000 writes per second go on: time × alone", 1.15, .cache, .awaitNative, "slowed",
                of: "request_us_while_writing", "request_us_alone", "µs"),
        ]
    }

    private var groups: [Goal] {
        [
            cpu("batches of 100: CPU × await", 1.1, Self.small, .batch, against: .await),
            cpu("chains of 10: CPU × await", 1.1, Self.small, .chain, against: .await),
        ]
    }

    private var download: [Goal] {
        [
            special("file of 1 GB loaded: memory above the start", 8, "MB", .download, .await, "memory_mb"),
            ratio(
                "file of 1 GB loaded: rate × the curl command", 0.9, isAtMost: false, "download", .await,
                to: "download", .curl,
                "MB/s"
            ) { $0.extra["mb_per_second"] ?? .nan },
        ]
    }

    private var rivals: [Goal] {
        [
            cpu("12 bytes, 64 at once, await: CPU × Go net/http", 1, Self.small, .await, against: .go),
            cpu("1,000 at once, await: CPU × Go net/http", 1, "get12@1000", .await, against: .go),
        ]
    }

    // MARK: The HTTP/1.1 engine

    private var engine: [Goal] { engineCosts + engineCrowds + fewAtOnce + generators }

    private var engineCosts: [Goal] {
        let (small, large, secure) = (Self.small, "get64k@64", "https12@64")
        return [
            cpu("HTTP/1.1 engine, C core: CPU × the bare client", 0.55, small, .coreNative, against: .bare),
            cpu("HTTP/1.1 engine, C core: CPU × wrk", 1.15, small, .coreNative, against: .wrk),
            cpu("HTTP/1.1 engine, await: CPU × the bare client", 0.75, small, .awaitNative, against: .bare),
            cpu(
                "HTTP/1.1 engine, tasks on the loop: CPU × the bare client", 0.65, small, .executorNative,
                against: .bare),
            cpu("HTTP/1.1 engine, closures: CPU × the bare client", 0.85, small, .closuresNative, against: .bare),
            cpu("HTTP/1.1 engine, 64 KB, C core: CPU × the bare client", 0.75, large, .coreNative, against: .bare),
            cpu("HTTP/1.1 engine, 64 KB, await: CPU × the bare client", 0.85, large, .awaitNative, against: .bare),
            cpu("HTTP/1.1 engine, https, C core: CPU × the bare client", 0.65, secure, .coreNative, against: .bare),
            ratio(
                "HTTP/1.1 engine, https, 1,000 at work, C core: CPU × 64", 1.3, "https12@1000", .coreNative, to: secure,
                .coreNative),
            cpu("HTTP/1.1 engine, await: CPU × reqwest", 0.9, small, .awaitNative, against: .reqwest),
            cpu(
                "HTTP/1.1 engine, 1,000 at work, await: CPU × reqwest", 0.5, "work12@1000", .awaitNative,
                against: .reqwest),
        ]
    }

    private var engineCrowds: [Goal] {
        let ways = [
            (Rival.coreNative, "C core"), (.awaitNative, "await"), (.executorNative, "tasks on the loop"),
            (.closuresNative, "closures"),
        ]
        return [("work12@1000", "1,000"), ("work12@10000", "10,000")].flatMap { name, count in
            ways.map { rival, words in
                ratio(
                    "HTTP/1.1 engine, \(count) at work, \(words): CPU × 64 at once", 1.2, name, rival, to: Self.small,
                    rival)
            }
        } + [
            special(
                "HTTP/1.1 engine, 10,000 in flight, closures: memory of each", 3072, "bytes", .slow, .closuresNative,
                "bytes_each")
        ]
    }

    private var fewAtOnce: [Goal] {
        [1, 4, 8, 16, 32].flatMap { count in
            [
                cpu("\(count) at once, await: CPU × Go net/http", 1.1, "get12@\(count)", .awaitNative, against: .go),
                cpu(
                    "\(count) at once, tasks on the loop: CPU × Go net/http", 1, "get12@\(count)", .executorNative,
                    against: .go),
            ]
        }
    }

    private var generators: [Goal] {
        [
            cpu("ferry bench, 64 at once: CPU × wrk", 1.6, Self.small, .bench, against: .wrk),
            cpu("ferry bench, 1,000 at once: CPU × wrk", 1.6, "work12@1000", .bench, against: .wrk),
            figure("ferry bench, 3,000 per second: CPU of a request", 30, "µs", "open@3000") { $0.cpuPerRequest },
            figure("ferry bench, 3,000 per second: p99", 1500, "µs", "open@3000") { $0.p99 },
            figure("ferry bench, 20,000 per second: p99", 3000, "µs", "open@20000") { $0.p99 },
            figure("ferry bench, 20,000 per second: rate", 19_800, isAtMost: false, "per second", "open@20000") {
                $0.rate
            },
            cpu("ferry bench, 3,000 per second: CPU × h2load", 1.5, "open@3000", .bench, against: .h2load),
            cpu("ferry bench, 20,000 per second: CPU × h2load", 1.5, "open@20000", .bench, against: .h2load),
        ]
    }

    /// A figure of `ferry bench` by itself.
    private func figure(
        _ text: String, _ limit: Double, isAtMost: Bool = true, _ unit: String, _ name: String,
        _ figure: (Measurement) -> Double
    ) -> Goal {
        Goal(
            text: text, limit: limit, isAtMost: isAtMost, measured: table.median(name, .bench, figure), unit: unit)
    }

    // MARK: What else is watched

    private var further: [Goal] {
        loads + held + service + millions + files + JSONFigures.goals(of: [.medium, .large], in: table.json)
    }

    private var loads: [Goal] {
        [
            cpu("3 header fields and 4 arguments: CPU × await", 1.3, Self.small, .dressed, against: .await),
            cpu("batches of 100: CPU × a task group of the same 100", 1.1, Self.small, .batch, against: .waves),
            ratio(
                "one at a time, await: median latency × the bare client", 1.5, "get12@1", .await, to: "get12@1", .bare
            ) { $0.p50 },
        ]
    }

    private var held: [Goal] {
        [
            special(
                "a batch of 100,000, 64 at once: memory of each that waits", 1024, "bytes", .waiting, .batch,
                "bytes_each"),
            quotient(
                "a batch of 100,000: CPU of a member × that of 10,000", 1.1, .crowd, .batch, "cpu_growth",
                of: "cpu_large",
                "cpu_small", "µs"),
            special(
                "10,000 in flight for 500 ms, closures: responses", 10_000, isAtMost: false, "", .slow, .closures,
                "answered"),
            special("10,000 in flight, closures: memory of each", 20_480, "bytes", .slow, .closures, "bytes_each"),
            special(
                "10,000 in flight for 500 ms, await: responses", 10_000, isAtMost: false, "", .slow, .await, "answered"),
            besideTask("10,000 in flight, await: memory of each beside its task", 20_480, .slow),
            special(
                "10,000 cancelled at once: results, each once", 10_000, isAtMost: false, "", .cancel, .closures,
                "results"),
            special(
                "10,000 cancelled at once: longest time the loop was held", 20, "ms", .cancel, .closures,
                "longest_hold_ms"),
        ]
    }

    private var service: [Goal] {
        [
            special(
                "server-sent events of 40 bytes", 300_000, isAtMost: false, "per second", .service, .awaitNative,
                "events_per_second"),
            special("the trace context of a request: CPU", 0.3, "µs", .service, .awaitNative, "trace_us"),
            quotient(
                "a tenth of the traces exported: CPU × await", 1.05, .service, .awaitNative, "exported",
                of: "cpu_us_exported", "cpu_us_alone", "µs"),
        ]
    }

    private var millions: [Goal] {
        [
            quotient(
                "a hit among 1,000,000 on the disk: CPU × among 10,000", 2, .cacheMillion, .awaitNative, "ratio",
                of: "hit_us_of_1000000", "hit_us_of_10000", "µs"),
            special(
                "the first hit of 1,000,000, opening included", 100, "ms", .cacheMillion, .awaitNative, "open_ms"),
        ]
    }

    private var files: [Goal] {
        [
            ratio(
                "file of 1 GB sent: rate × the curl command", 0.9, isAtMost: false, "upload", .await, to: "upload",
                .curl,
                "MB/s"
            ) { $0.extra["mb_per_second"] ?? .nan },
            special("file of 1 GB sent: memory above the start", 8, "MB", .upload, .await, "memory_mb"),
            ratio(
                "file of 1 GB loaded: CPU × the curl command", 1.2, "download", .await, to: "download", .curl, "ms"
            ) { $0.extra["cpu_ms"] ?? .nan },
            special(
                "resumed at 900 MB of 1 GB: bytes requested again", 0, "bytes", .resume, .await, "asked_again_bytes"),
            quotient(
                "1,000 files of 100 KB, 32 at once: rate × one after another", 3, isAtMost: false, .files, .await,
                "ratio",
                of: "many_per_second", "one_per_second", "per second"),
        ]
    }

    // MARK: How one is computed

    private func cpu(
        _ text: String, _ limit: Double, isAtMost: Bool = true, _ name: String, _ rival: Rival, against other: Rival
    ) -> Goal {
        ratio(text, limit, isAtMost: isAtMost, name, rival, to: name, other)
    }

    private func ratio(
        _ text: String, _ limit: Double, isAtMost: Bool = true, _ name: String, _ rival: Rival, to other: String,
        _ otherRival: Rival, _ unit: String = "µs", of figure: (Measurement) -> Double = { $0.cpuPerRequest }
    ) -> Goal {
        var goal = Goal(text: text, limit: limit, isAtMost: isAtMost)
        goal.measured = table.ratio(name, rival, to: other, otherRival, figure)
        if let own = table.median(name, rival, figure), let other = table.median(other, otherRival, figure) {
            goal.sides = Goal.Sides(own: own, other: other, unit: unit)
        }
        return goal
    }

    /// A figure from a special case.
    private func special(
        _ text: String, _ limit: Double, isAtMost: Bool = true, _ unit: String, _ special: SpecialCase, _ rival: Rival,
        _ name: String
    ) -> Goal {
        Goal(
            text: text, limit: limit, isAtMost: isAtMost, measured: extra(special, rival, name), unit: unit)
    }

    /// The memory of a run without what Swift keeps for the task that awaits it.
    private func besideTask(_ text: String, _ limit: Double, _ special: SpecialCase) -> Goal {
        var goal = Goal(text: text, limit: limit, unit: "bytes")
        if let whole = extra(special, .await, "bytes_each"), let task = extra(.waiting, .bareTask, "bytes_each") {
            goal.measured = whole - task
            goal.sides = Goal.Sides(own: whole, other: task, unit: "bytes")
        }
        return goal
    }

    /// A ratio from a special case, with both of its sides.
    private func quotient(
        _ text: String, _ limit: Double, isAtMost: Bool = true, _ special: SpecialCase, _ rival: Rival, _ name: String,
        of own: String, _ other: String, _ unit: String
    ) -> Goal {
        var goal = Goal(text: text, limit: limit, isAtMost: isAtMost, measured: extra(special, rival, name))
        if let own = extra(special, rival, own), let other = extra(special, rival, other) {
            goal.sides = Goal.Sides(own: own, other: other, unit: unit)
        }
        return goal
    }

    private func extra(_ special: SpecialCase, _ rival: Rival, _ name: String) -> Double? {
        let figure = table.median(special.rawValue, rival) { $0.extra[name] ?? .nan }
        return figure.flatMap { $0.isNaN ? nil : $0 }
    }
}
