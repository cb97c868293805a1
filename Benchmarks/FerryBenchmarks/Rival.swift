/// Who sends the requests.
enum Rival: String, Codable, CaseIterable, Sendable {
    /// A client in C over libcurl and libuv that counts answers, and does nothing else.
    case bare
    case core
    case executor
    case await
    case closures
    /// By `await`, with three header fields of its own and four arguments.
    case dressed
    /// By `await`, with a schema.
    case schema
    /// By `await`, with a schema and values made by hand.
    case convertible
    /// By `await`, with a schema and values made by `Codable`.
    case codable
    /// By `await`, with values made by Foundation's decoder.
    case foundation
    /// A hundred at once by a task group, and the next hundred when all have answered.
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
    /// A load generator that looks at nothing but the status: the limit.
    case wrk
    /// Nobody: a task that only waits, to tell what of the memory is Swift's.
    case bareTask

    /// Those that send requests.
    static let senders: [Rival] = [.bare, .core, .executor, .await, .closures, .urlSession]

    /// Programs that are measured where they are installed.
    static let programs: [Rival] = [.wrk, .go, .curlParallel]

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
        case .bareTask: "a task, no Ferry"
        }
    }
}
