import FerryTesting
import Testing

extension LoopbackTests {
    @Suite("LoopbackServer: routes", .timeLimit(.minutes(1)))
    struct LoopbackRouteTests {
        @Test func helloIsTwelveBytes() async throws {
            let server = try LoopbackServer()
            let answer = try await RawClient(port: server.port).get("/hello")
            #expect(answer.status == 200)
            #expect(answer.text == "Hello, ferry")
            #expect(server.baseURL == "http://127.0.0.1:\(server.port)")
        }

        @Test func indexNamesEveryRoute() async throws {
            let server = try LoopbackServer()
            let text = try await RawClient(port: server.port).get("/").text
            for path in ["/hello", "/bytes/", "/delay/", "/echo/body", "/upload", "/until-close/"] {
                #expect(text.contains(path))
            }
        }

        @Test func unknownPathIs404() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            #expect(try await client.get("/nowhere").status == 404)
            #expect(try await client.get("/hello").status == 200)
        }

        @Test func bytesAreThePattern() async throws {
            let server = try LoopbackServer()
            let answer = try await RawClient(port: server.port).get("/bytes/700000")
            #expect(answer.body == LoopbackServer.pattern(0..<700_000))
        }

        @Test(arguments: [
            ("bytes=5-9", 206, "bytes 5-9/100", 5..<10), ("bytes=95-", 206, "bytes 95-99/100", 95..<100),
            ("bytes=-3", 206, "bytes 97-99/100", 97..<100), ("bytes=90-200", 206, "bytes 90-99/100", 90..<100),
            ("bytes=0-1,4-5", 200, nil, 0..<100), ("bytes=9-5", 200, nil, 0..<100), ("lines=1-2", 200, nil, 0..<100),
            ("bytes=100-", 416, "bytes */100", 0..<0),
        ])
        func rangeIsHonoured(range: String, status: Int, content: String?, bytes: Range<Int>) async throws {
            let server = try LoopbackServer()
            let answer = try await RawClient(port: server.port).get("/bytes/100", "Range: \(range)\r\n")
            #expect(answer.status == status)
            #expect(answer["Content-Range"] == content)
            #expect(answer.body == LoopbackServer.pattern(bytes))
        }

