import Ferry
import Foundation
import Testing

@testable import FerryCommand

@Suite struct PlanReaderTests {
    private func read(_ text: String) throws -> Plan { try PlanSchema.plan(text) }

    /// The error of a bad plan.
    private func complaint(_ text: String) -> String {
        do {
            _ = try PlanReader(path: "p.json", text: Data(text.utf8)).plan()
            return "none"
        } catch let error as InputError {
            return error.message
        } catch {
            return "\(error)"
        }
    }

    @Test func everyMemberIsRead() throws {
        let plan = try read(
            """
            {
              "name": "all", "base": "http://h/{{v}}", "variables": {"v": 1, "w": {"x": ["{{v}}"]}},
              "requests": {
                "a": "/a",
                "b": {"method": "DELETE", "path": "/b/{{a.json.id}}", "query": {"q": 1, "r": true}, "headers": {"X": "{{v}}"},
                      "json": {"n": [1, "{{a.status}}", null]}, "basic": "u:p", "timeout": 1.5, "deadline": 3, "retries": 2,
                      "priority": "high", "capture": {"id": "/id", "all": ""},
                      "expect": {"status": [200, "300-399"], "headers": {"Y": "z*"}, "json": {"/k": [1]},
                                 "schema": {"type": "object"}}}
              },
              "run": {"chain": ["a", {"batch": ["a", {"request": "b", "repeat": 2}], "atMost": 3, "collect": true,
                                      "deadline": 2}], "repeat": 2}
            }
            """)
        #expect(plan.name == "all" && plan.base?.source == "http://h/{{v}}")
        #expect(plan.root.names == ["a", "a", "b"] && plan.root.count == 8)
        let b = try #require(plan.requests["b"])
        #expect(b.method == .delete && b.timeout == .milliseconds(1500) && b.retries == 2 && b.priority == .high)
        #expect(b.status == [200...200, 300...399] && b.captures.map(\.name) == ["id", "all"])
        #expect(b.query.map(\.value.source) == ["1", "true"])
        #expect(plan.requests["a"]?.method == .get)
    }

    @Test(arguments: [
        #"{"repeat": 100000, "chain": [{"repeat": 100000, "chain": []}]}"#,
        #"{"repeat": 100000, "chain": [{"repeat": 2, "batch": []}]}"#,
        #"{"repeat": 2, "chain": [{"repeat": 100000, "batch": [{"chain": []}, {"chain": []}]}]}"#,
    ])
    func repeatsOfNothingAreCountedToo(run: String) {
        let text = #"{"requests": {}, "run": \#(run)}"#
        #expect(complaint(text).hasPrefix("p.json:1: more than 100000 runs"))
    }

