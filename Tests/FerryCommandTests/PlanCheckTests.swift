import Ferry
import Foundation
import Testing

@testable import FerryCommand

/// Placeholders in a plan that can never have a value: they are found before anything is sent.
@Suite struct PlanCheckTests {
    /// The errors of a bad plan, when it is read or started.
    private func complaint(_ text: String, values: [(name: String, value: String)] = []) -> String {
        do {
            _ = try PlanStart(PlanReader(path: "p.json", text: Data(text.utf8)).plan(), values: values)
            return "none"
        } catch let error as InputError {
            return error.message
        } catch {
            return "\(error)"
        }
    }

    private func complaint(variables: String, base: String = "http://h") -> String {
        complaint(
            "{\"variables\": {\(variables)},\n\"base\": \"\(base)\", \"requests\": {\"r\": \"/\"}, \"run\": \"r\"}")
    }

    @Test(arguments: [
        ("\"a\":\n\"{{nobody}}\"", "p.json:2: '{{nobody}}' is not a variable"),
        ("\"a\": {\"x\": [1,\n\"{{nobody}}\"]}", "p.json:2: '{{nobody}}' is not a variable"),
        ("\"a\":\n\"{{b}}\", \"b\": 1", "p.json:2: '{{b}}' names a variable that is defined later"),
        ("\"a\":\n\"{{a}}\"", "p.json:2: '{{a}}' names a variable that is defined later"),
        ("\"a\":\n\"{{r.status}}\"", "p.json:2: '{{r.status}}' is used before any request has run"),
        ("\"a\":\n\"{{new.foo}}\"", "p.json:2: '{{new.foo}}' is unknown"),
        ("\"a\":\n\"{{new.foo|x}}\"", "p.json:2: '{{new.foo}}' is unknown"),
        ("\"a\":\n\"{{env.FERRY_SURELY_NOT_SET}}\"", "p.json:2: '{{env.FERRY_SURELY_NOT_SET}}' has no value"),
        ("\"a\": {\"x\": 1}, \"b\":\n\"{{a.y}}\"", "p.json:2: '{{a.y}}' has no value"),
        ("\"a\": {\"x\": 1}, \"b\": \"{{a.x}}{{nobody|}}{{new.uuid}}\"", "none"),
    ]) func variablesAreMadeOfWhatIsBeforeThem(_ variables: String, _ expected: String) {
        #expect(complaint(variables: variables).hasPrefix(expected), "\(complaint(variables: variables))")
    }

    @Test(arguments: [
        ("http://{{nobody}}", "p.json:2: '{{nobody}}' is not a variable"),
        ("http://{{r.text}}", "p.json:2: '{{r.text}}' is used before any request has run"),
        ("http://{{env.FERRY_SURELY_NOT_SET}}", "p.json:2: '{{env.FERRY_SURELY_NOT_SET}}' has no value"),
        ("http://{{env}}", "p.json:2: '{{env}}' must name an environment variable"),
        ("http://{{v.host}}", "p.json:2: '{{v.host}}' has no value"),
        ("http://{{v}}", "none"),
    ]) func theBaseIsMadeOfVariables(_ base: String, _ expected: String) {
        let found = complaint(variables: "\"v\": 1", base: base)
        #expect(found.hasPrefix(expected), "\(found)")
    }

    @Test func theBaseIsNotAskedForWhereThereIsAnother() throws {
        let text = #"{"base": "{{env.FERRY_SURELY_NOT_SET}}", "requests": {"r": "/"}, "run": "r"}"#
        let plan = try PlanReader(path: "p.json", text: Data(text.utf8)).plan()
        #expect(try PlanStart(plan, base: "http://h").configuration.baseURL == "http://h")
        #expect(throws: InputError.self) { try PlanStart(plan) }
    }

    @Test(arguments: [
        ("{{new.foo}}", "'{{new.foo}}' is unknown: 'new' has uuid, time, number and counter"),
        ("{{new}}", "'{{new}}' is unknown"),
        ("{{b.foo}}", "'{{b.foo}}' is not a part of a response: 'b' has json, text, status and headers"),
        ("{{b.foo|x}}", "'{{b.foo}}' is not a part of a response"),
        ("{{b}}", "'{{b}}' is not a part of a response"),
        ("{{b.headers}}", "'{{b.headers}}' must name a header field"),
        ("{{b.status.code}}", "'{{b.status.code}}' names a member of a plain value"),
        ("{{nobody}}", "'{{nobody}}' is an unknown name"),
        ("{{env.FERRY_SURELY_NOT_SET}}", "'{{env.FERRY_SURELY_NOT_SET}}' has no value"),
        ("{{v.x.z}}", "'{{v.x.z}}' has no value"),
        ("{{v.x.y}}{{b.json.z}}{{b.headers.A}}{{env.FERRY_SURELY_NOT_SET|x}}", "none"),
    ]) func wordsThatCannotBeAPlaceAreSaidOfRequests(_ place: String, _ expected: String) {
        let found = complaint(
            "{\"variables\": {\"v\": {\"x\": {\"y\": 1}}}, \"requests\": {\"b\": \"/\", \"a\": {\"path\": \"/\", \"json\": {\"k\": [\n\"\(place)\"]}}},"
                + " \"run\": {\"chain\": [\"b\", \"a\"]}}")
        #expect(found.hasPrefix(expected == "none" ? expected : "p.json:2: " + expected), "\(found)")
    }

