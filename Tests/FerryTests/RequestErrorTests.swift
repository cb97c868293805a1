import FerryTesting
import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct RequestErrorTests {
    private typealias Code = RequestError.Code

    private struct Problem: Decodable {
        var title: String
    }

    @Test func theBodyOfARejectedResponseIsDecoded() async throws {
        let stub = StubTransport { request in
            request.url.hasSuffix("/long")
                ? .response(status: 500, body: String(repeating: "é", count: 50_000))
                : .response(
                    status: 422, headers: ["Content-Type": "application/problem+json"], body: #"{"title": "no"}"#)
        }
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let error = await fault { () throws(RequestError) in _ = try await agent.delete("/x", as: Problem.self) }
        let response = try #require(error?.response)
        #expect(try response.decode(Problem.self).title == "no" && !response.isTruncated)
        #expect(response.text == #"{"title": "no"}"#)
        let long = await fault { () throws(RequestError) in _ = try await agent.get("/long") }
        #expect(long?.response?.body.count == 65_536 && long?.response?.isTruncated == true)
        #expect(throws: DecodingError.self) { try long?.response?.decode(Problem.self) }
        await agent.shutdown()
    }

    /// By the error of a stub, too.
    @Test func whatMayHaveBeenProcessedIsNotRetried() async throws {
        for (answer, phase, attempts) in [
            (StubTransport.Response.failure(.connect(.refused)), RequestPhase.connect, 2),
            (.failure(.dns(.temporary)), .dns, 2), (.failure(.connectionReset), .waitingHead, 1),
            (.failure(.connectionReset, mayHaveBeenProcessed: false), .waitingHead, 2),
            (.failure(.incompleteBody), .body, 1), (.failure(.http2Stream(.refused)), .waitingHead, 2),
        ] {
            let stub = StubTransport(always: answer)
            var configuration = NetworkConfiguration.test
            configuration.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .zero)
            let agent = NetworkAgent(configuration: configuration, stub: stub)
            let error = await fault { () throws(RequestError) in _ = try await agent.post("/x") }
            #expect(error?.phase == phase && stub.requests.count == attempts, "\(String(describing: error))")
            #expect(error?.mayHaveBeenProcessed == (attempts == 1))
            await agent.shutdown()
        }
    }

    @Test func everyCodeOfTheCoreHasItsWord() {
        let table: [(TransferFailure.Code, TransferFailure.Detail, RequestError.Code)] = [
            (.memory, .none, .internalError), (.internalError, .none, .internalError),
            (.invalidURL, .none, .invalidURL), (.unsupportedScheme, .none, .unsupportedScheme),
            (.invalidRequest, .none, .invalidRequest), (.invalidRequest, .method, .invalidRequest(.method)),
            (.invalidRequest, .headerName, .invalidRequest(.headerName)),
            (.invalidRequest, .headerValue, .invalidRequest(.headerValue)),
            (.invalidRequest, .framing, .invalidRequest(.framing)), (.dns, .dnsNotFound, .dns(.notFound)),
            (.dns, .dnsTemporary, .dns(.temporary)), (.dns, .dnsFailed, .dns(.failed)),
            (.connect, .connectRefused, .connect(.refused)), (.connect, .connectUnreachable, .connect(.unreachable)),
            (.connect, .connectFailed, .connect(.failed)), (.tls, .tlsExpired, .tls(.expired)),
            (.tls, .tlsHostname, .tls(.hostname)), (.tls, .tlsUntrusted, .tls(.untrusted)),
            (.tls, .tlsPinMismatch, .tls(.pinMismatch)), (.tls, .tlsHandshake, .tls(.handshake)),
            (.tls, .tlsConfiguration, .tls(.configuration)), (.timeout, .timeoutQueue, .timeout(.queue)),
            (.timeout, .timeoutDNS, .timeout(.dns)), (.timeout, .timeoutConnect, .timeout(.connect)),
            (.timeout, .timeoutTLS, .timeout(.tls)), (.timeout, .timeoutWrite, .timeout(.write)),
            (.timeout, .timeoutResponseHead, .timeout(.responseHead)), (.timeout, .timeoutRead, .timeout(.read)),
            (.timeout, .timeoutLowSpeed, .timeout(.lowSpeed)), (.timeout, .timeoutTotal, .timeout(.total)),
            (.timeout, .timeoutDeadline, .timeout(.deadline)), (.connectionReset, .none, .connectionReset),
            (.connectionClosed, .none, .connectionClosed), (.incompleteBody, .none, .incompleteBody),
            (.malformedResponse, .statusLine, .malformedResponse(.statusLine)),
            (.malformedResponse, .header, .malformedResponse(.header)),
            (.malformedResponse, .length, .malformedResponse(.length)),
            (.malformedResponse, .conflictingLength, .malformedResponse(.conflictingLength)),
            (.malformedResponse, .transferEncoding, .malformedResponse(.transferEncoding)),
            (.malformedResponse, .chunk, .malformedResponse(.chunk)),
            (.malformedResponse, .trailer, .malformedResponse(.trailer)),
            (.malformedResponse, .upgrade, .malformedResponse(.upgrade)),
            (.malformedResponse, .none, .malformedResponse), (.headTooLarge, .headBytes, .headersTooLarge(.bytes)),
            (.headTooLarge, .informational, .headersTooLarge(.informational)),
            (.bodyTooLarge, .none, .responseTooLarge),
            (.contentDecoding, .decodingTruncated, .contentDecoding(.truncated)),
            (.contentDecoding, .decodingCorrupt, .contentDecoding(.corrupt)),
            (.http2Stream, .http2Refused, .http2Stream(.refused)), (.http2Stream, .http2Cancel, .http2Stream(.cancel)),
            (.http2Stream, .http2Internal, .http2Stream(.internal)), (.http2Stream, .http2Other, .http2Stream(.other)),
            (.http2Stream, .http2EnhanceYourCalm, .http2Stream(.enhanceYourCalm)),
            (.file, .none, .fileIO), (.uploadSource, .none, .uploadSource), (.cancelled, .none, .cancelled),
            (.shutdown, .none, .shutdown), (.proxy, .proxyAuthRequired, .proxy(.authRequired)),
            (.proxy, .proxyRefused, .proxy(.refused)), (.proxy, .proxyUnreachable, .proxy(.unreachable)),
            (.proxy, .proxyHandshake, .proxy(.handshake)), (.addressForbidden, .none, .addressForbidden),
            (.bodyNotReplayable, .none, .bodyNotReplayable),
        ]
        for (code, detail, word) in table { #expect(RequestError.Code(TransferFailure(code, detail)) == word) }
        for raw in Int32(-24)...(-1) { #expect(table.contains { $0.0.rawValue == raw }, "code \(raw) has no row") }
    }

    @Test func everyPhaseHasItsWord() {
        let words = (Int32(0)...8).compactMap { TransferPhase(rawValue: $0).map { RequestPhase($0).rawValue } }
        #expect(
            words == ["queued", "dns", "connect", "tls", "send", "waitingHead", "head", "body", "processing"])
    }

    @Test func codesMatchWithAndWithoutTheirCause() {
        let error = RequestError(.timeout(.connect))
        #expect(Code.timeout ~= error)
        #expect(Code.timeout(.connect) ~= error)
        #expect(!(Code.timeout(.idleForTests) ~= error))
        #expect(!(Code.connect ~= error))
        #expect(Code.timeout(.connect) != Code.timeout)
        func name() -> String {
            do throws(RequestError) { throw error } catch .timeout(.read) { return "read" } catch .timeout {
                return "timeout"
            } catch { return "other" }
        }
        #expect(name() == "timeout")
        switch Result<Int, RequestError>.failure(error) {
        case .failure(.timeout(.connect)): break
        default: Issue.record("a result does not match")
        }
    }

    @Test func aRangeOfStatusesMatchesEachOfThemAndNothingElse() {
        let error = RequestError(.invalidStatusCode(503))
        #expect(Code.invalidStatusCode(500...599) ~= error)
        #expect(!(Code.invalidStatusCode(400...499) ~= error))
        #expect(!(Code.invalidStatusCode(500...599) ~= RequestError(.invalidStatusCode)))
        #expect(!(Code.invalidStatusCode(500...599) ~= RequestError(.http2Stream)))
        #expect(Code.invalidStatusCode(500...599) != error.code)
        #expect(Code.invalidStatusCode(500...599).description == "invalidStatusCode(500...599)")
    }

    @Test func anErrorOfUnknownTypeMatchesInASwitchOverTheCast() {
        func say(_ body: () throws -> Void) -> String {
            do { try body() } catch let error as RequestError {
                switch error {
                case .invalidStatusCode(400...499): return "refused"
                case .invalidStatusCode: return "trouble"
                default: return "\(error.code)"
                }
            } catch { return "another" }
            return "nothing"
        }
        #expect(say { throw RequestError(.invalidStatusCode(404)) } == "refused")
        #expect(say { throw RequestError(.invalidStatusCode(500)) } == "trouble")
        #expect(say { throw RequestError(.cancelled) } == "cancelled")
    }

    @Test func codesHaveABareName() {
        #expect(Code.incompleteBody(expected: 100, got: 3).name == "incompleteBody")
        #expect(Code.incompleteBody(expected: 100, got: 3).description == "incompleteBody(expected: 100, got: 3)")
        #expect(Code.incompleteBody(expected: nil, got: 3).detail == "expected: unknown, got: 3")
        #expect(Code.cancelled.description == "cancelled")
        #expect(Code.invalidStatusCode(404).description == "invalidStatusCode(404)")
    }

    @Test func anErrorIsOneWord() { #expect(MemoryLayout<RequestError>.size == 8) }
}

extension RequestError.Code.TimeoutPart {
    fileprivate static var idleForTests: Self { .read }
}
