internal import Ferry
internal import Foundation

extension SoakKind {
    /// Batches, chains, downloads, and responses from the cache.
    static let groups: [SoakKind] = [
        SoakKind(name: "cached") { client in
            // Few enough that most are hits; their contents are checked like any other body.
            let count = 1000 + Int.random(in: 0..<50)
            var request = HTTPRequest.soak("/bytes/\(count)")
            request.cachePolicy = .timeToLive(.milliseconds(500))
            do {
                return SoakBody.fault(try await client.agent.send(request).response, count)
            } catch {
                return "\(error)"
            }
        },
        SoakKind(name: "batch") { client in
            let counts = (0..<8).map { _ in Int.random(in: 0...2000) }
            do {
                let replies = try await client.agent.send(
                    batch: counts.map { HTTPRequest.soak("/bytes/\($0)") }, atMost: 3)
                return zip(replies, counts).lazy.compactMap { SoakBody.fault($0, $1) }.first
            } catch {
                return "\(error)"
            }
        },
        SoakKind(name: "batch that fails") { client in
            do throws(RequestError) {
                let requests = [
                    HTTPRequest.soak("/delay/50"), HTTPRequest.soak("/fault/cut"), HTTPRequest.soak("/delay/50"),
                ]
                _ = try await client.agent.send(batch: requests)
                return "a body that was cut is a success"
            } catch {
                return error.failedIndex == 1 ? nil : "\(error)"
            }
        },
        SoakKind(name: "chain") { client in
            do {
                let last = try await client.agent.send(
                    ChainRequest(HTTPRequest.soak("/bytes/10"))
                        .then { HTTPRequest.soak("/bytes/\($0.bodyLength * 2)") }
                        .then { HTTPRequest.soak("/bytes/\($0.bodyLength * 2)") })
                return SoakBody.fault(last, 40)
            } catch {
                return "\(error)"
            }
        },
        SoakKind(name: "download") { client in
            let count = Int.random(in: 0...SoakBody.largest)
            let path = client.folder + "/" + UUID().uuidString
            defer { try? FileManager.default.removeItem(atPath: path) }
            do {
                _ = try await client.agent.download(HTTPRequest.soak("/bytes/\(count)"), to: .file(path))
                let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
                return bytes.elementsEqual(SoakBody.pattern.prefix(count)) ? nil : "other bytes in the file"
            } catch {
                return "\(error)"
            }
        },
    ]
}
