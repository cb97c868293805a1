import Ferry
import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// `ferry run` as a process: what it prints and writes, and how it ends.
@Suite(.timeLimit(.minutes(2))) struct RunCommandTests {
    private func run(_ plan: String, _ options: String...) throws -> ChildProcess.End {
        let file = try TemporaryFile(Array(plan.utf8))
        return try FerryProgram.run(["run", file.path] + options)
    }

    @Test func theExamplesRunOnAServerOfItsOwn() throws {
        let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let folder = NSTemporaryDirectory() + "ferry-run-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let plans = ["checkout", "crowd", "expectations", "prices"].map { "\(root)/Examples/\($0).json" }
        let end = try FerryProgram.run(
            ["run", "--serve", "--json", "--html", folder + "/run.html", "--var", "folder=\(folder)/kept"] + plans)
        #expect(end.code == 0, "\(end.output)")
        let reports = try end.output.split(separator: "\n").map { try JSON(parsing: String($0)) }
        #expect(reports.map { $0["plan"]?.string } == ["checkout", "crowd", "expectations", "prices"])
        #expect(reports.allSatisfy { $0["ok"]?.bool == true })
        let page = try String(contentsOfFile: folder + "/run.html", encoding: .utf8)
        #expect(page.count(where: { $0 == "<" }) == page.count(where: { $0 == ">" }))
        #expect(page.components(separatedBy: "<svg").count == 9, "two waterfalls for each plan")
    }

    @Test(arguments: [
        (#""a""#, Int32(0), "ok: "), (#""gone""#, 5, "expected status 200-299, found 404"),
        (#""other""#, 4, "expected header X-Not 'there', found none"),
        (#""nobody""#, 3, "could not connect to 127.0.0.1:1: connection refused"),
        (#"{"chain": ["a", "gone", "nobody"]}"#, 5, "skipped"),
    ]) func itEndsByWhatFailedFirst(_ step: String, _ code: Int32, _ word: String) throws {
        let end = try run(
            #"""
            {"requests": {"a": "/hello", "gone": "/status/404", "nobody": "http://127.0.0.1:1/",
              "other": {"path": "/hello", "expect": {"headers": {"X-Not": "there"}}}}, "run": \#(step)}
            """#, "--serve")
        #expect(end.code == code && end.output.contains(word), "\(end.output)")
    }

    @Test func aDryRunSendsNothing() throws {
        let end = try run(
            #"{"name": "p", "requests": {"a": "http://127.0.0.1:1/{{new.counter}}"}, "run": {"request": "a", "repeat": 3}}"#,
            "--dry-run")
        #expect(end.code == 0)
        #expect(end.output == "p, 3 steps\n  3 times\n    a: GET http://127.0.0.1:1/{{new.counter}}, expects 200-299\n")
    }

    @Test func aMistakeInTheLastPlanComesBeforeTheFirstRuns() throws {
        let good = try TemporaryFile(Array(#"{"requests": {"a": "/hello"}, "run": "a"}"#.utf8))
        let bad = try TemporaryFile(Array("{\"requests\": {},\n\n\"run\": \"a\"}".utf8))
        let end = try FerryProgram.run("run", "--serve", good.path, bad.path)
        #expect(end.code == 2 && end.output == "ferry run: \(bad.path):3: unknown request 'a'\n", "\(end.output)")
    }

    @Test(arguments: ["--serve", "--dry-run", "--base=http://127.0.0.1:1"])
    func aPlaceThatCanHaveNoValueComesBeforeTheFirstRuns(_ option: String) throws {
        let good = try TemporaryFile(Array(#"{"requests": {"a": "/hello"}, "run": "a"}"#.utf8))
        for (bad, complaint) in [
            (
                #"{"variables": {"v": "{{nobody}}"}, "requests": {"a": "/"}, "run": "a"}"#,
                "'{{nobody}}' is not a variable"
            ),
            (
                #"{"variables": {"v": "{{env.FERRY_SURELY_NOT_SET}}"}, "requests": {"a": "/"}, "run": "a"}"#,
                "'{{env.FERRY_SURELY_NOT_SET}}' has no value"
            ),
            (
                #"{"requests": {"a": "/", "b": "/{{a.text}}"}, "run": {"batch": ["a", "b"]}}"#,
                "'{{a.text}}' has no value in 'b': 'a' runs at the same time"
            ),
        ] {
            let file = try TemporaryFile(Array(("\n" + bad).utf8))
            let end = try FerryProgram.run("run", option, good.path, file.path)
            #expect(end.code == 2 && end.output == "ferry run: \(file.path):2: \(complaint)\n", "\(end.output)")
        }
    }

    @Test(arguments: [
        (["--base", "http://h", "--serve"], Int32(1), "--base and --serve cannot be combined"),
        (["--var", "novalue"], 1, "--var must be 'key=value'"),
        (["--base", "http://a b"], 1, "--base: invalid URL \"http://a b\": space at position 9"),
        (["--dry-run", "--json"], 1, "--dry-run and --json cannot be combined"),
        (["--dry-run", "--html", "a"], 1, "--dry-run and --html cannot be combined"),
        (["--dry-run", "--har", "a"], 1, "--dry-run and --har cannot be combined"),
        (["--serve", "--var", "who={{"], 0, "ok: "),
    ]) func whatMakesNoSenseIsSaid(_ options: [String], _ code: Int32, _ message: String) throws {
        let file = try TemporaryFile(Array(Self.greeting.utf8))
        let end = try FerryProgram.run(["run", file.path] + options)
        #expect(end.code == code && end.output.contains(message), "\(end.output)")
    }

    private static let greeting = #"{"requests": {"a": "/hello?{{who|kim}}"}, "run": "a"}"#

    @Test(arguments: [
        (["--html", "/nowhere/run.html"], "cannot write /nowhere/run.html: No such file or directory"),
        (["--har", "/nowhere/run.har"], "cannot write /nowhere/run.har: No such file or directory"),
        (["--html", "/tmp"], "cannot write /tmp: Is a directory"),
        (["--var", "whom=x"], "--var: the plan has no variable 'whom' (did you mean who?)"),
        (["--var", "a=x"], "--var: the plan has no variable 'a'; there are who"),
    ]) func impossibleLoadsAreRefusedBeforeAnythingIsSent(_ options: [String], _ message: String) async throws {
        try await withLoopbackServer { server in
            let file = try TemporaryFile(Array(Self.greeting.utf8))
            let end = try FerryProgram.run(["run", file.path, "--base", server.baseURL] + options)
            #expect(end.code == 2 && end.output == "ferry run: \(message)\n", "\(end.output)")
            #expect(server.requests.isEmpty)
        }
    }

    @Test(arguments: [
        (#""x/{{who|kim}}""#, "", #"no base URL is configured and "x/{{who|kim}}" is a relative path: "#),
        (#""{{who|kim}}/x""#, "", #"no base URL is configured and "{{who|kim}}/x" is a relative path: "#),
        (#""/x""#, #""base": "", "#, #"no base URL is configured and "/x" is a relative path: "#),
        (#""/x?u=http://i/""#, "", #"no base URL is configured and "/x?u=http://i/" is a relative path: "#),
        (#""/x""#, #""base": "h:80", "#, "the base 'h:80' cannot be used: it does not begin with http:// or https://"),
        (#""/x""#, #""base": "http://", "#, "the base 'http://' cannot be used: invalid URL \"http://\": no host"),
        (#""/x""#, #""base": "http://a b", "#, "the base 'http://a b' cannot be used: invalid URL "),
    ]) func aMissingBaseIsSaidBeforeTheFirstPlanRuns(_ path: String, _ base: String, _ message: String) async throws {
        try await withLoopbackServer { server in
            let good = try TemporaryFile(
                Array(#"{"requests": {"a": "\#(server.baseURL)/hello"}, "run": "a"}"#.utf8))
            let bad = try TemporaryFile(Array(#"{\#(base)"requests": {"a": \#(path)}, "run": "a"}"#.utf8))
            let end = try FerryProgram.run(["run", good.path, bad.path])
            #expect(end.code == 2 && end.output.hasPrefix("ferry run: \(bad.path):1: \(message)"), "\(end.output)")
            #expect(server.requests.isEmpty)
            let dry = try FerryProgram.run("run", "--dry-run", good.path, bad.path)
            #expect(dry.code == (message.hasPrefix("no base") ? 0 : 2), "\(dry)")
        }
    }

    @Test func afterCtrlCThereIsAnObjectForEachPlan() async throws {
        try await withLoopbackServer { server in
            let file = try TemporaryFile(Array(#"{"requests": {"a": "/delay/60000"}, "run": "a"}"#.utf8))
            let line = ["run", "--json", "--base", server.baseURL, file.path, file.path]
            let process = try ChildProcess([try FerryProgram.path] + line)
            try await server.waitForRequests(1)
            process.signal(SIGINT)
            let end = process.finish()
            let plans = try end.output.split(separator: "\n").map { try JSON(parsing: String($0)) }
            let states = plans.map { $0.value(atPointer: "/steps/0/state")?.string }
            #expect(end.code == 130 && states == ["cancelled", "skipped"], "\(end)")
            #expect(plans.map { $0["ok"]?.bool } == [false, false])
            #expect(plans[1].value(atPointer: "/steps/0/reason")?.string == "the run was cancelled")
        }
    }

    @Test func aPathFromAResponseNeedsNoBase() async throws {
        try await withLoopbackServer { server in
            let text = #"""
                {"requests": {"a": {"path": "{{home}}/echo", "body": "{{home}}", "capture": {"next": "/body"}},
                  "b": "{{next}}/hello"}, "variables": {"home": "\#(server.baseURL)"}, "run": {"chain": ["a", "b"]}}
                """#
            let file = try TemporaryFile(Array(text.utf8))
            let end = try FerryProgram.run("run", file.path)
            #expect(end.code == 0 && end.output.contains("2 of 2"), "\(end.output)")
        }
    }

    @Test(arguments: [("/hello", Int32(3)), ("/status/404", 5)])
    func aPageThatCannotBeWrittenCountsAfterThePlan(_ path: String, _ code: Int32) throws {
        // It can be opened, but not written.
        for option in ["--html", "--har"] {
            let end = try run(#"{"requests": {"a": "\#(path)"}, "run": "a"}"#, "--serve", option, "/dev/full")
            #expect(end.code == code, "\(end.output)")
            #expect(
                end.output.hasSuffix("ferry run: cannot write /dev/full: No space left on device\n"), "\(end.output)")
        }
    }

    @Test func exchangesAreWrittenToTheArchive() throws {
        let folder = NSTemporaryDirectory() + "ferry-run-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let end = try run(
            #"{"requests": {"a": "/hello", "b": "/status/404"}, "run": {"chain": ["a", "b"]}}"#, "--serve",
            "--har", folder + "/run.har")
        #expect(end.code == 5, "\(end.output)")
        let archive = try HTTPArchive(contentsOf: folder + "/run.har")
        #expect(archive.entries.map(\.response.status) == [200, 404])
        #expect(archive.entries.allSatisfy { $0.request.url.hasPrefix("http://127.0.0.1:") })
    }
}
