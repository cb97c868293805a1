internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials

/// The messages between the processes of a fleet. They are JSON. Their size and their values are checked, because
/// others may be able to write to the same server.
enum FleetMessage {
    /// The version of the messages. Other versions are errors.
    static let version = 1
    /// The maximum size of a message.
    static let mostBytes = 32 << 20

    static func bytes(_ value: some Encodable) throws(FleetError) -> [UInt8] {
        guard let data = try? JSONEncoder().encode(value) else { throw FleetError("a message could not be encoded") }
        if data.count > mostBytes { throw FleetError("a message has \(data.count) bytes (limit \(mostBytes))") }
        return Array(data)
    }

    /// Decodes a message. `what` names it in the error.
    static func reading<Value: Decodable>(
        _ bytes: [UInt8], _ what: String, most: Int = mostBytes
    ) throws(FleetError) -> Value {
        if bytes.count > most { throw FleetError("\(what) has \(bytes.count) bytes (limit \(most))") }
        do {
            return try JSONDecoder().decode(Value.self, from: Data(bytes))
        } catch {
            throw FleetError("\(what) is not valid")
        }
    }
}

/// The state of the run, which the coordinator sets again every second. If it expires, the coordinator has died.
struct FleetState: Codable, Sendable, Equatable {
    enum Phase: String, Codable, Sendable { case joining, started, stopped }

    var version = FleetMessage.version
    /// Identifies this run among others with the same name.
    var run: String
    var phase = Phase.joining
    var workers: Int
    /// When all workers start, in microseconds of the store's clock.
    var start: UInt64?
    /// Why the run was stopped.
    var reason: String?

    static let lifetime = Duration.seconds(10)

    static func reading(_ bytes: [UInt8]) throws(FleetError) -> FleetState {
        let what = "the coordinator's state"
        let state: FleetState = try FleetMessage.reading(bytes, what, most: 4096)
        guard state.version == FleetMessage.version else {
            throw FleetError("\(what) has version \(state.version), and this ferry understands \(FleetMessage.version)")
        }
        let isRun =
            (1...64).contains(state.run.count) && state.run.allSatisfy { $0.isASCII && $0.isHexDigit }
        guard isRun, FleetShare.counts.contains(state.workers), (state.phase == .started) == (state.start != nil) else {
            throw FleetError("\(what) is not valid")
        }
        return state
    }
}

/// The load, as the coordinator's command line describes it. The order has the contents of files and not their paths,
/// so a worker never opens a path that comes from elsewhere.
struct FleetOrder: Codable, Sendable, Equatable {
    struct Option: Codable, Sendable, Equatable {
        var name: String
        var value: String
    }

    struct Body: Codable, Sendable, Equatable {
        var bytes: Data
        var contentType: String
    }

    /// The requests of a HAR file, without the responses, which no worker needs.
    struct Recording: Codable, Sendable, Equatable {
        /// The file as the coordinator's command line names it, for messages.
        var name: String
        var bytes: Data
    }

    /// Empty with a recording.
    var url: String
    var options: [Option]
    var body: Body?
    /// A JSON Schema, as text.
    var schema: Data?
    var recording: Recording?

    /// Options that define what is sent and how fast. Their values are not paths.
    private static let load: Set = [
        "concurrency", "rate", "duration", "requests", "warm-up", "connections", "loops", "request", "header",
        "timeout", "status", "expect-sha256", "any-body", "max-redirects", "compressed", "no-compressed", "basic",
        "digest", "bearer", "unpaced",
    ]
    /// Options of the connection. A worker's own options replace them.
    private static let way: Set = [
        EngineOption.name, "proxy", "no-proxy", "resolve", "address-selection", "connect-ahead", "keepalive-time",
        "public-only", "http2", "max-streams", "tls-min", "pin", "insecure",
    ]
    /// Options of the connection that refer to one machine. Each worker has its own.
    private static let local: Set = ["proxy-env", "unix-socket", "cacert", "cert", "key"]
    /// Options that only the coordinator uses, and those whose files it reads.
    private static let own: Set = [
        "fleet", "workers", "join-timeout", "json", "html", "baseline", "fail-if", "help", "data", "json-body",
        "schema", "har",
    ]
    private static let ofWorker: Set = ["join", "join-timeout", "json", "html", "help"]

    private static let mostOptions = 1000

    init(_ arguments: ParsedArguments) throws {
        for name in arguments.options.map(\.name) where !Self.own.contains(name) {
            if Self.local.contains(name) {
                throw UsageError("--\(name) applies to one machine; pass it to each --join instead of --fleet")
            }
            if !Self.load.union(Self.way).contains(name) {
                throw UsageError("--fleet and --\(name) cannot be combined")
            }
        }
        if let path = arguments.last("har") {
            url = ""
            recording = Recording(name: path, bytes: try Self.requests(of: path))
        } else {
            guard let url = arguments.operands.first else { throw UsageError("--fleet requires the URL of a server") }
            self.url = try CommandURL.complete(url)
        }
        options = arguments.options.filter { !Self.own.contains($0.name) }.map {
            Option(name: $0.name, value: $0.value)
        }
        if let held = try FetchBody.held(arguments) {
            body = Body(bytes: Data(held.bytes), contentType: held.contentType)
        }
        schema = try arguments.last("schema").map { path throws(InputError) in Data(try InputFile.bytes(at: path)) }
    }

