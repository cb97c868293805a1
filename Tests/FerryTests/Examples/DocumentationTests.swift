import Foundation
import Testing

/// What the manual shows as code is code that is compiled.
@Suite struct DocumentationTests {
    private static let root = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    private static let articles = root + "/Sources/Ferry/Documentation.docc"

    /// The files whose code may be quoted.
    private static let sources: [String] = {
        let folder = root + "/Tests/FerryTests/Examples"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let files = names.filter { $0.hasSuffix("Examples.swift") }.map { folder + "/" + $0 }
        return (files + [root + "/Tests/FerryTests/ReadmeTests.swift"]).compactMap { path in
            (try? String(contentsOfFile: path, encoding: .utf8)).map(withoutSpace)
        }
    }()

    private static func withoutSpace(_ text: String) -> String { text.filter { !$0.isWhitespace } }

    private static func pages() throws -> [String] {
        let names = try FileManager.default.contentsOfDirectory(atPath: articles)
        return names.filter { $0.hasSuffix(".md") }.map { articles + "/" + $0 } + [root + "/README.md"]
    }

    /// The fenced blocks of Swift, without their imports.
    private static func blocks(of page: String) throws -> [String] {
        let lines = try String(contentsOfFile: page, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        var blocks: [String] = []
        var block: [Substring]?
        for line in lines {
            if block == nil, line == "```swift" {
                block = []
            } else if line == "```", let done = block {
                blocks.append(done.filter { !$0.hasPrefix("import ") }.joined(separator: "\n"))
                block = nil
            } else {
                block?.append(line)
            }
        }
        return blocks
    }

    @Test func everyBlockOfSwiftIsCompiled() throws {
        var count = 0
        for page in try Self.pages() {
            for block in try Self.blocks(of: page) {
                let text = Self.withoutSpace(block)
                #expect(Self.sources.contains { $0.contains(text) }, "\(page): \(block)")
                count += 1
            }
        }
        #expect(count > 40)
    }

    /// Cells beyond those of its head are left out of a table in the built manual; a bar that is meant is `\\|`.
    @Test func everyLineOfATableHasTheCellsOfItsHead() throws {
        for page in try Self.pages() {
            let lines = try String(contentsOfFile: page, encoding: .utf8).split(
                separator: "\n", omittingEmptySubsequences: false)
            var head: Int?
            for line in lines {
                guard line.hasPrefix("|") else {
                    head = nil
                    continue
                }
                let count = line.replacing("\\|", with: "").count { $0 == "|" }
                #expect(count == head ?? count, "\(page): \(line)")
                head = head ?? count
            }
        }
    }

    @Test func everyArticleIsOnTheFrontPage() throws {
        let front = try String(contentsOfFile: Self.articles + "/Ferry.md", encoding: .utf8)
        for page in try Self.pages() where page.hasPrefix(Self.articles) && !page.hasSuffix("/Ferry.md") {
            let name = page.split(separator: "/").last.map { $0.dropLast(3) } ?? ""
            #expect(front.contains("<doc:\(name)>") || front.contains("``/\(name)``"), "\(name)")
        }
    }
}
