import Ferry
import Foundation
import Testing

@testable import FerryCommand

/// The format of plans is defined twice, by the reader and by a schema. These tests compare the two, and so does every
/// test that reads its plan with `PlanSchema`.
@Suite struct PlanSchemaTests {
    @Test func theExamplesAreAsItSays() throws {
        let folder = PlanSchema.folder + "/Examples"
        let files = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".json") }
        #expect(files.count >= 4)
        for file in files {
            _ = try PlanSchema.plan(String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8))
        }
    }

    /// The members that the reader lists are those that the schema describes.
    @Test(arguments: [
        ("", #"{"zzz": 1}"#),
        ("/properties/cache", #"{"cache": {"zzz": 1}, "requests": {}, "run": {"chain": []}}"#),
        ("/$defs/request", #"{"requests": {"a": {"zzz": 1}}, "run": "a"}"#),
        (
            "/$defs/policy",
            #"{"cache": {"dir": "/x"}, "requests": {"a": {"path": "/", "cache": {"zzz": 1}}}, "run": "a"}"#
        ),
        ("/$defs/expectation", #"{"requests": {"a": {"path": "/", "expect": {"zzz": 1}}}, "run": "a"}"#),
        ("/$defs/step", #"{"requests": {}, "run": {"zzz": 1}}"#),
    ]) func membersAreTheReaders(_ pointer: String, _ text: String) throws {
        let file = try PlanSchema.document.get()
        let place = try #require(file.value(atPointer: pointer))
        let objects = place["anyOf"]?.array.map { Array($0) } ?? [place]
        let described = Set(objects.flatMap { $0["properties"]?.object?.map(\.key) ?? [] })
        do {
            _ = try PlanReader(path: "p.json", text: Data(text.utf8)).plan()
            Issue.record("it was taken")
        } catch let error as InputError {
            let list = try #require(error.message.components(separatedBy: "; members are ").last)
            #expect(described == Set(list.components(separatedBy: ", ")), "\(error.message)")
        }
        #expect(throws: (any Error).self) { try PlanSchema.whole.get().check(JSON(parsing: text)) }
    }

    @Test(arguments: [
        #"{"run": {"chain": []}}"#, #"{"requests": {}}"#, #"[]"#, #"{"requests": {}, "run": 1}"#,
        #"{"requests": {"a": 1}, "run": "a"}"#, #"{"requests": {"a": {}}, "run": "a"}"#,
        #"{"requests": {"a": "/"}, "run": {"request": "a", "repeat": 0}}"#,
        #"{"requests": {"a": "/"}, "run": {"request": "a", "deadline": 1}}"#,
        #"{"requests": {"a": "/"}, "run": {"request": {"chain": ["a"]}}}"#,
        #"{"requests": {"a": "/"}, "run": {"chain": ["a"], "batch": ["a"]}}"#,
        #"{"requests": {"a": "/"}, "run": {"chain": ["a"], "atMost": 2}}"#,
        #"{"requests": {"a": "/"}, "run": {"batch": ["a"], "atMost": 0}}"#,
        #"{"requests": {"a": "/"}, "run": {"chain": [{"batch": [{"chain": [7]}]}]}}"#,
        #"{"requests": {"a": {"path": "/", "retries": 101}}, "run": "a"}"#,
        #"{"requests": {"a": {"path": "/", "timeout": 0}}, "run": "a"}"#,
        #"{"requests": {"a": {"path": "/", "priority": "top"}}, "run": "a"}"#,
        #"{"requests": {"a": {"path": "/", "query": {"x": []}}}, "run": "a"}"#,
        #"{"requests": {"a": {"path": "/", "capture": {"x": "y"}}}, "run": "a"}"#,
        #"{"requests": {"a": {"path": "/", "expect": {"status": 99}}}, "run": "a"}"#,
        #"{"requests": {"a": {"path": "/", "expect": {"status": "2xx"}}}, "run": "a"}"#,
        #"{"requests": {"a": {"path": "/", "expect": {"status": [[200]]}}}, "run": "a"}"#,
        #"{"requests": {"a": {"path": "/", "expect": {"status": []}}}, "run": "a"}"#,
        #"{"requests": {"a": {"path": "/", "expect": {"schema": 7}}}, "run": "a"}"#,
        #"{"cache": {"dir": ""}, "requests": {}, "run": {"chain": []}}"#,
        #"{"cache": {"dir": "/x"}, "requests": {"a": {"path": "/", "cache": {"ttl": 1, "mode": "never"}}}, "run": "a"}"#,
    ]) func whatItRefusesTheReaderRefuses(_ text: String) throws {
        let json = try JSON(parsing: text)
        #expect(throws: (any Error).self, "the schema") { try PlanSchema.whole.get().check(json) }
        #expect(throws: InputError.self, "the reader") {
            try PlanReader(path: "p.json", text: Data(text.utf8)).plan()
        }
    }

    @Test func aPlanMayNameItsSchema() throws {
        _ = try PlanSchema.plan(#"{"$schema": "plan.schema.json", "requests": {"a": "/"}, "run": "a"}"#)
    }
}
