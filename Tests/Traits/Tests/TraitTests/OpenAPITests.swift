#if OpenAPI
import Ferry
import FerryOpenAPI
import FerryTesting
import Foundation
import HTTPTypes
import OpenAPIRuntime
import Testing

@Suite struct OpenAPITests {
    private func exchange<Value: Sendable>(
        _ method: HTTPTypes.HTTPRequest.Method, _ path: String, body: HTTPBody? = nil,
        _ handler: @escaping LoopbackServer.Handler,
        reading read: @escaping @Sendable (HTTPTypes.HTTPResponse, HTTPBody?) async throws -> Value
    ) async throws -> Value {
        try await withLoopbackServer { server in
            server.handle("/v1/things", handler)
            return try await withNetworkAgent { agent in
                let base = try #require(URL(string: server.baseURL + "/v1/"))
                let request = HTTPTypes.HTTPRequest(method: method, scheme: nil, authority: nil, path: path)
                let (head, body) = try await AgentTransport(agent).send(
                    request, body: body, baseURL: base, operationID: "things")
                return try await read(head, body)
            }
        }
    }

    @Test func anOperationIsSentAndItsResponseReturned() async throws {
        let body = HTTPBody(Array("{\"a\":1}".utf8))
        let (head, text) = try await exchange(.post, "/things?page=2", body: body) { request in
            let body = String(decoding: request.body, as: UTF8.self)
            return LoopbackResponse(status: 409, text: "\(request.method) \(request.target) \(body)")
        } reading: { head, body in
            (head, try await String(collecting: try #require(body), upTo: 1_000))
        }
        // The client decides about a status that is no success.
        #expect(head.status == .conflict)
        #expect(text == "POST /v1/things?page=2 {\"a\":1}")
    }

    @Test func bodiesStreamBothWays() async throws {
        let count = 300
        let piece = [UInt8](repeating: 7, count: 10_000)
        let (pieces, continuation) = AsyncStream<ArraySlice<UInt8>>.makeStream()
        for _ in 0..<count { continuation.yield(piece[...]) }
        continuation.finish()
        let body = HTTPBody(pieces, length: .unknown, iterationBehavior: .single)
        let (length, received, chunks) = try await exchange(.put, "/things", body: body) { request in
            LoopbackResponse(body: request.body + request.body)
        } reading: { _, body in
            let body = try #require(body)
            var (received, chunks) = (0, 0)
            for try await chunk in body {
                received += chunk.count
                chunks += 1
            }
            return (body.length, received, chunks)
        }
        #expect(length == .known(Int64(2 * count * piece.count)))
        #expect(received == 2 * count * piece.count)
        #expect(chunks > 1)
    }

    @Test func aHeadHasNoBody() async throws {
        let hasBody = try await exchange(.head, "/things") { _ in
            LoopbackResponse(text: "unseen")
        } reading: { _, body in
            body != nil
        }
        #expect(!hasBody)
    }

    @Test func aFailureIsTheRunsError() async throws {
        try await withNetworkAgent { agent in
            let base = try #require(URL(string: "http://127.0.0.1:1"))
            let request = HTTPTypes.HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/x")
            await #expect(throws: RequestError.self) {
                try await AgentTransport(agent).send(request, body: nil, baseURL: base, operationID: "x")
            }
        }
    }
}
#endif
