internal import Ferry
internal import Foundation

/// One kind of run: its action, and the check of its outcome. `nil` if all was right, otherwise what was wrong.
struct SoakKind: Sendable {
    var name: String
    var run: @Sendable (SoakClient) async -> String?
}

/// What the kinds use.
struct SoakClient: Sendable {
    let agent: NetworkAgent
    let base: String
    /// A folder for files.
    let folder: String
}

extension HTTPRequest where Value == Response {
    /// A GET of any bytes, past the cache.
    static func soak(_ path: String) -> HTTPRequest {
        var request = HTTPRequest(.get, path)
        request.cachePolicy = .none
        request.responseFormat = .data
        return request
    }
}

/// The bytes that `/bytes/N` and similar routes send.
enum SoakBody {
    static let largest = 300_000
    static let pattern: [UInt8] = {
        let period = Array("abcdefghijklmnopqrstuvwxyz0123456789\n".utf8)
        return (0..<largest).map { period[$0 % period.count] }
    }()

    /// What is wrong with a body that should be the first `count` bytes; nil if it is right.
    static func fault(_ response: Response, _ count: Int) -> String? {
        response.withBytes { bytes in
            if bytes.count != count { return "\(bytes.count) bytes instead of \(count)" }
            return pattern.withUnsafeBytes { $0.prefix(count).elementsEqual(bytes) } ? nil : "other bytes"
        }
    }
}

extension SoakKind {
    static let all: [SoakKind] = bodies + uploads + policies + groups + faults + cancels

    private static let bodies: [SoakKind] = [
        .get("bytes") { count in "/bytes/\(count)" },
        .get("chunked") { count in "/chunked/\(count)?chunk=1000" },
        .get("gzip") { count in "/gzip/\(count)" },
        .get("until close") { count in "/until-close/\(count)" },
        SoakKind(name: "streamed") { client in
            let count = Int.random(in: 0...SoakBody.largest)
            do {
                var seen = 0
                for try await piece in try await client.agent.stream(HTTPRequest.soak("/bytes/\(count)")).body {
                    if !SoakBody.pattern[seen...].prefix(piece.count).elementsEqual(piece) { return "other bytes" }
                    seen += piece.count
                }
                return seen == count ? nil : "\(seen) bytes instead of \(count)"
            } catch {
                return "\(error)"
            }
        },
        SoakKind(name: "streamed, half read") { client in
            do {
                for try await _ in try await client.agent.stream(HTTPRequest.soak("/bytes/300000")).body { break }
                return nil
            } catch {
                return "\(error)"
            }
        },
        SoakKind(name: "closure") { client in
            let count = Int.random(in: 0...2000)
            return await withCheckedContinuation { continuation in
                client.agent.start(HTTPRequest.soak("/bytes/\(count)")) { result in
                    // A second call would trap here.
                    switch result {
                    case .success(let reply): continuation.resume(returning: SoakBody.fault(reply.response, count))
                    case .failure(let error): continuation.resume(returning: "\(error)")
                    }
                }
            }
        },
    ]

    private static func get(_ name: String, _ path: @escaping @Sendable (Int) -> String) -> SoakKind {
        SoakKind(name: name) { client in
            let count = Int.random(in: 0...(Bool.random() ? 2000 : SoakBody.largest))
            var request = HTTPRequest.soak(path(count))
            request.priority = [.low, .normal, .high].randomElement() ?? .normal
            do {
                return SoakBody.fault(try await client.agent.send(request).response, count)
            } catch {
                return "\(error)"
            }
        }
    }

    private static let uploads: [SoakKind] = [
        SoakKind(name: "echo of bytes") { client in
            let count = Int.random(in: 0...100_000)
            return await client.echo(.data(Data(SoakBody.pattern.prefix(count))), count)
        },
        SoakKind(name: "echo of a stream") { client in
            let count = Int.random(in: 1...100_000)
            let body = RequestBody.stream {
                AsyncStream { continuation in
                    continuation.yield(Data(SoakBody.pattern.prefix(count)))
                    continuation.finish()
                }
            }
            return await client.echo(body, count)
        },
        SoakKind(name: "echo of a file") { client in
            await client.echo(.file(client.folder + "/pattern"), SoakBody.largest)
        },
        SoakKind(name: "form") { client in
            var request = HTTPRequest.soak("/echo")
            request.method = .post
            request.arguments = ["a": "1", "b": ["x", "y"]]
            do {
                let text = try await client.agent.send(request).response.text
                return text.contains("a=1&b%5B%5D=x&b%5B%5D=y") ? nil : "the form was \(text)"
            } catch {
                return "\(error)"
            }
        },
    ]
}

extension SoakClient {
    fileprivate func echo(_ body: RequestBody, _ count: Int) async -> String? {
        var request = HTTPRequest.soak("/echo/body")
        request.method = .post
        request.body = body
        do {
            return SoakBody.fault(try await agent.send(request).response, count)
        } catch {
            return "\(error)"
        }
    }
}
