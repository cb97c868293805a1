internal import Ferry
internal import FoundationEssentials

/// The form in which a response is printed.
struct FetchForm: Sendable {
    /// Whether the status line and the header fields are printed first.
    var includesHead = false
    /// Whether the output is a terminal: control characters are not printed, and the output ends with a newline.
    var isTerminal = false
    var formatsJSON = false
    var usesColor = false

    init() {}

    /// From the command line and the terminal. `-o -` prints everything, even to a terminal.
    init(_ arguments: ParsedArguments) {
        includesHead = arguments.has("include") || arguments.has("head")
        isTerminal = Console.outIsTerminal && !arguments.has("output") && !arguments.has("remote-name")
        formatsJSON = isTerminal && !arguments.has("raw")
        usesColor = isTerminal && Console.usesColor
    }
}

/// Prints one response: to a file or a pipe as it arrives, to a terminal in a readable form.
final class FetchWriter {
    private let form: FetchForm
    private let file: OutputFile?
    private let output: (UnsafeRawBufferPointer) -> Void
    /// Ends the last line.
    private let endLine: () -> Void
    /// Incomplete JSON.
    private var held: [UInt8]?
    private var last: UInt8 = UInt8(ascii: "\n")
    /// The beginning of an incomplete character or line end.
    private var pending: [UInt8] = []
    /// Whether the body was not printed to the terminal.
    private(set) var isRefused = false

    /// A larger body is printed as it arrives.
    private static let mostHeld = 4 << 20

    init(
        _ form: FetchForm, file: OutputFile?, endingLine endLine: (() -> Void)? = nil,
        _ output: @escaping (UnsafeRawBufferPointer) -> Void
    ) {
        self.form = form
        self.file = file
        self.output = file.map { file in { file.write($0) } } ?? output
        self.endLine = endLine ?? { Array("\n".utf8).withUnsafeBytes(output) }
    }

    /// Why the body could not be written; `nil` if it could.
    var fault: String? {
        if isRefused {
            return "the body is not text, or contains control characters, which could command the terminal; "
                + "-o FILE writes it to a file, -o - prints it anyway"
        }
        return file?.fault?.message
    }

    /// Whether nobody receives further output.
    var hasEnded: Bool { Console.hasOutputEnded || fault != nil || file?.hasLostReader == true }

    func head(_ response: Response) {
        file?.open()
        if form.includesHead {
            var lines = ["\(response.httpVersion) \(response.status)"]
            for field in response.headers.fields { lines.append("\(field.name): \(field.value)") }
            lines.append("")
            let text = lines.map { form.isTerminal ? Main.oneLine($0) + "\n" : $0 + "\r\n" }.joined()
            Array(text.utf8).withUnsafeBytes(output)
        }
        if form.formatsJSON, let type = response.headers["Content-Type"], Self.isJSON(type) { held = [] }
    }

    func body(_ piece: UnsafeRawBufferPointer) {
        guard held != nil else { return plain(piece) }
        held?.append(contentsOf: piece)
        if (held?.count ?? 0) > Self.mostHeld { release() }
    }

    /// Called at the end, complete or not.
    func end() {
        if let bytes = held, let text = JSONPrinter.text(of: bytes, usesColor: form.usesColor) {
            held = nil
            Array(text.utf8).withUnsafeBytes(output)
        }
        release()
        if !pending.isEmpty && pending != [UInt8(ascii: "\r")] { isRefused = true }
        if form.isTerminal && !isRefused && last != UInt8(ascii: "\n") { endLine() }
    }

    /// Prints the held bytes unchanged.
    private func release() {
        let bytes = held ?? []
        held = nil
        bytes.withUnsafeBytes(plain)
    }

    private func plain(_ piece: UnsafeRawBufferPointer) {
        if isRefused || piece.isEmpty { return }
        guard form.isTerminal else { return output(piece) }
        var bytes = pending + piece
        pending = Self.takeIncomplete(&bytes)
        guard Self.isHarmless(bytes) else {
            isRefused = true
            return
        }
        bytes.withUnsafeBytes(output)
        last = bytes.last ?? last
    }

