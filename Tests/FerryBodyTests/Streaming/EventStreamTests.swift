import Ferry
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

/// A stream of server-sent events over as many connections as needed.
@Suite(.timeLimit(.minutes(1))) struct EventStreamTests {
    private static let quick = EventReconnection(delay: .milliseconds(1), maxDelay: .milliseconds(20))

    private static func head(_ status: String = "200 OK", _ fields: String = "") -> String {
        "HTTP/1.1 \(status)\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\(fields)\r\n"
    }

    private func all(_ stream: EventStream) async throws -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for try await event in stream { events.append(event) }
        return events
    }

    /// The code of the error at the end.
    private func failure(of stream: EventStream) async -> RequestError.Code? {
        var iterator = stream.makeAsyncIterator()
        return await code { () throws(RequestError) in
            while try await iterator.next() != nil {}
        }
    }

    @Test func eventsComeWhileTheResponseIsOpen() async throws {
        try await withServer { server, agent in
            server.script(
                path: "/events", [.send(Self.head() + "data: 1\n\n"), .wait("more"), .send("data: 2\n\n"), .close])
            var iterator = agent.events(Get("/events"), reconnection: .none).makeAsyncIterator()
            #expect(try await iterator.next()?.data == "1")
            server.signal("more")
            #expect(try await iterator.next()?.data == "2")
            #expect(try await iterator.next() == nil)
            #expect(try await iterator.next() == nil)
            let request = try #require(server.requests.first)
            #expect(request.headers["Accept"] == "text/event-stream")
            #expect(request.headers["Cache-Control"] == "no-cache")
            #expect(request.headers["Last-Event-ID"] == nil)
        }
    }

    @Test func aLostConnectionIsTakenUpBehindTheLastEventUntil204() async throws {
        try await withServer { server, agent in
            // The second event has no empty line: it is incomplete, and comes again.
            let bodies = Mutex(["id: a\ndata: 1\n\nid: b\ndata: 2", "id: b\ndata: 2\n\n"])
            server.handle("/events") { _ in
                let body = bodies.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                guard let body else { return LoopbackResponse(status: 204) }
                return LoopbackResponse(headers: ["Content-Type": "text/event-stream"], text: body)
            }
            let events = try await all(agent.events(Get("/events"), reconnection: Self.quick))
            #expect(events == [ServerSentEvent(data: "1", id: "a"), ServerSentEvent(data: "2", id: "b")])
            #expect(server.requests.map { $0.headers["Last-Event-ID"] } == [nil, "a", "b"])
        }
    }

    @Test func theServersRetryFieldIsTheWait() async throws {
        try await withServer { server, agent in
            server.script(connection: 1, [.expectHead, .send(Self.head() + "retry: 1\ndata: 1\n\n"), .close])
            server.script(connection: 2, [.expectHead, .send("HTTP/1.1 204 No Content\r\n\r\n"), .serve])
            // With its own wait of an hour this would not end.
            let patient = EventReconnection(delay: .seconds(3600), maxDelay: .seconds(3600))
            let events = try await all(agent.events(Get("/events"), reconnection: patient))
            #expect(events.count == 1)
        }
    }

    @Test(arguments: [
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", RequestError.Code.invalidStatusCode(404)),
        (
            "HTTP/1.1 201 Created\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n",
            .invalidStatusCode(201)
        ),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi", .invalidContentType),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", .invalidContentType),
        ("nonsense\r\n\r\n", .malformedResponse),
    ]) func whatAnotherConnectionWouldNotMendIsThrown(response: String, code: RequestError.Code) async throws {
        try await withServer { server, agent in
            server.script(path: "/events", [.send(response), .close])
            let thrown = await failure(of: agent.events(Get("/events"), reconnection: Self.quick))
            #expect(thrown.map { code ~= $0 } == true, "\(thrown as Any)")
            #expect(server.requestCount == 1)
        }
    }

    @Test func aServerThatAsksForNoWaitGetsAPauseAllTheSame() async throws {
        try await withServer { server, agent in
            server.handle("/events") { _ in
                LoopbackResponse(headers: ["Content-Type": "text/event-stream"], text: "retry: 0\ndata: x\n\n")
            }
            let start = ContinuousClock.now
            var events = agent.events(Get("/events"), reconnection: EventReconnection()).makeAsyncIterator()
            for _ in 0..<3 { _ = try await events.next() }
            #expect(start.duration(to: .now) >= .milliseconds(200))
        }
    }

    @Test func anOwnWaitAboveTheMaximumHoldsAfterAFailureToo() async throws {
        try await withServer { server, agent in
            server.script(
                connection: 1, [.expectHead, .send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), .close])
            server.script(connection: 2, [.expectHead, .send("HTTP/1.1 204 No Content\r\n\r\n"), .serve])
            let policy = EventReconnection(delay: .milliseconds(400), maxDelay: .milliseconds(1))
            let start = ContinuousClock.now
            let events = try await all(agent.events(Get("/events"), reconnection: policy))
            #expect(events.isEmpty)
            // Half of the wait is random.
            #expect(start.duration(to: .now) >= .milliseconds(200))
            #expect(server.requestCount == 2)
        }
    }

    @Test func theMaximumBoundsTheWaitThatTheServerSets() async throws {
        try await withServer { server, agent in
            let hour = "retry: 3600000\ndata: 1\n\n"
            server.script(connection: 1, [.expectHead, .send(Self.head() + hour), .close])
            server.script(
                connection: 2,
                [
                    .expectHead, .send("HTTP/1.1 503 Busy\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n"), .close,
                ])
            server.script(connection: 3, [.expectHead, .send("HTTP/1.1 204 No Content\r\n\r\n"), .serve])
            let events = try await all(agent.events(Get("/events"), reconnection: Self.quick))
            #expect(events.map(\.data) == ["1"])
        }
    }

    @Test func failuresInARowHaveABound() async throws {
        try await withServer { server, agent in
            server.script(path: "/events", [.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), .serve])
            let policy = EventReconnection(delay: .milliseconds(1), maxDelay: .milliseconds(2), maxFailures: 3)
            #expect(await failure(of: agent.events(Get("/events"), reconnection: policy)) == .invalidStatusCode(503))
            #expect(server.requestCount == 4)
        }
    }

    @Test func anEventBehindFailuresBeginsTheCountAnew() async throws {
        try await withServer { server, agent in
            let policy = EventReconnection(delay: .milliseconds(1), maxDelay: .milliseconds(2), maxFailures: 1)
            for connection in [1, 3, 5] { server.script(connection: connection, [.reset]) }
            for connection in [2, 4] {
                server.script(connection: connection, [.expectHead, .send(Self.head() + "data: x\n\n"), .close])
            }
            server.script(connection: 6, [.expectHead, .send("HTTP/1.1 204 No Content\r\n\r\n"), .serve])
            var request = HTTPRequest(.get, "/events")
            request.isIdempotent = false
            let events = try await all(agent.events(request, reconnection: policy))
            #expect(events.count == 2)
        }
    }

    @Test func aSilenceIsALostConnectionAndTheConfigurationsDeadlineDoesNotHold() async throws {
        try await withServer {
            $0.deadline = .milliseconds(150)
        } _: { server, agent in
            server.script(connection: 1, [.expectHead, .send(Self.head() + "data: 1\n\n"), .keepOpen])
            server.script(
                connection: 2,
                [
                    .expectHead, .send(Self.head() + "data: 2\n\n"), .pause(.milliseconds(300)),
                    .send("data: 3\n\n"), .close,
                ])
            server.script(connection: 3, [.expectHead, .send("HTTP/1.1 204 No Content\r\n\r\n"), .serve])
            var request = HTTPRequest(.get, "/events")
            request.timeouts = Timeouts(idle: .milliseconds(1500))
            let events = try await all(agent.events(request, reconnection: Self.quick))
            #expect(events.map(\.data) == ["1", "2", "3"])
        }
    }

    @Test func aDeadlineOfTheRequestsOwnEndsTheSequence() async throws {
        try await withServer { server, agent in
            server.script(path: "/events", [.send(Self.head() + "data: 1\n\n"), .keepOpen])
            var request = HTTPRequest(.get, "/events")
            request.deadline = .milliseconds(800)
            var iterator = agent.events(request, reconnection: Self.quick).makeAsyncIterator()
            let first = try await iterator.next()
            #expect(first?.data == "1")
            #expect(await code { () throws(RequestError) in try await iterator.next() } == .timeout(.deadline))
        }
    }

    @Test func cancellingTheTaskEndsTheWaitForAConnectionToo() async throws {
        try await withServer { server, agent in
            server.script(path: "/events", [.send(Self.head() + "data: 1\n\n"), .close])
            let first = Gate()
            let task = Task {
                let patient = EventReconnection(delay: .seconds(3600), maxDelay: .seconds(3600))
                var iterator = agent.events(Get("/events"), reconnection: patient).makeAsyncIterator()
                _ = try await iterator.next()
                first.open()
                return try await iterator.next()
            }
            await first.pass()
            task.cancel()
            await #expect(throws: RequestError.self) { try await task.value }
        }
    }

    @Test(arguments: [Duration.seconds(3600), .seconds(Int64.max)])
    func aShutdownEndsTheWaitForAConnectionToo(delay: Duration) async throws {
        try await withServer { server, agent in
            server.script(path: "/events", [.send(Self.head() + "data: 1\n\n"), .close])
            let first = Gate()
            let task = Task {
                let patient = EventReconnection(delay: delay, maxDelay: delay)
                var iterator = agent.events(Get("/events"), reconnection: patient).makeAsyncIterator()
                _ = try await iterator.next()
                first.open()
                return await code { () throws(RequestError) in try await iterator.next() }
            }
            await first.pass()
            await agent.shutdown(grace: .seconds(3600))
            let thrown = try await task.value
            #expect(thrown == .shutdown)
            #expect(server.requestCount == 1)
        }
    }

    @Test func aShutdownEndsAStreamThatIsOpenBehindItsGrace() async throws {
        try await withServer { server, agent in
            server.script(path: "/events", [.send(Self.head() + "data: 1\n\n"), .keepOpen])
            let first = Gate()
            let task = Task {
                var iterator = agent.events(Get("/events"), reconnection: Self.quick).makeAsyncIterator()
                _ = try await iterator.next()
                first.open()
                return await code { () throws(RequestError) in try await iterator.next() }
            }
            await first.pass()
            await agent.shutdown(grace: .milliseconds(50))
            let thrown = try await task.value
            #expect(thrown == .shutdown)
        }
    }

    /// No product of them exceeds a duration.
    @Test func theLongestWaitsAndBoundsAreNoTrap() async throws {
        try await withServer { server, agent in
            let retry = "retry: \(Int64.max)\ndata: 1\n\n"
            server.script(connection: 1, [.expectHead, .send(Self.head() + retry), .reset])
            let first = Gate()
            let task = Task {
                let longest = EventReconnection(
                    delay: .seconds(Int64.max), maxDelay: .seconds(Int64.max), maxFailures: .max)
                var iterator = agent.events(Get("/events"), reconnection: longest).makeAsyncIterator()
                _ = try await iterator.next()
                first.open()
                return await code { () throws(RequestError) in try await iterator.next() }
            }
            await first.pass()
            task.cancel()
            let thrown = try await task.value
            #expect(thrown == .cancelled)
        }
        for bound in [Duration.zero, .seconds(-1), .seconds(Int64.min)] {
            try await withServer { server, agent in
                for connection in 1...40 { server.script(connection: connection, [.reset]) }
                server.script(connection: 41, [.expectHead, .send("HTTP/1.1 204 No Content\r\n\r\n"), .serve])
                let policy = EventReconnection(delay: .zero, maxDelay: bound, maxFailures: 40)
                var request = HTTPRequest(.get, "/events")
                request.isIdempotent = false
                let events = try await all(agent.events(request, reconnection: policy))
                #expect(events.isEmpty)
            }
        }
    }

    @Test func theEndBy204IsASuccessToObservers() async throws {
        try await withServer { server, agent in
            server.script(path: "/events", [.send("HTTP/1.1 204 No Content\r\n\r\n"), .serve])
            let observer = OutcomeObserver()
            var request = HTTPRequest(.get, "/events")
            request.observers = [observer]
            let events = try await all(agent.events(request))
            #expect(events.isEmpty)
            #expect(await eventually { observer.outcomes.count == 1 })
            guard case .finished(status: 204, isFromCache: _) = observer.outcomes.first else {
                Issue.record("\(observer.outcomes)")
                return
            }
        }
    }

    @Test func theEndBy204NeedsNoStatusThatTheRequestAccepts() async throws {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response(status: 204)))
        var request = HTTPRequest(.get, "/events")
        request.statusValidation = .codes([200])
        #expect(try await all(agent.events(request)).isEmpty)
        await agent.shutdown()
    }

    @Test func theConfigurationsAcceptIsNotThatOfAStream() async throws {
        let stub = StubTransport(always: .response(status: 204))
        var configuration = NetworkConfiguration.test
        configuration.headers["Accept"] = "application/json"
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        #expect(try await all(agent.events(Get("/events"))).isEmpty)
        #expect(stub.requests.map { $0.headers.values(of: "Accept") } == [["text/event-stream"]])
        await agent.shutdown()
    }

    @Test func anEventThatIsTooLongComesBehindTheOthersAsAnError() async throws {
        try await withServer { server, agent in
            let long = String(repeating: "x", count: 200)
            server.script(path: "/events", [.send(Self.head() + "data: 1\n\ndata: \(long)\n\n"), .close])
            var iterator = agent.events(Get("/events"), reconnection: Self.quick, maxEventBytes: 100)
                .makeAsyncIterator()
            let first = try await iterator.next()
            #expect(first?.data == "1")
            #expect(await code { () throws(RequestError) in try await iterator.next() } == .responseTooLarge)
            let last = try await iterator.next()
            #expect(last == nil)
            #expect(server.requestCount == 1)
        }
    }

    @Test func theRequestsOwnFieldsStay() async throws {
        try await withServer { server, agent in
            server.script(path: "/events", [.send("HTTP/1.1 204 No Content\r\n\r\n"), .serve])
            let request = HTTPRequest(
                .get, "/events", headers: ["Accept": "text/event-stream, */*", "Last-Event-ID": "from before"])
            #expect(try await all(agent.events(request)).isEmpty)
            let sent = try #require(server.requests.first)
            #expect(sent.headers["Accept"] == "text/event-stream, */*")
            #expect(sent.headers["Last-Event-ID"] == "from before")
        }
    }
}
