import Ferry
import FerryMeasurement
import FerryTesting
import Foundation
import Testing

@testable import FerryCommand

/// `--from-curl` sends what curl sends.
@Suite(.timeLimit(.minutes(2))) struct CurlExchangeTests {
    @Test(arguments: [
        "curl URL",
        "curl 'URL?q=a%20b' -H 'X-A: 1' -H 'X-B;' -H 'Accept:'",
        "curl URL -d a=1 -d 'b=2 3'",
        "curl URL -X PUT --data-raw '{\"a\": \"ü\"}' -H 'Content-Type: application/json'",
        "curl URL --json '{\"a\": 1}' -u 'kim:p:w'",
        "curl -G URL -d a=1 --data-urlencode 'q=x&y z'",
        "curl -I URL -A 'me/1.0' -e http://from.test/ -b 'k=v'",
        "curl -X DELETE URL --oauth2-bearer t0k",
        "curl URL -X POST -d ''",
        "curl URL -d x -H 'Content-Type:'",
    ])
    func itIsTheSameExchange(_ text: String) async throws {
        try await withLoopbackServer { server in
            let text = text.replacing("URL", with: server.baseURL + "/hello")
            let end = try ChildProcess(["/bin/sh", "-c", text + " --silent --output /dev/null --noproxy '*'"]).finish()
            #expect(end.code == 0)
            let order = try BenchOrder(curl: text)
            let plan = try BenchPlan(
                ParsedArguments(["-n", "1", "-c", "1", "--from-curl", text], of: BenchCommand.allOptions))
            #expect(await BenchRun(plan).perform().ok == 1, "\(order.request.path)")
            let (curls, ours) = (try #require(server.requests.first), try #require(server.requests.last))
            #expect(server.requests.count == 2 && ours.method == curls.method && ours.target == curls.target)
            #expect(ours.text == curls.text)
            #expect(fields(ours) == fields(curls))
        }
    }

    @Test func theDataMayComeThroughAPipe() async throws {
        try await withLoopbackServer { server in
            let text = "curl \(server.baseURL)/echo -d @/dev/stdin"
            let line = #"echo a=1 | "$0" bench -n 1 -c 1 --from-curl "$1" 2>&1"#
            let end = try ChildProcess(["/bin/sh", "-c", line, try FerryProgram.path, text]).finish()
            #expect(end.code == 0 && server.requests.map(\.text) == ["a=1"], "\(end)")
        }
    }

    /// Form bodies are compared without the boundary, which each client chooses.
    @Test func aFormIsTheSameExchange() async throws {
        let (text, page) = (try TemporaryFile(Array("a text\r\n".utf8)), try TemporaryFile(Array("{}".utf8)))
        let line = """
            curl URL -F 'a=ü b' -F 'c=d;type=x/y' -F 'e=f;filename=g.png' -F 'h=@\(text.path)' -F 'i=<\(text.path)' \
            -F 'j=@\(page.path);filename="q;r.txt"' -F 'k=@\(page.path);type=application/json;filename=l' \
            -F 'm="x;y"' -F 'n=<\(text.path);filename=o.json' --form-string 'p=@q;type=r'
            """
        try await withLoopbackServer { server in
            let line = line.replacing("URL", with: server.baseURL + "/hello")
            let end = try ChildProcess(["/bin/sh", "-c", line + " --silent --output /dev/null --noproxy '*'"]).finish()
            #expect(end.code == 0)
            let plan = try BenchPlan(
                ParsedArguments(["-n", "1", "-c", "1", "--from-curl", line], of: BenchCommand.allOptions))
            #expect(await BenchRun(plan).perform().ok == 1)
            let (curls, ours) = (try #require(server.requests.first), try #require(server.requests.last))
            #expect(server.requests.count == 2 && ours.method == "POST" && curls.method == "POST")
            #expect(try parts(ours) == parts(curls))
        }
    }

    private func parts(_ request: LoopbackRequest) throws -> [String] {
        let type = try #require(request.headers["Content-Type"])
        let boundary = try #require(type.split(separator: "boundary=").last)
        return request.text.components(separatedBy: "--" + boundary)
    }

    /// Everything except the fields that differ between clients.
    private func fields(_ request: LoopbackRequest) -> [String] {
        request.headers.fields.map { "\($0.name.lowercased()): \($0.value)" }
            .filter { !$0.hasPrefix("user-agent: curl/") && $0 != "user-agent: Ferry" }.sorted()
    }
}
