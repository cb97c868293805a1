/// A load that all rivals carry in turn.
struct Case: Sendable {
    var name: String
    var path: String
    var length: Int
    var concurrency: Int
    /// The number of requests of one run; URLSession gets a tenth, which takes it as long.
    var total: Int
    var rivals: [Rival]
    /// How long a round and counting the system calls take, for the estimate at the start.
    var seconds: Double
    var secondsOfSystemCalls: Double
    /// With 3, it is measured in every third round.
    var interval = 1
    /// In how many parts a round is: the rivals take turns in each of them. A part is short, so that what other
    /// programs do to the machine meanwhile affects all rivals alike. A case with many connections is measured in one:
    /// most of a short part would be their opening.
    var parts = 1
    /// The number of connections equals the concurrency, if that is not 64.
    var connections = 64
    var isSecure = false
    /// Whether opening the connections is measured by itself and left out: with thousands of connections, a run would
    /// be mostly that.
    var opensFirst = false
    /// The rate in requests per second of the open-loop load; `nil` for closed-loop.
    var rate: Int?

    /// URLSession opens a task for each of the senders; with thousands it takes minutes and shows nothing new.
    private static let all = Rival.senders
    private static let ours = Rival.senders.filter { $0 != .urlSession }

    static let every: [Case] = closed + (low + atWork + secure + open).map(inEveryThirdRound)

    /// So that a whole run stays below 15 minutes.
    private static func inEveryThirdRound(_ one: Case) -> Case {
        var one = one
        one.interval = 3
        return one
    }

    /// The rounds, among this many, in which it is measured.
    func rounds(of all: Int) -> Int { (all + interval - 1) / interval }

    /// Low concurrency, where threads sleep and wake for each response.
    private static let low = [4, 8, 16, 32].map { count in
        Case(
            name: "get12@\(count)", path: "/hello", length: 12, concurrency: count, total: 20_000,
            rivals: [.executorNative, .awaitNative, .go], seconds: 2.5, secondsOfSystemCalls: 0, parts: 2)
    }

    /// One connection for each concurrent request, all of them busy.
    private static let atWork = [
        Case(
            name: "work12@1000", path: "/hello", length: 12, concurrency: 1000, total: 70_000,
            rivals: Rival.native + [.bench, .wrk, .reqwest], seconds: 12, secondsOfSystemCalls: 0, parts: 2,
            connections: 1000, opensFirst: true),
        Case(
            name: "work12@10000", path: "/hello", length: 12, concurrency: 10_000, total: 130_000,
            rivals: Rival.native, seconds: 13, secondsOfSystemCalls: 0, connections: 10_000, opensFirst: true),
    ]

    private static let secure = [
        Case(
            name: "https12@64", path: "/hello", length: 12, concurrency: 64, total: 25_000,
            rivals: [.bare, .coreNative, .awaitNative, .wrk], seconds: 5, secondsOfSystemCalls: 0, parts: 2,
            isSecure: true, opensFirst: true),
        Case(
            name: "https12@1000", path: "/hello", length: 12, concurrency: 1000, total: 120_000,
            rivals: [.coreNative, .awaitNative, .wrk], seconds: 11, secondsOfSystemCalls: 0, connections: 1000,
            isSecure: true, opensFirst: true),
    ]

    private static let open = [3000, 20_000].map { (rate: Int) in
        Case(
            name: "open@\(rate)", path: "/hello", length: 12, concurrency: 64, total: 0, rivals: [.bench, .h2load],
            seconds: 10, secondsOfSystemCalls: 0, rate: rate)
    }

