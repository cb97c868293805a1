import Ferry
import FerryTesting
import Foundation
import Testing

// README: begin
struct Weather: Decodable, Sendable {
    let city: String
    let celsius: Double
}

struct Forecast: Request {  // say only what differs
    typealias Value = Weather  // made from the JSON of the answer
    let city: String
    var path: String { "/weather" }
    var arguments: Arguments { ["city": .string(city)] }
}

func forecast(for city: String, by agent: NetworkAgent) async throws(RequestError) -> String {
    do throws(RequestError) {
        let weather = try await agent.send(Forecast(city: city)).value
        return "\(weather.celsius) °C in \(weather.city)"
    } catch .invalidStatusCode(404) {
        return "no such place"  // all other errors go on to the caller
    }
}
// README: end

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

func fetchImage(by agent: NetworkAgent, to folder: String) async throws(RequestError) -> String {
    struct DiskImage: Request { var path: String { "/images/disk.img" } }
    let options = DownloadOptions(segments: 4)
    let file = try await agent.download(DiskImage(), to: .directory(folder), options: options) { progress in
        print(progress.fraction ?? 0, progress.remaining ?? .zero)
    }
    return file.path
}

struct Scores: Request {
    typealias Value = [String: Int]
    static let schema: JSONSchema = .dictionary(of: .integer(in: 0...100))
    var path: String { "/scores" }
    var jsonSchema: JSONSchema? { Self.schema }  // or schemaMismatch: $.kim: expected integer in 0...100, found string
}

struct Exchange: Request {
    var path: String { "/rates" }
    var cachePolicy: CachePolicy { .timeToLive(.seconds(600), version: 1) }
    var cacheMode: CacheMode { .cacheElseNetwork(staleIfError: .seconds(86_400)) }
}

func careful() -> NetworkConfiguration {
    var configuration = NetworkConfiguration(baseURL: "https://api.example.com/v1")
    configuration.redirectPolicy = .follow(upTo: 3)
    configuration.retryPolicy = .exponential(attempts: 3)
    configuration.addressPolicy = .publicOnly
    configuration.tls.minimumVersion = .v13
    configuration.logSink = PrintLogSink()
    return configuration
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
        #expect(try await forecast(for: "Nowhere", by: agent) == "no such place")
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
        let image = try await fetchImage(by: agent, to: FileManager.default.temporaryDirectory.path)
        #expect(FileManager.default.contents(atPath: image)?.count == 3000)
        try FileManager.default.removeItem(atPath: image)
        #expect(careful().addressPolicy == .publicOnly)
        await agent.shutdown()
        server.stop()
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
