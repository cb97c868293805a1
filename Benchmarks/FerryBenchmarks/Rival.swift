/// Who sends the requests.
enum Rival: String, Codable, CaseIterable, Sendable {
    case peer
    case core
    case executor
    case await
    case closures
    /// By `await`, with three header fields of its own and four arguments.
    case dressed
    case urlSession
    /// The curl command.
    case curl
    /// Nobody: a task that only waits, to tell what of the memory is Swift's.
    case bareTask

    /// Those that send requests.
    static let senders: [Rival] = [.peer, .core, .executor, .await, .closures, .urlSession]

    var title: String {
        switch self {
        case .peer: "peer"
        case .core: "C core alone"
        case .executor: "Ferry, tasks on the loop"
        case .await: "Ferry, await"
        case .closures: "Ferry, closures"
        case .dressed: "Ferry, await, dressed"
        case .urlSession: "URLSession"
        case .curl: "curl"
        case .bareTask: "a task, no Ferry"
        }
    }
}
