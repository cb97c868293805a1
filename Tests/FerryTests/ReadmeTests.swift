import Ferry
import FerryTesting
import Foundation
import Testing

@testable import FerryTestSupport

// README: begin
struct Weather: Decodable, Sendable {
    let city: String
    let celsius: Double
}

struct Forecast: Request {  // only what differs from the defaults
    typealias Value = Weather  // decoded from the JSON response
    let city: String
    var path: String { "/weather" }
    var arguments: Arguments { ["city": .string(city)] }
    var deadline: Duration? { .seconds(2) }  // for the whole run, retries included
}

func forecast(for city: String, by agent: NetworkAgent) async throws(RequestError) -> String {
    do throws(RequestError) {
        let weather = try await agent.send(Forecast(city: city)).value
        return "\(weather.celsius) °C in \(weather.city)"
    } catch {
        if error.is(.invalidStatusCode(404)) { return "unknown city" }
        throw error
    }
}

/// An agent has its own threads and connections, so one is enough for a program. This one is shut down at the end.
func printForecast(from base: String) async throws {
    try await withNetworkAgent(configuration: NetworkConfiguration(baseURL: base)) { agent in
        print(try await forecast(for: "Oslo", by: agent))
    }
}
// README: end

func printWeather() async throws {
    let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: "https://api.example.com"))
    let weather = try await agent.get("/weather", arguments: ["city": "Oslo"], as: Weather.self)
    print("\(weather.celsius) °C in \(weather.city)")
}

func follow(_ path: String, by agent: NetworkAgent) async throws {
    for try await event in agent.events(HTTPRequest(.get, path)) { print(event.event, event.data) }
}

func upload(_ file: String, by agent: NetworkAgent) async throws(RequestError) {
    struct SendPhoto: Request {
        let file: String
        var path: String { "/photos" }
        var method: HTTPMethod { .post }
        var body: RequestBody? {
            var form = Multipart()
            form.append("photo", file: file, contentType: "image/jpeg")
            return .multipart(form)
        }
    }
    try await agent.send(SendPhoto(file: file)) { progress in print(progress.fraction ?? 0) }
}

func size(of path: String, by agent: NetworkAgent) async throws(RequestError) -> Int {
    struct Export: Request { let path: String }
    var size = 0
    for try await piece in try await agent.stream(Export(path: path)).body { size += piece.count }
    return size
}

func greeting(in cities: [String], by agent: NetworkAgent) async throws(RequestError) -> String {
    struct Nearest: Request {
        typealias Value = String
        var path: String { "/nearest" }
    }
    return try await agent.send(
        ChainRequest(Nearest())
            .then { city in BatchRequest(Forecast(city: city), BatchRequest(cities.map(Forecast.init), atMost: 4)) }
            .map { here, there in "\(here.celsius) °C, elsewhere up to \(there.map(\.celsius).max() ?? 0) °C" })
}

/// A failure ends a batch unless all results are collected. Then each request has its own result.
func celsius(in cities: [String], by agent: NetworkAgent) async throws(RequestError) -> [Double?] {
    let results = try await agent.send(batch: cities.map(Forecast.init), .collectAll, atMost: 8)
    return results.map { try? $0.get().celsius }
}

func fetchImage(_ sha256: String, by agent: NetworkAgent, to folder: String) async throws(RequestError) -> String {
    struct DiskImage: Request { var path: String { "/images/disk.img" } }
    let options = DownloadOptions(sha256: sha256, segments: 4)  // else contentMismatch(.sha256)
    let file = try await agent.download(DiskImage(), to: .directory(folder), options: options) { progress in
        print(progress.fraction ?? 0, progress.remaining ?? .zero)
    }
    return file.path
}

struct Scores: Request {
    typealias Value = [String: Int]
    static let schema: JSONSchema = .dictionary(of: .integer(in: 0...100))
    var path: String { "/scores" }
    var jsonSchema: JSONSchema? { Self.schema }  // else: $.kim: expected integer in 0...100, found string
}

struct Exchange: Request {
    var path: String { "/rates" }
    var cachePolicy: CachePolicy { .timeToLive(.seconds(600), version: 1) }
    var cacheMode: CacheMode { .cacheElseNetwork(staleIfError: .seconds(86_400)) }
}

func careful() -> NetworkConfiguration {
    var configuration = NetworkConfiguration(baseURL: "https://api.example.com/v1")
    configuration.redirectPolicy = .follow(upTo: 3)
    configuration.retryPolicy = .exponential(maxAttempts: 3)
    configuration.addressPolicy = .publicOnly
    configuration.tls.minimumVersion = .v13
    configuration.tls.authorityFile = "/etc/ssl/ours.pem"  // in place of the system's
    configuration.logSink = PrintLogSink()
    return configuration
}

struct Timings: RequestObserver {  // for an agent, or for one request
    func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        print(run.url, metrics.connect ?? .zero, metrics.tls ?? .zero, metrics.firstByte ?? .zero, metrics.total)
    }
}

