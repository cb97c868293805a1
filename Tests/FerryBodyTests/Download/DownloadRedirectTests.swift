import FerrySynchronization
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Downloads whose server redirects. More of the file is requested at the target, until that refuses it: then its URL
/// has expired, and the server gives another one.
@Suite(.timeLimit(.minutes(1))) struct DownloadRedirectTests {
    static let size = 3_000

    /// Redirects each request for `/f` to a URL at `store`, which has the file, and accepts each URL so many times; the
    /// first `scripted` responses come from scripts.
    private static func redirect(
        from server: LoopbackServer, to store: LoopbackServer, after scripted: Int, uses: Int = 1
    ) {
        let given = Mutex(0)
        server.handle("GET", "/f") { _ in
            let number = given.withLock { given in
                given += 1
                return given
            }
            return LoopbackResponse(status: 302, headers: ["Location": "\(store.baseURL)/signed?n=\(number)"])
        }
        let used = Mutex<[String: Int]>(scripted > 0 ? ["n=1": scripted] : [:])
        store.handle("GET", "/signed") { request in
            let isValid = used.withLock { used in
                used[request.query ?? "", default: 0] += 1
                return used[request.query ?? "", default: 0] <= uses
            }
            return isValid ? Self.part(request) : LoopbackResponse(status: 403, text: "expired")
        }
    }

    static func part(_ request: LoopbackRequest) -> LoopbackResponse {
        let ends = request.headers["Range"]?.dropFirst(6).split(separator: "-").compactMap { Int($0) } ?? []
        guard let first = ends.first else {
            return LoopbackResponse(headers: ["ETag": "\"v\""], body: LoopbackServer.pattern(0..<size))
        }
        let last = ends.count > 1 ? ends[1] : size - 1
        return LoopbackResponse(
            status: 206, headers: ["ETag": "\"v\"", "Content-Range": "bytes \(first)-\(last)/\(size)"],
            body: LoopbackServer.pattern(first..<last + 1))
    }

    /// The head of a response with the file from this byte on.
    static func head(from: Int = 0) -> String {
        let range = from > 0 ? "Content-Range: bytes \(from)-\(size - 1)/\(size)\r\n" : ""
        return "HTTP/1.1 \(from > 0 ? "206 OK" : "200 OK")\r\nETag: \"v\"\r\n\(range)"
            + "Content-Length: \(size - from)\r\n\r\n"
    }

    static func expectWhole(_ folder: borrowing Folder, _ sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(folder.bytes("f") == LoopbackServer.pattern(0..<size), sourceLocation: sourceLocation)
        #expect(folder.names == ["f"], sourceLocation: sourceLocation)
    }

    @Test("a retry that the target refuses begins at the URL of the request, with adapters, and counts redirects anew")
    func retries() async throws {
        let folder = try Folder()
        let store = try LoopbackServer()
        let signatures = Tally()
        try await withFlow {
            $0.retryPolicy = .quick
            $0.redirectPolicy = .follow(upTo: 1)
            $0.adapters = [
                Adapt { request, _ in
                    signatures.add()
                    request.headers["X-Signature"] = "\(signatures.value)"
                }
            ]
        } _: { server, agent in
            Self.redirect(from: server, to: store, after: 2)
            for (from, to) in [(0, 1_000), (1_000, 2_000)] {
                store.script(
                    path: "/signed", uses: 1,
                    [.send(Self.head(from: from)), .sendBytes(LoopbackServer.pattern(from..<to)), .close])
            }
            let file = try await agent.download(Get("/f"), to: .file(folder.file("f")))
            #expect(file.redirects.count == 2)
            Self.expectWhole(folder)
            #expect(store.requests.map(\.query) == ["n=1", "n=1", "n=1", "n=2"])
            let last = "bytes=2000-"
            #expect(store.ranges("/signed") == [nil, "bytes=1000-", last, last])
            #expect(store.requests.allSatisfy { $0.headers["X-Signature"] == nil })
            #expect(server.requests.map { $0.headers["X-Signature"] } == ["1", "2"])
        }
    }

    @Test("as long as the target serves its URL, the server is not asked again")
    func sameTarget() async throws {
        let folder = try Folder()
        let store = try LoopbackServer()
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            Self.redirect(from: server, to: store, after: 1, uses: 2)
            store.script(
                path: "/signed", uses: 1,
                [.send(Self.head()), .sendBytes(LoopbackServer.pattern(0..<1_000)), .close])
            let file = try await agent.download(Get("/f"), to: .file(folder.file("f")))
            #expect(file.redirects.count == 1 && server.requestCount == 1)
            Self.expectWhole(folder)
            #expect(store.requests.map(\.query) == ["n=1", "n=1"])
        }
    }

    @Test("a target that redirects an expired URL to a page does not replace the file", arguments: [302, 307])
    func page(status: Int) async throws {
        let folder = try Folder()
        let store = try LoopbackServer()
        try await withFlow {
            $0.retryPolicy = .quick
            $0.redirectPolicy = .follow(upTo: 1)
        } _: { server, agent in
            Self.redirect(from: server, to: store, after: 1)
            store.handle("GET", "/expired") { _ in LoopbackResponse(text: "expired") }
            store.script(
                path: "/signed", uses: 1,
                [.send(Self.head()), .sendBytes(LoopbackServer.pattern(0..<1_000)), .close])
            store.script(
                path: "/signed", uses: 1,
                [.send("HTTP/1.1 \(status) X\r\nLocation: /expired\r\nContent-Length: 0\r\n\r\n"), .serve])
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")))
            Self.expectWhole(folder)
            #expect(store.requests.map(\.query) == ["n=1", "n=1", "n=2"])
        }
    }

    @Test("after a pause the rest is requested at the URL of the request, if the target refuses it")
    func pause() async throws {
        let folder = try Folder()
        let store = try LoopbackServer()
        try await withFlow { server, agent in
            Self.redirect(from: server, to: store, after: 1)
            store.script(
                path: "/signed", uses: 1,
                [.send(Self.head()), .sendBytes(LoopbackServer.pattern(0..<1_000)), .wait("paused"), .reset])
            let started = StartedDownload()
            let task = agent.download(Get("/f"), to: .file(folder.file("f")), completion: started.take)
            #expect(await eventually { task.progress.received == 1_000 || started.calls > 0 })
            task.pause()
            store.signal("paused")
            #expect(await eventually { task.download.state.withLock { $0.waiting.count == 1 } || started.calls > 0 })
            task.resume()
            let file = try await started.file()
            #expect(file.redirects.count == 2)
            Self.expectWhole(folder)
            #expect(store.requests.map(\.query) == ["n=1", "n=1", "n=2"])
        }
    }

    @Test("each segment gets a URL that is valid, also if the worker has used one for another segment before")
    func segments() async throws {
        let folder = try Folder()
        let store = try LoopbackServer()
        try await withFlow { server, agent in
            Self.redirect(from: server, to: store, after: 0)
            var options = DownloadOptions(segments: 2)
            options.minimumSegmentSize = 1_000
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: options)
            Self.expectWhole(folder)
            #expect(server.requestCount == 3)
            #expect(Set(store.requests.compactMap(\.query)) == ["n=1", "n=2", "n=3"])
        }
    }

    @Test("a request that may change something is not repeated because the target of its redirect fails")
    func unsafeMethod() async throws {
        let folder = try Folder()
        let store = try LoopbackServer()
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            server.handle("POST", "/order") { _ in
                LoopbackResponse(status: 303, headers: ["Location": store.baseURL + "/f"])
            }
            store.handle("GET", "/f") { Self.part($0) }
            store.script(path: "/f", uses: 1, unwanted(503))
            _ = try await agent.download(HTTPRequest(.post, "/order"), to: .file(folder.file("f")))
            Self.expectWhole(folder)
            #expect(server.requestCount == 1 && store.requestCount == 2)
        }
    }
}