    @Test func ofNothingThereMayBeALittle() throws {
        let plan = try read(#"{"requests": {}, "run": {"chain": [{"repeat": 1000, "chain": []}, {"batch": []}]}}"#)
        #expect(plan.root.count == 0 && plan.root.rows().isEmpty)
    }

    @Test(arguments: ["200-", "+200", "-200", "200--300", "", "2e2", "0200", "200-300-400", " 200"])
    func aStatusIsThreeDigitsOrTwoOfThem(status: String) {
        let text = #"{"requests": {"a": {"path": "/", "expect": {"status": "\#(status)"}}}, "run": "a"}"#
        #expect(complaint(text).hasPrefix("p.json:1: status: expected a code"))
    }

    @Test func aBodyMakesItAPost() throws {
        let plan = try read(#"{"requests": {"a": {"path": "/a", "body": "x"}}, "run": "a"}"#)
        #expect(plan.requests["a"]?.method == .post)
        #expect(plan.name == "p.json")
    }

    @Test(arguments: [
        ("{", "p.json:1: not JSON"),
        ("{\n  \"requests\": {},\n  \"rum\": 1}", "p.json:3: unknown member 'rum' in a plan"),
        ("{\"run\": \"a\"}", "p.json:1: a plan must have 'requests'"),
        ("{\"requests\": {\"a\": \"/\"}}", "p.json:1: a plan must have 'run'"),
        ("{\"requests\": {\"a\": \"/\"},\n\"run\": \"b\"}", "p.json:2: unknown request 'b'"),
        (
            "{\"requests\": {\"a\": \"/\"},\n\"run\": {\"chain\": [\n\"a\", \"b\"]}}",
            "p.json:3: unknown request 'b'"
        ),
        (
            "{\"requests\": {\"a\": \"/\"},\n\"run\": {\"chain\": [], \"batch\": []}}",
            "p.json:2: a step must be the name"
        ),
        (
            "{\"requests\": {\"a\": \"/\"},\n\"run\": {\"chain\": [], \"atMost\": 3}}",
            "p.json:2: 'atMost' is only for a batch"
        ),
        (
            "{\"requests\": {\"a\": \"/\"},\n\"run\": {\"batch\": [], \"atMost\": 0}}",
            "p.json:2: atMost: expected a whole number"
        ),
        (
            "{\"requests\": {\"a\": \"/\"},\n\"run\": {\"request\": \"a\", \"repeat\": -1}}",
            "p.json:2: repeat: expected a whole"
        ),
        ("{\"requests\": {\"env\": \"/\"}, \"run\": \"env\"}", "p.json:1: 'env' cannot be the name of a request"),
        ("{\"requests\": {\n\"a\": {\"method\": \"GET\"}}, \"run\": \"a\"}", "p.json:2: request 'a' has no 'path'"),
        ("{\"requests\": {\"a\": {\"path\":\n5.5e300}}, \"run\": \"a\"}", "none"),
        ("{\"requests\": {\"a\": {\"path\":\n[]}}, \"run\": \"a\"}", "p.json:2: path: expected a string, found array"),
        ("{\"requests\": {\"a\":\n\"/{{x\"}, \"run\": \"a\"}", "p.json:2: '{{' without '}}'"),
        ("{\"requests\": {\"a\":\n\"/{{x..y}}\"}, \"run\": \"a\"}", "p.json:2: '{{x..y}}' is an unknown name"),
        (
            "{\"requests\": {\"a\":\n\"/{{nobody.json.x}}\"}, \"run\": \"a\"}",
            "p.json:2: '{{nobody.json.x}}' is an unknown"
        ),
        (
            "{\"requests\": {\"a\": {\"path\": \"/\",\n\"json\": 1, \"body\": \"\"}}, \"run\": \"a\"}",
            "p.json:1: 'json' and 'body'"
        ),
        (
            "{\"requests\": {\"a\": {\"path\": \"/\",\n\"timeout\": \"soon\"}}, \"run\": \"a\"}",
            "p.json:2: timeout: expected a number of"
        ),
        (
            "{\"requests\": {\"a\": {\"path\": \"/\",\n\"priority\": \"top\"}}, \"run\": \"a\"}",
            "p.json:2: priority: expected low, normal"
        ),
        (
            "{\"requests\": {\"a\": {\"path\": \"/\",\n\"capture\": {\"x\": \"y\"}}}, \"run\": \"a\"}",
            "p.json:2: 'y' is not a JSON Pointer"
        ),
        (
            "{\"requests\": {\"a\": {\"path\": \"/\", \"capture\": {\"a\": \"/y\"}}}, \"run\": \"a\"}",
            "p.json:1: 'a' is the name of"
        ),
        (
            "{\"requests\": {\"a\": {\"path\": \"/\",\n\"expect\": {\"status\": 99}}}, \"run\": \"a\"}",
            "p.json:2: status: expected a code"
        ),
        (
            "{\"requests\": {\"a\": {\"path\": \"/\",\n\"expect\": {\"schema\":\n{\"type\": \"thing\"}}}}, \"run\": \"a\"}",
            "p.json:3: schema: type"
        ),
        (
            "{\"requests\": {\"a\": {\"path\": \"/\",\n\"pth\": 1}}, \"run\": \"a\"}",
            "p.json:2: unknown member 'pth' in a request"
        ),
        ("{\"requests\": {\"a\": \"/\",\n\"a\": \"/\"}, \"run\": \"a\"}", "p.json:2: 'a' appears twice"),
        (
            "{\"requests\": {\"a\": \"/\"},\n\"run\": {\"chain\": [{\"request\": \"a\", \"repeat\": 99999}, \"a\", \"a\"]}}",
            "p.json:2: more than"
        ),
        ("[]", "p.json:1: a plan: expected an object, found array"),
    ]) func whatIsWrongIsSaidWithItsLine(_ text: String, _ expected: String) {
        #expect(complaint(text).hasPrefix(expected), "\(complaint(text))")
    }

    @Test(arguments: [
        (#""basic": "nocolon""#, "basic: expected user:password"),
        (#""method": "G ET""#, "method: the method is not a token"),
        (#""method": """#, "method: the method is not a token"), (#""method": "CONNECT""#, "method: CONNECT cannot be"),
        (#""headers": {"A": 1, "a b": "c"}"#, "header 'a b': the name of a header field is not a token"),
        (#""headers": {"a": "b\nc"}"#, "header 'a': the value of the header field a contains a control character"),
        (#""bearer": "a\nb""#, "bearer: "), (#""body": "x", "method": "HEAD""#, "a HEAD request cannot have a body"),
        (#""json": {}, "method": "HEAD""#, "a HEAD request cannot have a body"),
        (#""form": {}, "method": "HEAD""#, "none"), (#""basic": "{{v}}", "headers": {"a": "{{v}}"}"#, "none"),
        (#""method": "PURGE", "body": "x", "headers": {"Content-Length": 1}"#, "none"),
    ]) func whatTheEngineWouldRefuseIsSaidWithItsLine(_ members: String, _ expected: String) {
        let found = complaint(
            "{\"variables\": {\"v\": \"x\"}, \"requests\": {\"a\": {\"path\": \"/\",\n\(members)}}, \"run\": \"a\"}")
        #expect(found.hasPrefix(expected == "none" ? expected : "p.json:2: " + expected), "\(found)")
    }

    @Test func aFixedURLIsLookedAtToo() {
        let text = "{\"requests\": {\"a\":\n\"http://a b/\"}, \"run\": \"a\"}"
        #expect(complaint(text) == "p.json:2: path: invalid URL \"http://a b/\": space at position 9")
        #expect(complaint(#"{"variables": {"v": "x"}, "requests": {"a": "http://{{v}} /"}, "run": "a"}"#) == "none")
    }

    @Test func filesThatCannotBeReadAreSaidSo() {
        #expect(throws: InputError("cannot read /nowhere/plan.json: No such file or directory")) {
            try PlanReader.plan(at: "/nowhere/plan.json")
        }
    }

    @Test func placesAreFilledInByTheirKind() throws {
        let state = try PlanState(
            variables: [
                ("a", try PlanJSON(["n": 7, "list": ["x", "y"], "t": true])),
                ("b", try PlanJSON("{{a.n}}-{{a.list.1}}")),
                ("whole", try PlanJSON("{{a.n}}")),
            ], overruledBy: [("c", "given")])
        func text(_ source: String) throws -> String { try state.text(try PlanTemplate(source)) }
        #expect(try text("{{ b }}/{{c}}") == "7-y/given")
        #expect(try text("{{whole}} {{a.t}} {{a.list}}") == "7 true [\"x\",\"y\"]")
        #expect(try text("{{env.FERRY_SURELY_NOT_SET|rather this}}") == "rather this")
        #expect(try text("{{new.counter}}{{new.counter}}") == "12")
        #expect(try text("{{new.uuid}}").count == 36)
        #expect(try state.json(try PlanJSON(["{{a.n}}", "{{a.n}}!"])) == [7, "7!"])
        for missing in [
            "{{a.nothing}}", "{{a.list.9}}", "{{a.list.-1}}", "{{env.FERRY_SURELY_NOT_SET}}", "{{new.thing}}",
        ] {
            #expect(throws: PlanFault.self) { try text(missing) }
        }
    }
}
