import Ferry
import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// `ferry bench --har`
@Suite(.timeLimit(.minutes(2))) struct ArchiveBenchTests {
    private func entry(_ url: String, at milliseconds: Int, method: String = "GET", more: String = "") -> String {
        let time = "2026-01-01T12:00:00.\(String(1000 + milliseconds).dropFirst())Z"
        return #"""
            {"startedDateTime": "\#(time)", "time": 1, "cache": {}, "timings": {"send": 0, "wait": 1, "receive": 0},
             "request": {"method": "\#(method)", "url": "\#(url)", "httpVersion": "HTTP/2",
              "headers": [{"name": ":authority", "value": "h"}, {"name": "Host", "value": "h"},
               {"name": "X-A", "value": "b"}]\#(more)},
             "response": {"status": 200, "statusText": "", "httpVersion": "HTTP/2", "headers": [], "content": {"size": 0}}}
            """#
    }

    private func file(_ entries: String...) throws -> TemporaryFile {
        try TemporaryFile(Array(#"{"log": {"version": "1.2", "entries": [\#(entries.joined(separator: ","))]}}"#.utf8))
    }

    private func end(_ file: TemporaryFile, _ more: String...) throws -> ChildProcess.End {
        try FerryProgram.run(["bench", "--har", file.path, "--json"] + more)
    }

    @Test func eachRequestIsSentAtItsTime() async throws {
        try await withLoopbackServer { server in
            let post = #", "postData": {"mimeType": "text/plain", "text": "abc"}"#
            let file = try file(
                entry(server.baseURL + "/echo/body", at: 900, method: "POST", more: post),
                entry(server.baseURL + "/hello", at: 0), entry(server.baseURL + "/redirect/1", at: 450))
            let end = try end(file)
            #expect(end.code == 0, "\(end.output)")
            let json = try JSON(parsing: end.output)
            #expect(json["requests"]?.int == 3 && json["ok"]?.int == 3 && json["failed"]?.int == 0)
            #expect((json["seconds"]?.double ?? 0) >= 0.9 && json["url"]?.string == file.path)
            #expect(json.value(atPointer: "/model/kind")?.string == "open")
            let requests = server.requests
            #expect(requests.map(\.target) == ["/hello", "/redirect/1", "/echo/body"])
            #expect(requests.map(\.method) == ["GET", "GET", "POST"])
            #expect(requests.allSatisfy { $0.headers["X-A"] == "b" && $0.headers["Host"] != "h" })
            #expect(json["bytes"]?.int ?? 0 >= 15, "the echo has the body")
            let root = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
            let schema = try SchemaFile.schema(at: root + "/Sources/FerryCommand/Schemas/bench-report.schema.json")
            try schema.check(json)
        }
    }

    /// Of two requests recorded an hour apart the second does not wait.
    @Test func unpacedTimesDoNotMatter() async throws {
        try await withLoopbackServer { server in
            let late = entry(server.baseURL + "/status/404", at: 0).replacing("T12:00:00.000Z", with: "T13:00:00Z")
            let end = try end(file(late, entry(server.baseURL + "/hello", at: 0)), "--unpaced", "-c", "1")
            #expect(end.code == 5, "\(end.output)")
            #expect(server.requests.map(\.target) == ["/hello", "/status/404"])
            let json = try JSON(parsing: end.output)
            #expect(json["failed"]?.int == 1 && json.value(atPointer: "/model/kind")?.string == "closed")
        }
    }

    @Test func invalidEntriesAreNamed() throws {
        let good = entry("http://127.0.0.1:1/", at: 0)
        func said(_ file: TemporaryFile) throws -> String {
            let end = try end(file)
            #expect(end.code == 2, "\(end.output)")
            return end.output.replacing(file.path, with: "FILE")
        }
        #expect(
            try said(file(good, good.replacing("2026-01-01T", with: "yesterday ")))
                .contains("FILE: entry 2: startedDateTime is not an ISO 8601 time"))
        let unnamed = try said(file(good, good, good.replacing(#""method": "GET", "#, with: "")))
        #expect(unnamed.contains("FILE: entry 3: missing request.method"), "\(unnamed)")
        #expect(try said(file(entry("ftp://h/", at: 0))).contains("FILE: entry 1: "))
        for year in ["0001", "2020"] {
            #expect(
                try said(file(good, good.replacing("2026-", with: year + "-")))
                    .contains("FILE: entry 1: startedDateTime '2026-01-01T12:00:00.000Z' is more than a year after"))
        }
        let form = #", "postData": {"mimeType": "application/x-www-form-urlencoded", "params": []}"#
        for size in ["", #", "bodySize": -1"#, #", "bodySize": 3"#] {
            #expect(
                try said(file(entry("http://127.0.0.1:1/", at: 0, method: "POST", more: form + size)))
                    .contains("FILE: entry 1: the file does not have its body"))
        }
        #expect(try said(file()).contains("FILE: has no entries"))
        #expect(try said(TemporaryFile(Array("{".utf8))).contains("FILE: is not JSON"))
        #expect(try said(TemporaryFile(Array("{}".utf8))).contains("FILE: missing log"))
    }

    @Test func unpacedOutOfRangeDatesAreAccepted() async throws {
        try await withLoopbackServer { server in
            let good = entry(server.baseURL + "/hello", at: 0)
            let end = try end(file(good, good.replacing("2026-", with: "0001-")), "--unpaced")
            #expect(end.code == 0, "\(end.output)")
            #expect(server.requestCount == 2)
        }
    }

    @Test func incompatibleOptionsAreNamed() async throws {
        #expect(await Main.run(["bench", "http://h/", "--har", "x"]) == .usage)
        #expect(await Main.run(["bench", "--har", "x", "-n", "3"]) == .usage)
        #expect(await Main.run(["bench", "--har", "x", "-c", "3"]) == .usage)
        #expect(await Main.run(["bench", "http://h/", "--unpaced"]) == .usage)
        #expect(await Main.run(["bench", "--har", "/nowhere"]) == .badInput)
    }
}
