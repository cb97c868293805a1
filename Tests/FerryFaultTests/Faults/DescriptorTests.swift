import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Invariant I2 for what only the whole process shows: descriptors and threads. In a process of its own, because other
/// tests open some meanwhile.
@Suite(.timeLimit(.minutes(3))) struct DescriptorTests {
    @Test func descriptorsAndThreadsAreBackAfterEveryFault() async {
        await #expect(processExitsWith: .success) {
            // Once before counting: descriptors that the runtime opens for itself stay open.
            try await everyFault()
            try await Task.sleep(for: .milliseconds(1))
            let before = ProcessHoldings.descriptors
            for _ in 0..<5 { try await everyFault() }
            #expect(
                await eventually { ProcessHoldings.descriptors.count <= before.count },
                "\(ProcessHoldings.descriptors), \(before) before")
            // Workers of the runtime come and go; one loop left by each agent would be 100.
            let threads = count("/proc/self/task")
            #expect(threads < 40, "\(threads) threads")
        }
    }

    @Test func memoryStaysBoundedUnderBombs() async {
        await #expect(processExitsWith: .success) {
            let server = try LoopbackServer()
            server.script(
                path: "/hints", [.expectHead, .repeating("HTTP/1.1 100 Continue\r\n\r\n", times: 200_000), .keepOpen])
            let agent = NetworkAgent()
            try await agent.send(Get(server.baseURL + "/hello"))
            let before = peakMemory()
            for path in ["/gzip/200000000?zeros=1", "/deflate/200000000?zeros=1", "/hints", "/chunked/200000000"] {
                var request = HTTPRequest.probe(server.baseURL + path)
                request.maxBodyBytes = 1_000_000
                let error = await fault { () throws(RequestError) in try await agent.send(request) }
                #expect(error != nil)
            }
            let grown = peakMemory() - before
            #expect(grown < 32_000_000, "\(grown) bytes more")
            await agent.shutdown()
        }
    }
}

/// Some cases of all areas, each with an agent of its own.
private func everyFault() async throws {
    let certificate = try ServerCertificate(.expired)
    try await play([.expectHead, .send(head("200 OK", "Content-Length: 100\r\n") + "abc"), .close])
    try await play([.expectHead, .send(head("200 OK", "Transfer-Encoding: chunked\r\n") + "ZZ\r\n"), .keepOpen])
    try await play([.expectHead, .reset])
    try await play([.expectHead, .close])
    try await play([.expectHead, .keepOpen]) { $0.timeouts.idle = .milliseconds(50) }
    try await play([.expectHead, .keepOpen], isCancelled: true)
    try await play([], options: .init(certificate: certificate)) { $0.tls.authorityFile = certificate.authorityFile }
    for accepting in [LoopbackServer.Options.Accepting.none, .refused] {
        var options = LoopbackServer.Options()
        options.accepting = accepting
        try await play([], options: options) { $0.timeouts.connect = .milliseconds(50) }
        try await play([], options: options, isCancelled: accepting == .none)
    }
    try await play([.stallHandshake], options: .init(certificate: certificate)) {
        $0.timeouts.connect = .milliseconds(50)
    }
    let agent = NetworkAgent()
    #expect(await code { () throws(RequestError) in try await agent.send(Get("http://x.invalid/")) } == .dns(.notFound))
    await agent.shutdown()
}

private func play(
    _ script: LoopbackScript, options: LoopbackServer.Options = .init(), isCancelled: Bool = false,
    configure: (inout NetworkConfiguration) -> Void = { _ in }
) async throws {
    let server = try LoopbackServer(options)
    if !script.steps.isEmpty { server.script(script) }
    var configuration = NetworkConfiguration()
    configure(&configuration)
    let agent = NetworkAgent(configuration: configuration)
    let outcomes = (0..<3).map { _ in Outcome<Response>() }
    let tasks = outcomes.map { agent.start(Get(server.baseURL + "/x"), completion: $0.take) }
    if isCancelled {
        #expect(await eventually { agent.statistics.running == 3 })
        for task in tasks { task.cancel() }
    }
    for outcome in outcomes { #expect(await outcome.code != nil) }
    await agent.shutdown()
    server.stop()
}

private func count(_ directory: String) -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: directory).count) ?? .max
}

/// The peak of resident memory, in bytes.
private func peakMemory() -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return line.flatMap { Int($0.filter(\.isNumber)) }.map { $0 * 1024 } ?? 0
}