        @Test func ifRangeHoldsOnlyForTheSameStrongTag() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let tag = try #require(try await client.get("/bytes/100")["ETag"])
            #expect(try await client.get("/bytes/100", "Range: bytes=5-9\r\nIf-Range: \(tag)\r\n").status == 206)
            #expect(try await client.get("/bytes/100", "Range: bytes=5-9\r\nIf-Range: \"other\"\r\n").status == 200)
            let weak = "/bytes/100?etag=W/%22x%22"
            #expect(try await client.get(weak)["ETag"] == "W/\"x\"")
            #expect(try await client.get(weak, "Range: bytes=5-9\r\nIf-Range: W/\"x\"\r\n").status == 200)
            #expect(try await client.get("/bytes/100", "If-None-Match: \(tag)\r\n").status == 304)
        }

        @Test func headHasTheHeadAlone() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            for target in ["/bytes/1000000000000", "/hello", "/chunked/100", "/gzip/100", "/drip?bytes=5"] {
                let head = try await client.exchange("HEAD \(target) HTTP/1.1\r\nHost: t\r\n\r\n", toHead: true)
                #expect(head.status == 200, "\(target)")
            }
            #expect(try await client.get("/hello").text == "Hello, ferry")
        }

        @Test func cutClosesInsideTheBody() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            try await client.send("GET /bytes/1000?cut=300 HTTP/1.1\r\nHost: t\r\n\r\n")
            let head = try await client.readResponse(toHead: true)
            #expect(head["Content-Length"] == "1000")
            #expect(try await client.receiveAll() == LoopbackServer.pattern(0..<300))
        }

        @Test func statusTakesBodyAndFields() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let answer = try await client.get("/status/503?body=try%20later&Retry-After=7")
            #expect(answer.status == 503)
            #expect(answer["Retry-After"] == "7")
            #expect(answer.text == "try later")
            #expect(try await client.get("/status/204").status == 204)
            #expect(try await client.get("/status/12").status == 400)
        }

        @Test func headerSetsFieldsAndRefusesLineBreaks() async throws {
            let server = try LoopbackServer()
            let answer = try await RawClient(port: server.port).get("/header?X-One=1&X-Two=a%0d%0aEvil:1&X-One=3")
            #expect(answer.fields.filter { $0.name == "X-One" }.map(\.value) == ["1", "3"])
            #expect(answer["X-Two"] == nil)
            #expect(answer["Evil"] == nil)
        }

        @Test func redirectsHopToTheEnd() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            var target = "/redirect/3?status=307"
            for _ in 0..<3 {
                let answer = try await client.get(target)
                #expect(answer.status == 307 || target.hasSuffix("/0"))
                target = try #require(answer["Location"])
            }
            #expect(try await client.get(target).text == "Hello, ferry")
            let once = try await client.get("/redirect-to?url=http%3A%2F%2Fa.example%2F%3Fx%3D1&status=303")
            #expect(once.status == 303)
            #expect(once["Location"] == "http://a.example/?x=1")
        }

        @Test func basicAuthWantsItsCredentials() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let refused = try await client.get("/basic-auth/kim/s%3Aecret")
            #expect(refused.status == 401)
            #expect(refused["WWW-Authenticate"] == "Basic realm=\"ferry\"")
            let field = "Authorization: Basic a2ltOnM6ZWNyZXQ=\r\n"
            #expect(try await client.get("/basic-auth/kim/s%3Aecret", field).status == 200)
            #expect(try await client.get("/basic-auth/kim/other", field).status == 401)
        }

        @Test(arguments: [0, 1, 50, 300_000])
        func chunkedCarriesThePattern(count: Int) async throws {
            let server = try LoopbackServer()
            let answer = try await RawClient(port: server.port).get("/chunked/\(count)?chunk=777")
            #expect(answer["Transfer-Encoding"] == "chunked")
            #expect(answer.body == LoopbackServer.pattern(0..<count))
        }

        @Test func dripAndDelayTakeTheirTime() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let clock = ContinuousClock()
            let start = clock.now
            #expect(try await client.get("/drip?bytes=6&interval=10&chunk=2").body == LoopbackServer.pattern(0..<6))
            #expect(try await client.get("/delay/30").text == "Hello, ferry")
            #expect(start.duration(to: clock.now) >= .milliseconds(60))
        }

        /// A clock in whole milliseconds ends some of them early.
        @Test func aDelayIsNeverShorterThanGiven() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let clock = ContinuousClock()
            for _ in 0..<40 {
                let start = clock.now
                #expect(try await client.get("/delay/2").status == 200)
                #expect(start.duration(to: clock.now) >= .milliseconds(2))
            }
        }

        @Test func untilCloseEndsWithFIN() async throws {
            let server = try LoopbackServer()
            let answer = try await RawClient(port: server.port).get("/until-close/100000")
            #expect(answer["Content-Length"] == nil)
            #expect(answer.body == LoopbackServer.pattern(0..<100_000))
        }

        @Test func closeClosesAndSaysSo() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            #expect(try await client.get("/close")["Connection"] == "close")
            #expect(try await client.receiveAll().isEmpty)
            let old = try RawClient(port: server.port)
            _ = try await old.exchange("GET /hello HTTP/1.0\r\n\r\n")
            #expect(try await old.receiveAll().isEmpty)
        }

        @Test func jsonIsTwelveObjects() async throws {
            let server = try LoopbackServer()
            let answer = try await RawClient(port: server.port).get("/json")
            #expect(answer["Content-Type"] == "application/json")
            #expect(answer.text.split(separator: "\"tags\":").count == 13)
            #expect(answer.text.hasPrefix("[{") && answer.text.hasSuffix("}]"))
        }
    }
}