    private static let closed: [Case] = [
        Case(
            name: "get12@1", path: "/hello", length: 12, concurrency: 1, total: 10_000,
            rivals: all + [.executorNative, .awaitNative, .go], seconds: 5, secondsOfSystemCalls: 10, parts: 2),
        Case(
            name: "get12@64", path: "/hello", length: 12, concurrency: 64, total: 60_000,
            rivals: all + Rival.native + [
                .dressed, .waves, .batch, .chain, .wrk, .go, .curlParallel, .bench, .reqwest,
            ],
            seconds: 30, secondsOfSystemCalls: 20, parts: 3),
        Case(
            name: "get12@1000", path: "/hello", length: 12, concurrency: 1000, total: 60_000,
            rivals: ours + [.wrk, .go], seconds: 13, secondsOfSystemCalls: 0, parts: 3),
        Case(
            name: "get12@10000", path: "/hello", length: 12, concurrency: 10_000, total: 150_000, rivals: ours,
            seconds: 14, secondsOfSystemCalls: 0, interval: 2),
        Case(
            name: "get64k@64", path: "/bytes/65536", length: 65_536, concurrency: 64, total: 14_000,
            rivals: all + [.coreNative, .awaitNative, .wrk, .go, .curlParallel], seconds: 11,
            secondsOfSystemCalls: 20, parts: 3),
        Case(
            name: "json2k@64", path: JSONSample.path, length: JSONSample.small.count, concurrency: 64, total: 30_000,
            rivals: [.core, .await, .schema, .convertible, .codable, .foundation], seconds: 10,
            secondsOfSystemCalls: 0, parts: 3),
    ]

    func load(server: String, rival: Rival, scale: Double) -> Load {
        // A process that collects a line of output for each exchange until its end gets few of them, too.
        let share = rival == .urlSession || rival == .curlParallel ? 0.1 : 1
        return Load(
            url: server + path, total: max(concurrency, Int(Double(total) * share * scale)),
            concurrency: concurrency, length: length, connections: connections, rate: rate)
    }
}

/// Measured once, with a server that holds its responses back.
enum SpecialCase: String, CaseIterable, Sendable {
    /// 100,000 runs wait behind a server that does not respond.
    case waiting
    /// 10,000 in flight, each with a response after 500 ms.
    case slow
    /// 10,000 in flight cancelled at once.
    case cancel
    /// A batch of 10,000 and one of 100,000, at most 64 at once.
    case crowd
    /// A file of 1 GB is uploaded.
    case upload
    /// A file of 1 GB is downloaded.
    case download
    /// A download that broke off at 900 MB is resumed.
    case resume
    /// A thousand files of 100 KB, one after another and 32 at once.
    case files
    /// Hits from memory and disk, and writes.
    case cache
    /// The same directory with a million entries: 4 GB of disk.
    case cacheMillion = "cache-million"
    /// Server-sent events, the trace context of a request, and the export of traces.
    case service

    /// Whether it is measured in every round. A million entries take too long for that, and what a service uses has
    /// rounds of its own.
    var isRepeated: Bool { self != .cacheMillion && self != .service }

    /// How often it is measured in a round. Files are measured several times: one transfer in four uses memory that a
    /// virtual machine has to get from its host first, which takes as much CPU time as all the rest.
    var timesARound: Int {
        switch self {
        case .download: 3
        case .files: 2
        default: 1
        }
    }

    /// How long it takes, for the estimate at the start.
    var seconds: Double {
        switch self {
        case .waiting, .slow, .cancel, .crowd, .resume: 3
        case .upload, .download, .files: 2
        case .cache: 15
        case .cacheMillion: 75
        case .service: 7
        }
    }

    /// Whether files are loaded like on a file server.
    var isOfFiles: Bool { self == .download || self == .files }

    /// A cancelled run reports its result in different ways: closures are best for counting.
    var rivals: [Rival] {
        switch self {
        case .waiting: [.closures, .await, .batch, .bareTask]
        case .slow: [.closures, .await, .closuresNative, .awaitNative]
        case .cancel: [.closures]
        case .crowd: [.batch]
        case .upload, .download: [.curl, .await]
        case .resume, .files: [.await]
        case .cache, .cacheMillion, .service: [.awaitNative]
        }
    }
}
