import Ferry
import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// `ferry serve`
@Suite(.timeLimit(.minutes(1))) struct ServeCommandTests {
    @Test func aPortThatIsInUseIsNamed() async throws {
        try await withLoopbackServer { server in
            let end = try FerryProgram.run("serve", "--port", "\(server.port)")
            #expect(end.code == 3 && end.output == "ferry serve: port \(server.port) is in use\n", "\(end)")
        }
        #expect(ServeFault(port: 80, .start(-EACCES)).description == "port 80: Permission denied")
    }

    @Test func theExampleMisbehavesAsItsPathsSay() async throws {
        let rules = try ServeScript.rules(at: PlanSchema.folder + "/Examples/Serve/faults.json")
        #expect(rules.count >= 4)
        try await withLoopbackServer { server in
            for rule in rules { server.install(rule) }
            func fetch(_ path: String, _ more: String...) throws -> ChildProcess.End {
                try FerryProgram.run(["fetch", server.baseURL + path] + more)
            }
            #expect(try fetch("/busy-once").code == 5)
            #expect(try fetch("/busy-once").output == "not busy now.\n")
            let half = try fetch("/half-a-body")
            #expect(half.code == 3 && half.output.contains("the body ended early"), "\(half)")
            #expect(try fetch("/slow-body").output == "one at a time.\r\n")
            let reset = try fetch("/reset")
            #expect(reset.code == 3 && reset.output.contains("connectionReset"), "\(reset)")
            let silent = try fetch("/no-answer", "-m", "0.05")
            #expect(silent.code == 3 && silent.output.contains("timeout"), "\(silent)")
            #expect(try fetch("/hello").code == 0, "all else is as ever")
        }
    }

    /// The command accepts it, too.
    @Test func theCommandReadsTheExample() throws {
        let path = PlanSchema.folder + "/Examples/Serve/faults.json"
        let process = try ChildProcess([FerryProgram.path, "serve", "--until-eof", "--script", path])
        #expect(process.readLine()?.hasPrefix("http://127.0.0.1:") == true)
        process.stop()
    }

    /// The folder has the key of the client's certificate.
    @Test(arguments: [(SIGINT, Int32(130)), (SIGTERM, Int32(143))])
    func theFolderOfTheCertificatesIsRemoved(signal: Int32, code: Int32) throws {
        let folder = NSTemporaryDirectory() + "ferry-serve-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder) }
        let shell = ["/bin/sh", "-c", #"exec "$0" serve --tls valid 2>&1"#, try FerryProgram.path]
        let process = try ChildProcess(shell, environment: ["TMPDIR": folder])
        #expect(process.readLine()?.hasPrefix("authority: \(folder)/ferry-testing-") == true)
        #expect(process.readLine()?.hasPrefix("https://") == true)
        #expect(try names().count == 1)
        process.signal(signal)
        let end = process.finish()
        #expect(end.code == code && end.output == "0 requests on 0 connections\n", "\(end)")
        #expect(try names().isEmpty)
    }

    /// So shells start a command in the background, which ctrl-C is not meant for.
    @Test func aSignalThatTheParentIgnoresStaysIgnored() async throws {
        let shell = ["/bin/sh", "-c", #"trap '' INT; exec "$0" serve 2>&1"#, try FerryProgram.path]
        let process = try ChildProcess(shell)
        let url = try #require(process.readLine())
        process.signal(SIGINT)
        // It goes on serving.
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: url))
        for _ in 0..<3 { #expect(try await agent.get("/bytes/3").bytes.count == 3) }
        await agent.shutdown()
        process.signal(SIGTERM)
        let end = process.finish()
        #expect(end.code == 143 && end.output == "3 requests on 1 connections\n", "\(end)")
    }

    @Test(arguments: [
        ("{", ":1: not JSON: "),
        ("[]", ":1: a script: expected an object, found "),
        (#"{"rules": []}"#, ":1: unknown member 'rules' in a script; the only member is scripts"),
        ("{}", ":1: a script: 'scripts' is missing"),
        ("{\"scripts\": [],\n\"scripts\": []}", ":2: 'scripts' appears twice"),
        ("{\"scripts\": [{\"steps\": [],\n\"steps\": []}]}", ":2: 'steps' appears twice"),
        ("{\"scripts\": [{\"steps\": [{\"send\": \"a\",\n\"send\": \"b\"}]}]}", ":2: 'send' appears twice"),
        (#"{"scripts": {}}"#, ":1: scripts: expected an array, found "),
        (
            "{\"scripts\": [\n{\"path\": \"/\", \"step\": []}]}",
            ":2: unknown member 'step' in a rule; members are path, connection, "
        ),
        ("{\"scripts\": [\n{\"path\": \"/\"}]}", ":2: scripts[0]: 'steps' is missing"),
        ("{\"scripts\": [{\"steps\": [\n\"close\",\n\"clsoe\"]}]}", ":3: scripts[0].steps[1]: no step is named clsoe"),
        ("{\"scripts\": [{\"steps\": [\n{\"snd\": \"\"}]}]}", ":2: scripts[0].steps[0]: a step is a name or an object"),
        ("{\"scripts\": [{\"steps\": [\n{\"send\":\n5}]}]}", ":3: scripts[0].steps[0].send: expected a string, found "),
        ("{\"scripts\": [{\"steps\": [\n5]}]}", ":2: scripts[0].steps[0]: expected an object, found "),
        ("{\"scripts\": [{\"uses\":\n\"x\", \"steps\": []}]}", ":2: scripts[0].uses: expected a whole number, found "),
        ("{\"scripts\": [{\"connections\":\n[2], \"steps\": []}]}", ":2: scripts[0].connections: connections is ["),
        (
            "{\"scripts\": [\n{\"path\": \"/\", \"connection\": 1, \"steps\": []}]}",
            ":2: 'path' and 'connection' cannot be"
        ),
    ]) func aMistakeIsToldByItsPlace(_ text: String, _ message: String) throws {
        do {
            _ = try ServeScript(JSONFile(path: "s.json", text: Data(text.utf8))).rules()
            Issue.record("it was taken")
        } catch {
            #expect(error.message.hasPrefix("s.json" + message), "\(error.message)")
            #expect(!error.message.contains("DecodingError") && !error.message.contains("CodingKeys"))
        }
    }

    @Test func aScriptThatIsNotThereIsABadFile() async {
        #expect(await Main.run(["serve", "--script", "/nowhere"]) == .badInput)
    }
}
