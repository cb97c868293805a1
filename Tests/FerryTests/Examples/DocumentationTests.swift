import Foundation
import Testing

@testable import FerryTestSupport

/// All code in the manual is compiled.
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

    /// The fenced Swift blocks, without their imports.
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

    /// The examples in the comments of public declarations: indented by four more spaces, or fenced.
    private static func examples(of file: String) throws -> [String] {
        var examples: [String] = []
        var example: [Substring] = []
        var isFenced = false
        func end() {
            if !example.allSatisfy(\.isEmpty) { examples.append(example.joined(separator: "\n")) }
            example = []
        }
        for line in try String(contentsOfFile: file, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        {
            let text = line.drop { $0 == " " }
            guard text.hasPrefix("///") else {
                end()
                isFenced = false
                continue
            }
            let comment = text.dropFirst(3)
            if comment.hasPrefix(" ```") {
                end()
                isFenced.toggle()
            } else if isFenced || comment.hasPrefix("     ") || comment.isEmpty && !example.isEmpty {
                example.append(comment)
            } else {
                end()
            }
        }
        end()
        return examples
    }

    @Test(arguments: ["Ferry", "FerryJSON", "FerryOTLP", "FerryRedis", "FerryXML", "FerryTesting"])
    func everyExampleOfTheReferenceIsCompiled(module: String) throws {
        let folder = Self.root + "/Sources/" + module
        let files = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
        var count = 0
        for file in files where file.hasSuffix(".swift") {
            for example in try Self.examples(of: folder + "/" + file) where !example.contains("──▶") {
                let text = Self.withoutSpace(example)
                #expect(Self.sources.contains { $0.contains(text) }, "\(file): \(example)")
                count += 1
            }
        }
        #expect(count > 0)
    }

    /// The built manual drops cells beyond those of a table's head; a literal bar is `\\|`.
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

    // MARK: The container

    /// The two stages of the Dockerfile, as words.
    private static func stages() throws -> (build: Set<String>, run: Set<String>) {
        let page = try String(contentsOfFile: articles + "/GettingStarted.md", encoding: .utf8)
        let file = try #require(page.split(separator: "```").first { $0.contains("\nFROM ") })
        let stages = file.split(separator: "FROM ").map { Set($0.split { " \n\\".contains($0) }.map(String.init)) }
        try #require(stages.count >= 2)
        return (stages[stages.count - 2], stages[stages.count - 1])
    }

    @Test func theContainerBuildsWithThePackagesThatSetupInstalls() throws {
        let setup = try String(contentsOfFile: Self.root + "/.ci/setup", encoding: .utf8)
        let list = try #require(setup.firstMatch(of: #/\npackages=\(([^)]*)\)/#)).1
        let packages = Set(list.split { " \n".contains($0) }.map(String.init))
        let named = try Self.stages().build
        // Only FerryRedis needs hiredis.
        #expect(packages.count > 8 && packages.subtracting(named) == ["libhiredis-dev"])
    }

    /// Debian 12 names most of these packages after the library and its version.
    @Test func theContainerRunsWithTheLibrariesThatThisProcessHasLoaded() throws {
        let system = try String(contentsOfFile: "/etc/os-release", encoding: .utf8)
        if !system.contains("VERSION_ID=\"12\"") || !system.contains("ID=debian") { return }
        let file = try #require(FileHandle(forReadingAtPath: "/proc/self/maps"))
        let maps = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        let (words, packages) = (maps.split { " \n".contains($0) }, try Self.stages().run)
        let others = ["z": "zlib1g", "brotlidec": "libbrotli1", "brotlienc": "libbrotli1", "crypto": "libssl3"]
        for name in [
            "curl", "uv", "simdjson", "re2", "sqlite3", "z", "brotlidec", "brotlienc", "zstd", "ssl", "crypto",
            "stdc++",
        ] {
            let library = "lib\(name)"
            let path = try #require(words.first { $0.contains("/\(library).so.") }, "\(library)")
            // The first number of a file's version is the whole version of the link that programs use.
            let version = try #require(path.split(separator: ".so.").last?.split(separator: ".").first)
            let package = library + (library.last?.isNumber == true ? "-" : "") + version
            #expect(packages.contains(others[name] ?? package), "\(path)")
        }
    }
}