func judge(_ url: String, by agent: NetworkAgent) async -> String {
    struct Page: Request { let path: String }
    do throws(RequestError) {
        return "status \(try await agent.send(Page(path: url)).status)"
    } catch {
        switch error.code {
        case .tls(.untrusted): return "no trusted authority has signed the certificate"
        case .tls(.expired): return "the certificate has expired or is not yet valid"
        case .timeout(.deadline): return "the deadline has passed"
        default: return "\(error)"  // one line, without secrets
        }
    }
}

@Suite struct ReadmeTests {
    @Test func exampleDoesWhatItSays() async throws {
        let server = try LoopbackServer()
        server.handle("GET", "/weather") { request in
            request.query == "city=Oslo"
                ? LoopbackResponse(json: #"{"city":"Oslo","celsius":4.5}"#) : LoopbackResponse(status: 404)
        }
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        #expect(try await forecast(for: "Oslo", by: agent) == "4.5 °C in Oslo")
        #expect(try await forecast(for: "Nowhere", by: agent) == "unknown city")
        #expect(try await celsius(in: ["Oslo", "Nowhere"], by: agent) == [4.5, nil])
        try await printForecast(from: server.baseURL)
        #expect(server.requests.last?.query == "city=Oslo")
        await agent.shutdown()
        server.stop()
    }

    @Test func theOtherExamplesDoWhatTheySay() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        #expect(try await size(of: "/bytes/5000", by: agent) == 5000)
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("ferry-\(UUID().uuidString).jpg").path
        try Data("photo".utf8).write(to: URL(fileURLWithPath: file))
        defer { try? FileManager.default.removeItem(atPath: file) }
        server.handle("POST", "/photos") { _ in LoopbackResponse(status: 201) }
        try await upload(file, by: agent)
        #expect(server.requests.last?.text.contains("filename=") == true)
        server.handle("GET", "/nearest") { _ in LoopbackResponse(body: Array("Oslo".utf8)) }
        server.handle("GET", "/weather") { _ in LoopbackResponse(json: #"{"city":"Oslo","celsius":4.5}"#) }
        #expect(try await greeting(in: ["Rome", "Bern"], by: agent) == "4.5 °C, elsewhere up to 4.5 °C")
        server.handle("GET", "/images/disk.img") { _ in LoopbackResponse(body: LoopbackServer.pattern(0..<3000)) }
        // Of those bytes.
        let digest = "1baac85c824390572df91984d74dc512dd1ea76b6c61abec04cb5d20fee92cc1"
        let image = try await fetchImage(digest, by: agent, to: FileManager.default.temporaryDirectory.path)
        #expect(FileManager.default.contents(atPath: image)?.count == 3000)
        try FileManager.default.removeItem(atPath: image)
        #expect(careful().addressPolicy == .publicOnly)
        #expect(await judge("/hello", by: agent) == "status 200")
        await agent.shutdown()
        server.stop()
    }

    @Test(arguments: [
        (ServerCertificate.Kind.expired, "the certificate has expired or is not yet valid"),
        (.untrusted, "no trusted authority has signed the certificate"),
    ]) func trustIsJudged(kind: ServerCertificate.Kind, verdict: String) async throws {
        var options = LoopbackServer.Options()
        let certificate = try ServerCertificate(kind)
        options.certificate = certificate
        try await withLoopbackServer(options) { server in
            var configuration = NetworkConfiguration(baseURL: server.baseURL)
            configuration.tls.authorityFile = certificate.authorityFile
            configuration.observers = [Timings()]
            await withNetworkAgent(configuration: configuration) { agent in
                #expect(await judge("/hello", by: agent) == verdict)
            }
        }
    }

    /// Each of its examples stands above, so that it compiles.
    @Test func readmeShowsNothingElse() throws {
        let source = try String(contentsOfFile: #filePath, encoding: .utf8)
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let readme = try String(contentsOfFile: "/\(root)/README.md", encoding: .utf8)
        let examples = readme.components(separatedBy: "```swift\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
        #expect(examples.count >= 11)
        // Without the indentation of the function that an example stands in here.
        let code = source.filter { !$0.isWhitespace }
        for example in examples {
            let text = example.replacing("import Ferry\n\n", with: "").filter { !$0.isWhitespace }
            #expect(code.contains(text), "\(example)")
        }
    }

    @Test func readmeShowsExactlyThisExample() throws {
        let source = try String(contentsOfFile: #filePath, encoding: .utf8)
        let begin = try #require(source.firstRange(of: "// README: begin\n"))
        let end = try #require(source.firstRange(of: "// README: end\n"))
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let readme = try String(contentsOfFile: "/\(root)/README.md", encoding: .utf8)
        #expect(readme.contains("```swift\nimport Ferry\n\n" + source[begin.upperBound..<end.lowerBound] + "```\n"))
    }
}
