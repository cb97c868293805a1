internal import Ferry

extension SoakKind {
    static let policies: [SoakKind] = [
        SoakKind(name: "redirects") { client in
            do {
                let reply = try await client.agent.send(HTTPRequest.soak("/redirect/3"))
                return reply.response.redirects.count == 3 ? nil : "\(reply.response.redirects.count) redirects"
            } catch {
                return "\(error)"
            }
        },
        SoakKind(name: "retries") { client in
            var request = HTTPRequest.soak("/status/503?Retry-After=0")
            request.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1))
            return await client.expect(request) { error in
                error.code == .invalidStatusCode(503) && error.attempts >= 1
            }
        },
        SoakKind(name: "a status that is not accepted") { client in
            await client.expect(HTTPRequest.soak("/status/404")) { $0.code == .invalidStatusCode(404) }
        },
    ]

    static let faults: [SoakKind] = [
        fault("cut") { if case .incompleteBody = $0 { true } else { false } },
        fault("reset") { $0 == .connectionReset },
        fault("chunk") { if case .malformedResponse = $0 { true } else { false } },
        fault("length") { if case .malformedResponse = $0 { true } else { false } },
        fault("header") { if case .malformedResponse = $0 { true } else { false } },
        fault("gone") { $0 == .connectionClosed },
        SoakKind(name: "fault: excess") { client in
            do {
                let text = try await client.agent.send(HTTPRequest.soak("/fault/excess")).response.text
                return text == "good" ? nil : "the answer was \(text)"
            } catch {
                return "\(error)"
            }
        },
        SoakKind(name: "fault: silent") { client in
            var request = HTTPRequest.soak("/fault/silent")
            request.timeouts = Timeouts(idle: .milliseconds(50))
            return await client.expect(request) { if case .timeout = $0.code { true } else { false } }
        },
        SoakKind(name: "nobody listens") { client in
            await client.expect(HTTPRequest.soak("http://127.0.0.1:1/")) {
                if case .connect = $0.code { true } else { false }
            }
        },
        SoakKind(name: "no URL") { client in
            await client.expect(HTTPRequest.soak("http://h/\u{1}")) { $0.code == .invalidURL }
        },
    ]

    /// Ended at any moment: the one outcome is the result or `cancelled`.
    static let cancels: [SoakKind] = [
        SoakKind(name: "cancelled task") { client in
            let count = Int.random(in: 0...SoakBody.largest)
            let task = Task { try await client.agent.send(HTTPRequest.soak("/bytes/\(count)")).response }
            for _ in 0..<Int.random(in: 0...50) { await Task.yield() }
            task.cancel()
            switch await task.result {
            case .success(let response): return SoakBody.fault(response, count)
            case .failure(let error as RequestError): return error.code == .cancelled ? nil : "\(error)"
            case .failure(let error): return "\(error)"
            }
        },
        SoakKind(name: "cancelled run") { client in
            let count = Int.random(in: 0...2000)
            return await withCheckedContinuation { continuation in
                let task = client.agent.start(HTTPRequest.soak("/delay/\(Int.random(in: 0...20))")) { result in
                    switch result {
                    case .failure(.cancelled), .success: continuation.resume(returning: nil)
                    case .failure(let error): continuation.resume(returning: "\(error)")
                    }
                }
                if count % 2 == 0 { task.cancel() }
            }
        },
    ]

    private static func fault(_ name: String, _ isRight: @escaping @Sendable (RequestError.Code) -> Bool) -> SoakKind {
        SoakKind(name: "fault: \(name)") { client in
            await client.expect(HTTPRequest.soak("/fault/\(name)")) { isRight($0.code) }
        }
    }
}

extension SoakClient {
    fileprivate func expect(_ request: HTTPRequest<Response>, _ isRight: (RequestError) -> Bool) async -> String? {
        do throws(RequestError) {
            let reply = try await agent.send(request)
            return "answered with \(reply.response.status)"
        } catch {
            return isRight(error) ? nil : "\(error)"
        }
    }
}