    /// The bytes of a recording that fit into a message: JSON has them in Base64.
    static let mostRecordedBytes = FleetMessage.mostBytes / 4 * 3 - (1 << 20)

    /// The file without its responses, which are most of it and perhaps confidential.
    private static func requests(of path: String) throws(InputError) -> Data {
        var archive = try ArchiveLoad.archive(try InputFile.bytes(at: path), path)
        for index in archive.entries.indices {
            var response = archive.entries[index].response
            (response.headers, response.cookies, response.redirectURL) = ([], nil, nil)
            (response.content.text, response.content.encoding) = (nil, nil)
            archive.entries[index].response = response
        }
        guard let data = try? archive.json() else { throw InputError("\(path): cannot be encoded as JSON") }
        if data.count > mostRecordedBytes {
            throw InputError("\(path): its requests have \(data.count) bytes (limit \(mostRecordedBytes) with --fleet)")
        }
        return data
    }

    /// Checks the options of a worker: only some may be combined with `--join`.
    static func check(ofWorker arguments: ParsedArguments) throws(UsageError) {
        for name in arguments.options.map(\.name) where !ofWorker.union(way).union(local).contains(name) {
            throw UsageError("--join and --\(name) cannot be combined: the coordinator sets it")
        }
        if let url = arguments.operands.first { throw UsageError("--join and a URL ('\(url)') cannot be combined") }
    }

    /// The load as a worker carries it, with the worker's own options. An invalid order is an error of the coordinator.
    func plan(with own: ParsedArguments) throws -> BenchPlan {
        if options.count > Self.mostOptions { throw FleetError("the coordinator's order has too many options") }
        if let other = options.first(where: { !Self.load.union(Self.way).contains($0.name) }) {
            throw FleetError("the coordinator's order has the option '\(other.name)', which no worker accepts")
        }
        let kept = options.filter { !own.has($0.name) }.map { (name: $0.name, value: $0.value) }
        let arguments = ParsedArguments(
            options: kept + own.options.filter { !Self.ofWorker.contains($0.name) },
            operands: recording == nil ? [url] : [])
        do {
            var plan = try BenchPlan(arguments)
            if let body {
                plan.order.request.body = .bytes(Array(body.bytes), contentType: body.contentType)
                if !options.contains(where: { $0.name == "request" }) { plan.order.request.method = .post }
            }
            if let schema { plan.order.request.jsonSchema = try SchemaFile.schema(of: schema, path: "the schema") }
            if let recording {
                let archive = try ArchiveLoad.archive(Array(recording.bytes), recording.name)
                try plan.replay(recording.name, archive, arguments)
            } else {
                try plan.order.check()
            }
            return plan
        } catch let error as UsageError {
            throw FleetError("the coordinator's order: \(error.message)")
        } catch let error as InputError {
            throw FleetError("the coordinator's order: \(error.message)")
        }
    }

    static func reading(_ bytes: [UInt8]) throws(FleetError) -> FleetOrder {
        try FleetMessage.reading(bytes, "the coordinator's order")
    }
}

/// The message that a worker sends every second, and once more at its end.
struct FleetBeat: Codable, Sendable {
    enum Phase: String, Codable, Sendable {
        case joined, running
        /// Its result can be read.
        case done
    }

    /// Identifies this worker, because another process may take its place.
    var token: String
    /// Its machine and process, for messages to people.
    var name: String
    /// Increases with each message.
    var number: UInt64 = 0
    var phase = Phase.joined
    /// The figures so far. They are used if the worker dies.
    var figures: FleetFigures?

    static let lifetime = Duration.seconds(6)

    static func reading(_ bytes: [UInt8]) throws(FleetError) -> FleetBeat {
        let beat: FleetBeat = try FleetMessage.reading(bytes, "its message", most: 1 << 20)
        guard beat.token.utf8.count <= 64, beat.name.utf8.count <= 200, beat.number < 1 << 48,
            beat.figures?.isSound != false
        else { throw FleetError("its message is not valid") }
        return beat
    }
}

/// The result of a worker.
struct FleetResult: Codable, Sendable {
    var token: String
    var figures: FleetFigures
    /// Whether ctrl-C at the worker has ended it, rather than the coordinator.
    var wasInterrupted: Bool

    static let lifetime = Duration.seconds(300)

    static func reading(_ bytes: [UInt8], token: String) throws(FleetError) -> FleetResult {
        let result: FleetResult = try FleetMessage.reading(bytes, "its result")
        guard result.token == token, result.figures.isSound else { throw FleetError("its result is not valid") }
        return result
    }
}
