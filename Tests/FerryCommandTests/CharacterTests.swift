import Ferry
import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// URLs with a combining mark behind a character that separates their parts: together they are one `Character`.
@Suite(.timeLimit(.minutes(1))) struct CharacterTests {
    @Test func aFileNameHasNoSlash() {
        let name = CommandURL.fileName(of: "http://h/../\u{301}evil")
        #expect(name.map { Array($0.utf8) } == Array("\u{301}evil".utf8))
    }

    @Test(arguments: [
        "http://kim:secret@\u{301}host/", "ftp://kim:secret@\u{301}h/", "http://h h/?\u{301}t=secret",
        "http://\u{301}kim:secret@h h/", "http://kim:secret/x@\u{301}h/",
    ])
    func errorsShowNoPassword(url: String) throws {
        let end = try FerryProgram.run("fetch", url)
        #expect(end.code != 0 && !end.output.isEmpty && !end.output.contains("secret"), "\(end)")
    }

    @Test func aQueryIsBeforeTheFragmentAndAfterAnother() {
        func added(_ url: String) -> [UInt8] { Array(URLQuery.appending([(name: "page", value: "2")], to: url).utf8) }
        #expect(added("http://h/a#\u{301}x") == Array("http://h/a?page=2#\u{301}x".utf8))
        #expect(added("http://h/a?\u{301}x=1") == Array("http://h/a?\u{301}x=1&page=2".utf8))
        #expect(added("http://h/a?\u{301}x=1&#\u{301}") == Array("http://h/a?\u{301}x=1&page=2#\u{301}".utf8))
    }

    @Test func aSchemeIsNotAddedTwice() throws {
        let url = "http://\u{301}kim:secret@host/"
        #expect(CommandURL.hasScheme(url) && CommandURL.hasWebScheme(url) && !CommandURL.hasScheme("h\u{301}://h"))
        #expect(try CommandURL.complete(url) == url)
        #expect(try CommandURL.complete("//\u{301}h/") == "http://\u{301}h/")
        #expect(try curl("curl '\(url)'").url == url)
        #expect(try curl("curl -x 'http://\u{301}p' h").proxy == "http://\u{301}p")
    }

    @Test func fieldsArgumentsAndCredentialsArePartedAtTheFirstSign() throws {
        let arguments = try ParsedArguments(
            ["--header", "X: \u{301}a:b", "--query", "q=\u{301}b=c"], of: FetchCommand.allOptions)
        let (fields, pairs) = (try arguments.headerFields("header"), try arguments.pairs("query"))
        #expect(fields.map(\.name) == ["X"] && fields.map { Array($0.value.utf8) } == [Array("\u{301}a:b".utf8)])
        #expect(pairs.map(\.name) == ["q"] && pairs.map { Array($0.value.utf8) } == [Array("\u{301}b=c".utf8)])
        #expect(Credentials("kim:\u{301}p:w") == Credentials(user: "kim", password: "\u{301}p:w"))
        let line = try curl("curl h -H 'A:\u{301}b:c' -b 'a=\u{301}b' --data-urlencode 'n=\u{301}=@'")
        #expect(line.headers.map(\.name) == ["A", "Cookie"])
        #expect(line.headers.first.map { Array($0.value.utf8) } == Array("\u{301}b:c".utf8))
        #expect(line.body == Array("n=%CC%81%3D%40".utf8))
        #expect(throws: UsageError.self) { try curl("curl 'http://h/{\u{301}'") }
    }

    private func curl(_ text: String) throws -> CurlCommandLine { try CurlCommandLine(text) { _ in [] } }

    @Test func aRefusedProxyShowsNoPassword() throws {
        let arguments = try ParsedArguments(["--proxy", "ftp://kim:secret@\u{301}h"], of: FetchCommand.allOptions)
        let error = #expect(throws: UsageError.self) { try NetworkConfiguration(arguments) }
        #expect(error?.message.contains("--proxy must be") == true && error?.message.contains("secret") == false)
    }

    /// What a plan expects of a header field.
    @Test func valuesOfFieldsAreComparedByBytes() async throws {
        for (wanted, isOK) in [("e\u{301}x", true), ("\u{E9}x", false), ("e*", true), ("\u{E9}*", false)] {
            let plan = try PlanSchema.plan(
                #"{"requests": {"a": {"path": "/a", "expect": {"headers": {"X-A": "\#(wanted)"}}}}, "run": "a"}"#)
            try await withLoopbackServer { server in
                server.handle("/a") { _ in LoopbackResponse(headers: ["X-A": "e\u{301}x"]) }
                let start = try PlanStart(plan, values: [], base: server.baseURL)
                let report = await withNetworkAgent(configuration: start.configuration) {
                    await PlanRun(start).perform(by: $0)
                }
                #expect(report.isOK == isOK, "\(wanted)")
            }
        }
    }

    @Test func twoSpellingsOfACharacterAreTwoURLs() async throws {
        try await withLoopbackServer { server in
            let file = try TemporaryFile([])
            let folder = URL(filePath: file.path + ".d")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let urls = ["\u{E9}", "e\u{301}"].map { server.baseURL + "/bytes/3?x=" + $0 }
            let end = try FerryProgram.run(["download", "-o", folder.path + "/"] + urls)
            #expect(end.code == 0 && server.requestCount == 2, "\(end)")
        }
    }
}
