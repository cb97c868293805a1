import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryCommand

/// `ferry fetch --cache-…`
@Suite(.timeLimit(.minutes(2))) struct FetchCacheTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UUID().uuidString)").path

    private func plan(_ line: [String]) throws -> FetchPlan {
        try FetchPlan(ParsedArguments(line, of: FetchCommand.allOptions))
    }

    /// Each with an agent of its own, like separate processes.
    private func report(_ line: String...) async throws -> FetchReport {
        let plan = try plan(line)
        return await withNetworkAgent(configuration: plan.configuration, grace: .zero) { agent in
            await FetchReport(of: plan, by: agent)
        }
    }

    @Test func theSecondOneIsAnsweredByTheFolder() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            let url = server.baseURL + "/hello"
            let first = try await report(url, "--cache-dir", folder, "--cache-ttl", "60")
            #expect(first.response?.isFromCache == false)
            let second = try await report(url, "--cache-dir", folder, "--cache-ttl", "60")
            #expect(second.response?.isFromCache == true)
            #expect(second.response?.bytes == first.response?.bytes)
            #expect(second.json.contains("\"fromCache\":true"))
            let other = try await report(url, "--cache-dir", folder, "--cache-ttl", "60", "--cache-version", "2")
            #expect(other.response?.cacheMiss == .versionMismatch)
            let reload = try await report(
                url, "--cache-dir", folder, "--cache-ttl", "60", "--cache-version", "2", "--cache-mode", "reload")
            #expect(reload.response?.cacheMiss == .reload)
            #expect(server.requests.count == 3)
        }
        let only = try await report(
            "http://127.0.0.1:1/", "--cache-dir", folder, "--cache-ttl", "60", "--cache-mode", "only")
        #expect(only.fault?.code == "notCached")
        #expect(only.fault?.message.hasPrefix("notFound") == true)
        #expect(only.exitCode == .transferFailed)
    }

    @Test(arguments: ["--http-cache", "--http-cache=private", "--http-cache=shared"])
    func theServerSaysHowLong(option: String) async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            server.handle("/fresh") { _ in LoopbackResponse(headers: ["Cache-Control": "max-age=60"], text: "a") }
            server.handle("/tagged") { request in
                let headers: LoopbackHeaders = ["Cache-Control": "no-cache", "ETag": "\"a\""]
                let isKnown = request.headers["If-None-Match"] == "\"a\""
                return isKnown
                    ? LoopbackResponse(status: 304, headers: headers) : LoopbackResponse(headers: headers, text: "b")
            }
            let options = ["--cache-dir", folder, option]
            func status(_ path: String) async throws -> String? {
                let plan = try plan([server.baseURL + path] + options)
                let report = await withNetworkAgent(configuration: plan.configuration, grace: .zero) { agent in
                    await FetchReport(of: plan, by: agent)
                }
                #expect(report.response?.status == 200 && report.response?.bodyLength == 1)
                return try JSON(parsing: report.json).value(atPointer: "/cacheStatus")?.string
            }
            let first = try #require(try await status("/fresh"))
            #expect(first.hasPrefix("Ferry; fwd=uri-miss; stored; ttl="))
            let second = try #require(try await status("/fresh"))
            #expect(second.hasPrefix("Ferry; hit; ttl="))
            _ = try await status("/tagged")
            let validated = try #require(try await status("/tagged"))
            #expect(validated.hasPrefix("Ferry; fwd=stale; fwd-status=304; stored; ttl="))
            #expect(server.requests.count == 3)
        }
    }

    @Test func whatWasFetchedUnverifiedIsNoAnswerForWhoVerifies() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            let line = [server.baseURL + "/hello", "--cache-dir", folder, "--cache-ttl", "60"]
            for options in [["--insecure"], [], ["--pin", "sha256//" + String(repeating: "A", count: 43) + "="]] {
                let plan = try plan(line + options)
                for isSecond in [false, true] {
                    let report = await withNetworkAgent(configuration: plan.configuration, grace: .zero) { agent in
                        await FetchReport(of: plan, by: agent)
                    }
                    #expect(report.response?.isFromCache == isSecond, "\(options)")
                }
            }
        }
    }

    @Test func aStatusThatIsNotAcceptedIsNotKept() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            for _ in 0..<2 {
                let report = try await report(
                    server.baseURL + "/status/404", "--cache-dir", folder, "--cache-ttl", "60")
                #expect(report.exitCode == .statusNotAccepted)
                #expect(report.response?.isFromCache == false)
            }
        }
    }

    @Test func theBodyIsPrintedFromTheFolderToo() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            var plan = try plan([server.baseURL + "/hello", "--cache-dir", folder, "--cache-ttl", "60"])
            plan.count = 3
            var printed: [UInt8] = []
            let code = await FetchCommand.send(plan) {
                printed += $0
            } saying: { _ in
            }
            #expect(code == .success)
            #expect(server.requests.count == 1)
            let one = try #require(server.requests.first.map { _ in printed.count / 3 })
            #expect(printed.count == one * 3 && one > 0)
        }
    }

    @Test(arguments: [
        ["--cache-ttl", "1"], ["--cache-mode", "only"], ["--cache-version", "1"], ["--cache-dir", "/x"],
        ["--cache-dir", "", "--cache-ttl", "1"], ["--cache-dir", "/x", "--cache-ttl", "0"],
        ["--cache-dir", "/x", "--cache-ttl", "1", "--cache-mode", "never"],
        ["--cache-dir", "/x", "--cache-ttl", "1", "--cache-version", "-1"],
        ["--http-cache"], ["--cache-dir", "/x", "--http-cache=public"],
        ["--cache-dir", "/x", "--http-cache", "--cache-ttl", "1"],
        ["--cache-dir", "/x", "--http-cache", "--cache-version", "1"],
        ["--cache", "redis://h", "--cache-dir", "/x", "--cache-ttl", "1"], ["--cache", "redis://h"],
        ["--cache", "", "--cache-ttl", "1"], ["--cache", "h:6379", "--cache-ttl", "1"],
        ["--cache", "redis://h/x", "--http-cache"], ["--cache", "rediss://h?x=1", "--http-cache"],
        ["--cache", "redis://h", "--events", "--http-cache"],
    ]) func whatDoesNotFitTogetherIsAUsageError(line: [String]) {
        #expect(throws: UsageError.self) { try plan(["http://h/"] + line) }
    }

    @Test(arguments: [
        ("redis://kim:secret@/0", "--cache needs redis://, rediss:// or unix:///PATH: the host is missing"),
        ("rediss://:secret@h?key=/x", "key needs cert"),
    ]) func anErrorNamesWhatIsWrongAndNoPassword(url: String, message: String) {
        let error = #expect(throws: UsageError.self) { try plan(["http://h/", "--cache", url, "--http-cache"]) }
        #expect(error.map { "\($0)" }?.contains(message) == true)
        #expect(error.map { "\($0)" }?.contains("secret") == false)
    }

    /// Nobody listens there.
    @Test func anAbsentRedisFailsNoRequest() async throws {
        try await withLoopbackServer { server in
            for policy in [["--cache-ttl", "60"], ["--http-cache"]] {
                let plan = try plan([server.baseURL + "/hello", "--cache", "redis://127.0.0.1:1/3"] + policy)
                let report = await withNetworkAgent(configuration: plan.configuration, grace: .zero) { agent in
                    await FetchReport(of: plan, by: agent)
                }
                #expect(report.exitCode == .success && report.response?.isFromCache == false)
                #expect(report.response?.cacheStatus?.forward != nil)
            }
            #expect(server.requestCount == 2)
        }
    }
}
