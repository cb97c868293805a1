import CFerry
import FerryTesting
import Testing

/// All suites of the core. They run one test at a time, because they measure times and count descriptors.
@Suite(.serialized, .timeLimit(.minutes(2))) enum CoreTests {}

/// Runs `body` with a loop and a server, then checks what must hold after every case: the next plain GET succeeds,
/// every accepted id has one result, no callback comes after on_stopped, all gauges are back to 0, and no socket to the
/// server is left.
///
/// - Parameters:
///   - probes: False if the server's scripts prevent a plain GET: it goes to another server then.
///   - seesClose: False if a script makes the server stop reading, so that it does not notice the close.
func withCore(
    _ options: CoreLoop.Options = .init(), server serverOptions: LoopbackServer.Options = .init(), probes: Bool = true,
    seesClose: Bool = true,
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (CoreLoop, LoopbackServer) async throws -> Void
) async throws {
    let server = try LoopbackServer(serverOptions)
    defer { server.stop() }
    let core = try CoreLoop(options)
    do {
        try await body(core, server)
    } catch {
        core.free()
        throw error
    }
    if !core.wasFreed {
        if probes {
            await expectHello(core, server, sourceLocation)
        } else {
            let other = try LoopbackServer()
            await expectHello(core, other, sourceLocation)
            other.stop()
        }
        await expectCleanStop(core, sourceLocation)
    }
    if seesClose { try await server.waitForOpenConnections(atMost: 0) }
}

private func expectHello(_ core: CoreLoop, _ server: LoopbackServer, _ location: SourceLocation) async {
    guard let id = try? core.submit(CoreRequest("GET", server.baseURL + "/hello")) else { return }  // stopped
    let result = await core.result(of: id)
    #expect(result.fault == .ok || result.fault == .shutdown, "the next plain GET", sourceLocation: location)
    if result.fault == .ok { #expect(result.text == "Hello, ferry", sourceLocation: location) }
}

/// Stops the loop and checks that nothing is left of it.
func expectCleanStop(_ core: CoreLoop, _ location: SourceLocation = #_sourceLocation) async {
    core.stop()
    await core.record.until { $0.isStopped }
    let (accepted, results, late) = core.record.read { ($0.requests.keys.count, $0.results, $0.late) }
    #expect(results.count == accepted, "every accepted id is answered", sourceLocation: location)
    #expect(results.values.allSatisfy { $0.count == 1 }, "each once", sourceLocation: location)
    #expect(late == 0, "nothing after on_stopped", sourceLocation: location)
    let statistics = core.statistics
    #expect(statistics.waiting == 0, "waiting", sourceLocation: location)
    #expect(statistics.resolving == 0, "resolving", sourceLocation: location)
    #expect(statistics.running == 0, "running", sourceLocation: location)
    #expect(statistics.sockets == 0, "sockets", sourceLocation: location)
    #expect(statistics.handles == 0, "handles", sourceLocation: location)
    #expect(statistics.submitted == UInt64(accepted), "submitted", sourceLocation: location)
    #expect(statistics.finished == UInt64(accepted), "finished", sourceLocation: location)
    core.free()
}

/// A complete response with `text`, as sent by a script.
func answer(_ text: String, status: String = "200 OK", _ fields: String...) -> String {
    "HTTP/1.1 \(status)\r\n" + fields.map { $0 + "\r\n" }.joined() + "Content-Length: \(text.utf8.count)\r\n\r\n" + text
}

/// Options for a core and a server that use TLS.
func secureOptions() throws -> (CoreLoop.Options, LoopbackServer.Options) {
    let certificate = try ServerCertificate()
    var options = CoreLoop.Options()
    options.caFile = certificate.authorityFile
    return (options, .init(certificate: certificate))
}

/// Options for a core and a server with or without TLS.
func options(secure isSecure: Bool) throws -> (CoreLoop.Options, LoopbackServer.Options) {
    isSecure ? try secureOptions() : (.init(), .init())
}
