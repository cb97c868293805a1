import FaultTable
import Ferry
import Foundation

/// What becomes of a body, and how its run is started.
enum HTTP2Form: String, CaseIterable, Sendable {
    case buffered, closure, streamed, download

    /// As the manual's table calls it.
    private var name: String { self == .closure ? Self.buffered.rawValue : rawValue }

    /// The error that a run ends with in this form, noted for the table; `nil` when it is answered. A download leaves
    /// nothing under its final name.
    func failure<R: Request>(of request: R, by agent: NetworkAgent) async throws -> RequestError?
    where R.Value == Response {
        let folder = NSTemporaryDirectory() + "ferry-http2-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let began = ContinuousClock.now
        let error = await run(request, by: agent, into: folder + "/file")
        let summary = error.map { "`\($0.code)`" } ?? FaultNote.answered
        FaultNote.add(form: name, outcome: summary, took: .now - began)
        let isThere = FileManager.default.fileExists(atPath: folder + "/file")
        return isThere && error != nil ? RequestError(.fileIO, message: "a part of a file stands there") : error
    }

    private func run<R: Request>(_ request: R, by agent: NetworkAgent, into file: String) async -> RequestError?
    where R.Value == Response {
        switch self {
        case .buffered:
            return await FerryIntegrationTests.failure { () throws(RequestError) in try await agent.send(request) }
        case .closure:
            return await withCheckedContinuation { continuation in
                agent.start(request) { result in
                    if case .failure(let error) = result {
                        continuation.resume(returning: error)
                    } else {
                        continuation.resume(returning: nil)
                    }
                }
            }
        case .streamed:
            return await FerryIntegrationTests.failure { () throws(RequestError) in
                for try await _ in try await agent.stream(request).body {}
            }
        case .download:
            return await FerryIntegrationTests.failure { () throws(RequestError) in
                try await agent.download(request, to: .file(file))
            }
        }
    }
}
