/// A client that sends the requests.
enum Rival: String, Codable, CaseIterable, Sendable {
    /// A client in C over libcurl and libuv that counts responses and does nothing else.
    case bare
    case core
    case executor
    case await
    case closures
    /// By `await`, with three header fields and four arguments.
    case dressed
    /// By `await`, with a schema.
    case schema
    /// By `await`, with a schema and values made by hand.
    case convertible
    /// By `await`, with a schema and values made by `Codable`.
    case codable
    /// By `await`, with values made by Foundation's decoder.
    case foundation
    /// A hundred at once by a task group, and the next hundred when all have ended.
    case waves
    /// The same in batches of 100, one after another.
    case batch
    /// In chains of 10.
    case chain
    case urlSession
    /// The curl command.
    case curl
    /// The curl command, in its parallel mode.
    case curlParallel
    /// Go's net/http.
    case go
    /// A load generator that checks nothing but the status: the limit.
    case wrk
    /// The core, `tasks on the loop`, `await` and closures with Ferry's own HTTP/1.1 engine.
    case coreNative
    case executorNative
    case awaitNative
    case closuresNative
    /// `ferry bench`, whose load is sent on its event loop's thread.
    case bench
    /// nghttp2's load generator over HTTP/1.1: the limit for open-loop load.
    case h2load
    /// Rust's reqwest on hyper and tokio.
    case reqwest
    /// No client: a task that only waits, to show how much of the memory is Swift's.
    case bareTask

    /// The rivals that send requests.
    static let senders: [Rival] = [.bare, .core, .executor, .await, .closures, .urlSession]

    /// Programs that are measured if installed.
    static let programs: [Rival] = [.wrk, .go, .curlParallel, .bench, .h2load, .reqwest]

    /// Load generators. wrk and h2load take only a time, so that opening the connections is part of their run; that of
    /// `ferry bench`, which is compared with them, includes it, too.
    static let generators: [Rival] = [.wrk, .bench, .h2load]

    /// Those with Ferry's own HTTP/1.1 engine; Ferry's others use libcurl.
    static let native: [Rival] = [.coreNative, .executorNative, .awaitNative, .closuresNative]

    /// The name of its worker process; the environment selects the engine.
    var worker: String { Self.native.contains(self) ? String(rawValue.dropLast("Native".count)) : rawValue }

    /// The environment of its worker process.
    var environment: [String: String] {
        ["FERRY_ENGINE": Self.native.contains(self) ? "automatic" : "libcurl"]
    }

    var title: String {
        switch self {
        case .bare: "bare client in C"
        case .core: "C core alone"
        case .executor: "Ferry, tasks on the loop"
        case .await: "Ferry, await"
        case .closures: "Ferry, closures"
        case .dressed: "Ferry, await, 3 fields and 4 arguments"
        case .schema: "Ferry, await, schema"
        case .convertible: "Ferry, await, schema, JSONConvertible"
        case .codable: "Ferry, await, schema, Codable"
        case .foundation: "Ferry, await, JSONDecoder"
        case .waves: "Ferry, await, in task groups of 100"
        case .batch: "Ferry, batches of 100"
        case .chain: "Ferry, chains of 10"
        case .urlSession: "URLSession"
        case .curl: "curl"
        case .curlParallel: "curl, parallel"
        case .go: "Go net/http"
        case .wrk: "wrk"
        case .coreNative: "C core, HTTP/1.1 engine"
        case .executorNative: "Ferry, tasks on the loop, HTTP/1.1 engine"
        case .awaitNative: "Ferry, await, HTTP/1.1 engine"
        case .closuresNative: "Ferry, closures, HTTP/1.1 engine"
        case .bench: "ferry bench"
        case .h2load: "h2load"
        case .reqwest: "reqwest"
        case .bareTask: "a task, no Ferry"
        }
    }
}