    @Test(arguments: [
        (#"{"chain": ["b", "a"]}"#, "none"),
        (#"{"chain": ["a", "b"]}"#, "'{{b.status}}' has no value in 'a': 'b' runs later"),
        (#""a""#, "'{{b.status}}' has no value in 'a': 'b' never runs"),
        (#"{"batch": ["b", "a"]}"#, "'{{b.status}}' has no value in 'a': 'b' runs at the same time"),
        (#"{"batch": ["b", "a"], "atMost": 2}"#, "'{{b.status}}' has no value in 'a': 'b' runs at the same time"),
        // With one at a time the members run in sequence.
        (#"{"batch": ["b", "a"], "atMost": 1}"#, "none"),
        (#"{"batch": ["a", "b"], "atMost": 1}"#, "'{{b.status}}' has no value in 'a': 'b' runs later"),
        (
            #"{"batch": [{"chain": ["c", "b"]}, {"chain": ["c", {"request": "a", "repeat": 2}]}]}"#,
            "'{{b.status}}' has no value in 'a': 'b' runs at the same time"
        ),
        (#"{"chain": [{"batch": ["c", {"batch": ["b"]}]}, "a"]}"#, "none"),
        (#"{"chain": [{"batch": ["b", "c"], "collect": true}, {"batch": ["a", "a"]}]}"#, "none"),
        (#"{"batch": ["c", {"chain": ["b", "a"]}]}"#, "none"),
        (#"{"chain": ["c", "a"], "repeat": 2}"#, "'{{b.status}}' has no value in 'a': 'b' never runs"),
        (#"{"chain": ["a", "b"], "repeat": 2}"#, "'{{b.status}}' has no value in 'a': 'b' runs later"),
        (#"{"batch": ["b", {"chain": ["b", "a"]}]}"#, "none"),
        (
            #"{"chain": [{"batch": ["c", {"chain": ["a", "c"]}]}, "b"]}"#,
            "'{{b.status}}' has no value in 'a': 'b' runs later"
        ),
    ]) func anAnswerIsThereOnceItsRequestHasRun(_ run: String, _ expected: String) {
        let found = complaint(
            "{\"requests\": {\"b\": \"/\", \"c\": \"/\", \"a\":\n\"/{{b.status}}\"}, \"run\": \(run)}")
        #expect(found == (expected == "none" ? expected : "p.json:2: " + expected), "\(run)")
    }

    @Test(arguments: [
        (#"["b", "a"]"#, "none"), (#"["c", "a"]"#, "none"),
        (#"["a", "b", "c"]"#, "'{{t}}' has no value in 'a': 'b', which captures it, runs later"),
        (#"["a", "c"]"#, "'{{t}}' has no value in 'a': 'c', which captures it, runs later"),
        (#"["a"]"#, "'{{t}}' has no value in 'a': 'b', which captures it, never runs"),
        (#"[{"batch": ["a", "c"]}]"#, "'{{t}}' has no value in 'a': 'c', which captures it, runs at the same time"),
        (#"["s"]"#, "'{{u}}' has no value in 's': 's', which captures it, has no response before it runs"),
        (#"[{"request": "own", "repeat": 2}]"#, "none"),
    ]) func acapturedValueIsThereOnceItIsCaptured(_ run: String, _ expected: String) {
        let found = complaint(
            """
            {"requests": {"b": {"path": "/", "capture": {"t": "/t"}}, "c": {"path": "/", "capture": {"t": "/u"}},
             "own": {"path": "/{{own.json.next|first}}"},
             "s": {"path": "/{{u}}", "capture": {"u": "/u"}},
             "a": "/{{t}}{{t}}"}, "run": {"chain": \(run)}}
            """)
        #expect(found.hasSuffix(expected), "\(found)")
    }

    @Test func aVariableThatIsCapturedAnewIsNotLookedInto() {
        let text = #"""
            {"variables": {"v": 1}, "requests": {"b": {"path": "/", "capture": {"v": "/t"}}, "a": "/{{v.x}}"},
             "run": {"chain": ["b", "a"]}}
            """#
        #expect(complaint(text) == "none")
    }

    @Test func whatIsGivenIsNotMade() throws {
        let text = #"""
            {"variables": {"token": "{{env.FERRY_SURELY_NOT_SET}}", "both": "{{token}}!"}, "base": "{{both}}",
             "requests": {"r": "/"}, "run": "r"}
            """#
        #expect(complaint(text).contains("p.json:1: '{{env.FERRY_SURELY_NOT_SET}}' has no value"))
        let plan = try PlanReader(path: "p.json", text: Data(text.utf8)).plan()
        let start = try PlanStart(plan, values: [("token", "x"), ("r", "not an answer")])
        #expect(start.configuration.baseURL == "x!")
        #expect(start.state.values(of: ["r"]).isEmpty)
    }

    @Test(arguments: [
        ("new", "'new' cannot be the name of a value"), ("a.b", "'a.b' cannot be the name of a value"),
        ("r", "'r' is the name of both a request and a value"),
    ]) func namesThatCannotBeInAPlaceAreRefused(_ name: String, _ expected: String) {
        #expect(
            complaint("{\"variables\": {\"v\": 1,\n\"\(name)\": 1}, \"requests\": {\"r\": \"/\"}, \"run\": \"r\"}")
                == "p.json:2: " + expected)
        #expect(
            complaint(
                "{\"requests\": {\"r\": {\"path\": \"/\", \"capture\": {\n\"\(name)\": \"/x\"}}}, \"run\": \"r\"}")
                == "p.json:2: " + expected)
    }
}
