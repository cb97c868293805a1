// Sends a hundred requests, eight at a time. Some fail, the others continue, and all results are collected.
//
//     swift run ManyAtOnce http://127.0.0.1:8080

import Ferry

struct Page: Request {
    typealias Value = [UInt8]
    let number: Int
    var path: String { number % 10 == 0 ? "/status/503" : "/bytes/\(number)" }
}

let base = CommandLine.arguments.dropFirst().first ?? "http://127.0.0.1:8080"

try await withNetworkAgent(configuration: NetworkConfiguration(baseURL: base)) { agent in
    let results = try await agent.send(batch: (1...100).map(Page.init), .collectAll, atMost: 8)

    var bytes = 0
    var failures: [(page: Int, error: RequestError)] = []
    for (number, result) in zip(1..., results) {
        switch result {
        case .success(let body): bytes += body.count
        case .failure(let error): failures.append((number, error))
        }
    }
    print("\(results.count - failures.count) pages, \(bytes) bytes")
    for (page, error) in failures { print("page \(page): \(error.code)") }
}
