import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Row R71: a run cancelled while nobody reads its bytes.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct PausedCancelFaultTests {
    @Test("R71: while a download is paused")
    func paused() async throws {
        let server = try LoopbackServer()
        server.script(
            path: "/big",
            [.expectHead, .send(head("200 OK", "Content-Length: 100000000\r\n")), .pattern(bytes: 100_000_000)])
        let agent = NetworkAgent()
        let place = try DownloadPlace()
        let started = StartedDownload()
        let task = agent.download(Get(server.baseURL + "/big"), to: .file(place.target), completion: started.take)
        #expect(await eventually { task.progress.received > 0 })
        task.pause()
        let began = ContinuousClock.now
        task.cancel()
        let error = try #require(await started.error())
        FaultNote.add(form: "\(Form.download)", outcome: "`cancelled` in body", took: .now - began)
        #expect(error.code == .cancelled && error.phase == .body && error.mayHaveBeenProcessed)
        place.expectNoPartOfAFile(.failure(error), isDownload: true, #_sourceLocation)
        try await server.waitForOpenConnections(atMost: 0)
        #expect(try await agent.send(Get(server.baseURL + "/hello")).text == "Hello, ferry")
        await agent.shutdown()
        #expect(started.calls == 1)
    }

    @Test(
        "R71: while a stream's reader has paused it: the connection closes before the next read",
        arguments: [false, true])
    func pausedStream(isAll: Bool) async throws {
        try await withFlow { server, agent in
            server.script(path: "/x", [.expectHead, .send(head()), .pattern(bytes: 100_000_000), .keepOpen])
            let (began, rest) = (Gate(), Gate())
            let reader = Task { [agent] in
                await fault { () throws(RequestError) in
                    let response = try await agent.stream(Get("/x"))
                    var bytes = 0
                    for try await piece in response.body {
                        if bytes == 0 {
                            began.open()
                            await rest.pass()
                        }
                        bytes += piece.count
                    }
                }
            }
            await began.pass()
            if isAll {
                agent.cancelAll()
                try await server.waitForOpenConnections(atMost: 0)
            } else {
                // A reader that is not reading gets the error when it reads again.
                reader.cancel()
            }
            rest.open()
            let error = try #require(await reader.value)
            #expect(error.code == .cancelled && error.phase == .body && error.mayHaveBeenProcessed)
            try await server.waitForOpenConnections(atMost: 0)
            #expect(try await agent.send(Get("/hello")).text == "Hello, ferry")
        }
    }
}