    /// Removes bytes that may be the beginning of a character or a line end.
    private static func takeIncomplete(_ bytes: inout [UInt8]) -> [UInt8] {
        var length = 0
        if bytes.last == UInt8(ascii: "\r") {
            length = 1
        } else if let start = bytes.suffix(3).lastIndex(where: { $0 >= 0xC0 }) {
            let needed = bytes[start] >= 0xF0 ? 4 : bytes[start] >= 0xE0 ? 3 : 2
            if bytes.count - start < needed { length = bytes.count - start }
        }
        defer { bytes.removeLast(length) }
        return Array(bytes.suffix(length))
    }

    /// Whether it is safe text: UTF-8 without control characters other than tabs and line ends.
    private static func isHarmless(_ bytes: [UInt8]) -> Bool {
        guard let text = String(validating: bytes, as: UTF8.self) else { return false }
        var isBehindReturn = false
        for scalar in text.unicodeScalars {
            if isBehindReturn && scalar != "\n" { return false }
            isBehindReturn = scalar == "\r"
            if scalar.commandsTerminals && !"\t\n\r".unicodeScalars.contains(scalar) { return false }
        }
        return true
    }

    private static func isJSON(_ type: String) -> Bool {
        // By bytes: a semicolon and a combining mark after it are one character.
        let start = String(decoding: type.utf8.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self)
        let name = start.lowercased().filter { $0 != " " }
        return name == "application/json" || name.hasSuffix("+json")
    }
}

/// `--events`: prints server-sent events as they arrive.
enum FetchEvents {
    private struct Line: Encodable {
        let event: String
        let data: String
        let id: String

        init(_ event: ServerSentEvent) { (self.event, data, id) = (event.event, event.data, event.id) }
    }

    /// Ends when the server ends the stream for good, or nobody reads the output any more.
    static func print(_ plan: FetchPlan, by agent: NetworkAgent, to writer: FetchWriter) async -> FetchVerdict {
        var events = agent.events(plan.request, reconnection: plan.reconnection).makeAsyncIterator()
        defer { writer.end() }
        do throws(RequestError) {
            while let event = try await events.next() {
                let text = plan.printsJSON ? jsonLine(Line(event)) + "\n" : text(of: event)
                Array(text.utf8).withUnsafeBytes(writer.body)
                if writer.hasEnded { break }
            }
            return FetchVerdict(status: 200, accepting: [200...200])
        } catch {
            if error.is(.invalidStatusCode), let status = error.response?.status {
                return FetchVerdict(status: status, accepting: [200...200])
            }
            return FetchVerdict(error, of: plan.request)
        }
    }

    /// As sent by the server: `event:` unless it is a message, `id:` if there is one, and `data:` for each line.
    private static func text(of event: ServerSentEvent) -> String {
        var lines: [String] = []
        if event.event != "message" { lines.append("event: \(event.event)") }
        if !event.id.isEmpty { lines.append("id: \(event.id)") }
        lines += event.data.split(separator: "\n", omittingEmptySubsequences: false).map { "data: \($0)" }
        return lines.joined(separator: "\n") + "\n\n"
    }
}

/// `--verbose`: logs a run with its heads, and the address of the connection. The body may go to the same
/// terminal.
struct FetchLog: LogSink, RequestObserver {
    let minimumLevel = LogLevel.trace
    private let lines = FileHandleLogSink(descriptor: 2, minimumLevel: .trace)

    func log(_ entry: LogEntry) { Console.betweenLines { lines.log(entry) } }

    func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        guard let peer = metrics.peer else { return }
        let way = metrics.isReusedConnection ? "kept connection" : "new connection"
        let version = metrics.httpVersion.map { " by \($0)" } ?? ""
        let bytes = "\(metrics.bytesSent) bytes sent, \(metrics.bytesReceived) received"
        log(LogEntry(.debug, "\(way) to \(peer.address) port \(peer.port)\(version): \(bytes)", run: run))
    }
}
