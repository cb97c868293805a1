import Ferry
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// The code of the article "Arguments and bodies".
@Suite struct ArgumentsAndBodiesExamples {
    struct Order: Encodable, Sendable {
        let item: String
        let count: Int
    }

    struct PlaceOrder: Request {
        let order: Order
        var path: String { "/orders" }
        var method: HTTPMethod { .post }
        var body: RequestBody? { .json(order) }
        var idempotencyKey: IdempotencyKey? { .automatic }  // one for each run, the same in its retries
    }

    struct PlaceSnakeOrder: Request {
        let order: Order
        var path: String { "/orders" }
        var method: HTTPMethod { .post }
        var body: RequestBody? {
            var encoder = FerryJSONEncoder()
            encoder.keyEncodingStrategy = .convertToSnakeCase
            encoder.dateEncodingStrategy = .iso8601
            return .json(order, encoder: encoder)
        }
    }

    final class RowCounter: Sendable {
        private let rows = Atomic(0)

        var count: Int { rows.load(ordering: .relaxed) }

        func counting(_ lines: [String]) -> AsyncStream<[UInt8]> {
            rows.store(0, ordering: .relaxed)
            return AsyncStream { continuation in
                for line in lines {
                    continuation.yield(Array((line + "\n").utf8))
                    rows.add(1, ordering: .relaxed)
                }
                continuation.finish()
            }
        }
    }

    struct SendRows: Request {
        let rows: [String]
        let counter = RowCounter()
        var path: String { "/rows" }
        var method: HTTPMethod { .put }
        var body: RequestBody? {
            .stream { [rows, counter] in counter.counting(rows) }
                .withTrailers(["X-Row-Count"]) { [counter] in ["X-Row-Count": String(counter.count)] }
        }
    }

    struct SendPhoto: Request {
        let file: String
        var path: String { "/photos" }
        var method: HTTPMethod { .post }
        var arguments: Arguments { ["album": "Holidays"] }  // the first part
        var body: RequestBody? {
            var form = Multipart()
            form.append("photo", file: file, contentType: "image/jpeg")
            return .multipart(form)
        }
    }

    struct SendLog: Request {
        let lines: [String]
        var path: String { "/log" }
        var method: HTTPMethod { .put }
        var body: RequestBody? {
            .stream(contentType: "text/plain") { [lines] in
                AsyncStream<[UInt8]> { continuation in
                    for line in lines { continuation.yield(Array((line + "\n").utf8)) }
                    continuation.finish()
                }
            }
        }
    }

    struct UploadLog: Request {
        let file: String
        var path: String { "/logs" }
        var method: HTTPMethod { .post }
        var body: RequestBody? { .file(file, contentType: "text/plain").compressed(.zstd) }
    }

    private func send(_ file: String, by agent: NetworkAgent) async throws {
        try await agent.send(SendPhoto(file: file)) { progress in
            print(progress.bytesSent, progress.fraction ?? 0)
        }
    }

    private func makeArguments(_ id: Int) -> Arguments {
        let arguments: Arguments = [
            "id": .integer(id), "exact": true, "tags": ["a", "b"], "range": ["from": 1, "to": 2.5], "flag": nil,
        ]
        return arguments
    }

    @Test func argumentsAreEncodedAsTheArticleSays() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: .test, stub: stub)
        var request = Full()
        request.arguments = makeArguments(7)
        try await agent.send(request)
        #expect(
            stub.requests.last?.url == "http://h/x?exact=true&flag&id=7&range%5Bfrom%5D=1&range%5Bto%5D=2.5"
                + "&tags%5B%5D=a&tags%5B%5D=b")
        await agent.shutdown()
    }

    @Test func bodiesArrive() async throws {
        try await withLoopbackServer { server in
            server.handle("/*") { _ in LoopbackResponse(status: 204) }
            let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
            try await agent.send(PlaceOrder(order: Order(item: "a", count: 2)))
            #expect(server.requests.last?.text.contains(#""item":"a""#) == true)
            #expect(server.requests.last?.headers["Content-Type"] == "application/json")
            try await agent.send(SendLog(lines: ["one", "two"]))
            #expect(server.requests.last?.text == "one\ntwo\n")
            let file = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UUID().uuidString).jpg").path
            try Data("photo".utf8).write(to: URL(filePath: file))
            defer { try? FileManager.default.removeItem(atPath: file) }
            try await send(file, by: agent)
            #expect(server.requests.last?.text.contains("name=\"album\"\r\n\r\nHolidays\r\n") == true)
            await agent.shutdown(grace: .zero)
        }
    }
}
