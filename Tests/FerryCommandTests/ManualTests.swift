import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// The command understands the command lines in the manual and the README.
@Suite struct ManualTests {
    private static let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    private static let articles = root + "/Sources/Ferry/Documentation.docc"

    private static func pages() throws -> [(name: String, text: String)] {
        let names = try FileManager.default.contentsOfDirectory(atPath: articles).filter { $0.hasSuffix(".md") }
        return try (names.map { articles + "/" + $0 } + [root + "/README.md"]).map {
            ($0, try String(contentsOfFile: $0, encoding: .utf8))
        }
    }

    /// The words of a line of code, without the shell's syntax: comment, redirection, `&`, variables.
    private static func words(_ line: Substring) throws -> [String] {
        var text = line.split(separator: "  #", maxSplits: 1)[0]
        for sign in [" > ", " &"] where text.contains(sign) { text = text.split(separator: sign, maxSplits: 1)[0] }
        return try ShellWords.split(String(text.replacing("$", with: "")))
    }

    @Test func everyCommandLineIsUnderstood() throws {
        var count = 0
        for page in try Self.pages() {
            for line in page.text.split(separator: "\n") where line.hasPrefix("    ferry ") {
                let words = try Self.words(line)
                guard words.count > 1, let command = Main.subcommands.first(where: { $0.name == words[1] }) else {
                    Issue.record("\(page.name): \(line)")
                    continue
                }
                #expect(throws: Never.self, "\(page.name): \(line)") {
                    _ = try ParsedArguments(Array(words.dropFirst(2)), of: command.allOptions)
                }
                count += 1
            }
        }
        #expect(count > 20)
    }

    @Test func everySubcommandAndExitCodeIsInTheManual() throws {
        let page = try String(contentsOfFile: Self.articles + "/TheCommand.md", encoding: .utf8)
        for code in ExitCode.allCases { #expect(page.contains("| \(code.rawValue) |"), "\(code)") }
        for command in Main.subcommands where command.allOptions.contains(where: { $0.name == "json" }) {
            #expect(page.contains("ferry \(command.name)"), "\(command.name) has --json")
        }
    }

    /// The JSON blocks in an article.
    private static func blocks(of article: String) throws -> [String] {
        let text = try String(contentsOfFile: articles + "/" + article, encoding: .utf8)
        return text.components(separatedBy: "```json\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
    }

    @Test func thePlanOfTheManualIsAPlan() throws {
        let block = try #require(try Self.blocks(of: "Plans.md").first)
        let plan = try PlanReader(path: "manual", text: Data(block.utf8)).plan()
        #expect(plan.name == "checkout" && plan.root.names.count == 4)
    }

    /// It shows two members of a plan; the others are added here.
    @Test func thePlanWithACacheIsAPlanToo() throws {
        let blocks = try Self.blocks(of: "Plans.md")
        let text = #"{"base": "http://h", "run": "prices", "# + (try #require(blocks.last)) + "}"
        #expect(blocks.count == 2)
        #expect(try PlanReader(path: "manual", text: Data(text.utf8)).plan().root.names == ["prices"])
    }

    @Test func theScriptOfTheManualIsAScript() throws {
        let block = try #require(try Self.blocks(of: "TestingYourCode.md").first)
        let rules = try LoopbackScript.rules(json: Data(block.utf8))
        #expect(rules.map(\.place) == [.path("/cut"), .path("/slow"), .connections(2...3)])
        #expect(rules.map(\.uses) == [nil, 2, nil])
    }

    @Test func everyStepOfAScriptIsInTheManual() throws {
        let page = try String(contentsOfFile: Self.articles + "/TestingYourCode.md", encoding: .utf8)
        let plain = [
            "expectHead", "expectBody", "expectClose", "close", "drop", "reset", "halfClose", "stopReading",
            "keepOpen", "serve", "restart", "startTLS", "plain", "stallHandshake", "closeHandshake",
        ]
        for name in plain {
            #expect(throws: Never.self) {
                try LoopbackScript.rules(json: Data(#"{"scripts":[{"steps":["\#(name)"]}]}"#.utf8))
            }
            #expect(page.contains("\"\(name)\""), "\(name)")
        }
        for name in ["send", "sendBase64", "expectBytes", "pattern", "drip", "pause", "wait", "mark"] {
            #expect(page.contains("{\"\(name)\":"), "\(name)")
        }
    }
}
