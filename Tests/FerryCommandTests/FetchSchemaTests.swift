import Ferry
import FerryTesting
import Testing

@testable import FerryCommand

/// `ferry fetch --schema`.
@Suite(.timeLimit(.minutes(2))) struct FetchSchemaTests {
    private static let schema = """
        {
          "type": "array",
          "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
        }
        """

    private func fetch(_ arguments: String..., body: String, status: Int = 200, schema: String = Self.schema)
        async throws -> (output: String, said: String, code: ExitCode)
    {
        try await withLoopbackServer { server in
            server.handle("/x") { _ in LoopbackResponse(status: status, text: body) }
            let file = try TemporaryFile(Array(schema.utf8))
            let line = [server.baseURL + "/x", "--schema", file.path] + arguments
            let plan = try FetchPlan(ParsedArguments(line, of: FetchCommand.allOptions))
            var output: [UInt8] = []
            var said = ""
            let code = await FetchCommand.send(plan) {
                output += $0
            } saying: {
                said += $0
            }
            return (String(decoding: output, as: UTF8.self), said, code)
        }
    }

    private func fault(_ schema: String) throws -> String {
        let file = try TemporaryFile(Array(schema.utf8))
        let error = #expect(throws: InputError.self) { try SchemaFile.schema(at: file.path) }
        return try #require(error?.message).replacing(file.path, with: "FILE")
    }

    @Test func aBodyThatFitsGoesOut() async throws {
        let outcome = try await fetch(body: #"[{"id": 1}]"#)
        #expect(outcome == (#"[{"id": 1}]"#, "", .success))
    }

    @Test func oneThatDoesNotFitFailsTheValidation() async throws {
        let outcome = try await fetch(body: #"[{"id": 1}, {"id": "x"}]"#)
        #expect(outcome.code == .validationFailed)
        let fault = "$[1].id: expected integer, found string"
        #expect(outcome.said == "ferry fetch: the body does not match the schema: \(fault)\n")
        #expect(outcome.output == #"[{"id": 1}, {"id": "x"}]"#, "the body is what one then wants to see")
    }

    @Test func whatIsNoJSONFailsItToo() async throws {
        var outcome = try await fetch(body: "[1")
        #expect(outcome.code == .validationFailed)
        #expect(outcome.said.hasPrefix("ferry fetch: the body is not JSON, at byte 2"))
        outcome = try await fetch(body: "")
        #expect(outcome.code == .validationFailed && outcome.said.contains("the body is not JSON"))
    }

    @Test func theStatusComesFirst() async throws {
        #expect(try await fetch(body: "no", status: 503).code == .statusNotAccepted)
        #expect(try await fetch("--status", "503", body: "no", status: 503).code == .validationFailed)
        #expect(try await fetch("--status", "503", body: "[]", status: 503).code == .success)
    }

    @Test func theReportSaysIt() async throws {
        let outcome = try await fetch("--json", body: #"[{}]"#)
        let report = try JSON(parsing: outcome.output)
        #expect(report["ok"] == false && report["status"] == 200 && report["bytes"] == 4)
        #expect(report["error"]?["code"] == "schemaMismatch")
        #expect(report["error"]?["phase"] == "processing")
        #expect(report["error"]?["message"] == "$[0].id: expected integer, found nothing")
        #expect(outcome.code == .validationFailed && outcome.said.isEmpty)
    }

    @Test func theFirstFaultOfSeveralCounts() async throws {
        #expect(try await fetch("--repeat", "2", body: "{}").code == .validationFailed)
    }

    @Test func aSchemaThatIsNoneIsNamedByFileAndLine() throws {
        #expect(try fault("{\n  \"type\": \"array\",\n}") == "FILE:3: not JSON: unexpected character or end")
        #expect(
            try fault("{\n  \"properties\": {\n    \"a\": {\n      \"formed\": \"date\"\n    }\n  }\n}")
                == "FILE:4: formed is not supported at /properties/a")
        #expect(try fault("{\"type\":\n\n\"text\"}") == "FILE:3: type is not a JSON type")
        #expect(try fault("\u{FEFF}\n[]") == "FILE:2: schema must be an object or a boolean")
        #expect(try fault("") == "FILE:1: not JSON: no value")
        #expect(try fault("{\"minLength\": 1,\n \"pattern\": \"(\"}").hasPrefix("FILE:2: pattern "))
    }

    @Test func aSchemaThatIsNoneIsABadInputFile() async throws {
        let file = try TemporaryFile(Array("{".utf8))
        #expect(await Main.run(["fetch", "http://127.0.0.1:1/", "--schema", file.path]) == .badInput)
        #expect(await Main.run(["fetch", "http://127.0.0.1:1/", "--schema", "/nonexistent/file"]) == .badInput)
    }

    @Test func aLoadIsCheckedToo() async throws {
        try await withLoopbackServer { server in
            let file = try TemporaryFile(Array(#"{"type": "object"}"#.utf8))
            func summary(_ path: String) async throws -> BenchReport {
                let line = [server.baseURL + path, "-n", "8", "-c", "2", "--schema", file.path]
                return await BenchRun(try BenchPlan(ParsedArguments(line, of: BenchCommand.allOptions))).perform()
            }
            server.handle("/fits") { _ in LoopbackResponse(json: "{}") }
            #expect(try await summary("/fits").failed == 0)
            let refused = try await summary("/hello")
            #expect(refused.failed == 8 && refused.failedBy.body == 8)
        }
    }
}
