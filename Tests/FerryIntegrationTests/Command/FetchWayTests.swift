import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// `ferry fetch` through proxies and other intermediaries.
@Suite(.timeLimit(.minutes(2))) struct FetchWayTests {
    @Test("--proxy goes through squid to http and to https")
    func proxy() async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        let mark = token()
        let plain = try FerryCommand.run("fetch", "--proxy", squid.url(), nginx.url("/hello.txt?\(mark)"))
        #expect(plain.code == 0 && plain.output == "Hello, ferry")
        #expect(try await squid.log(mark, count: 1).count == 1)
        let authority = try Certificates.shared.authorityFile
        let tunnel = try FerryCommand.run(
            "fetch", "-x", squid.url(.locked, "ferry:secret"), "--cacert", authority, nginx.url("/hello.txt", .tls))
        #expect(tunnel.code == 0 && tunnel.output == "Hello, ferry")
    }

    @Test("a proxy that requires credentials fails with an error that says so, without showing those given")
    func locked() throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        let proxy = squid.url(.locked, "ferry:canary")
        for url in [nginx.url("/hello.txt"), nginx.url("/hello.txt", .tls)] {
            let outcome = try FerryCommand.run("fetch", "--json", "--verbose", "--proxy", proxy, url)
            let fault = try #require(try outcome.reports.first?.error)
            #expect(outcome.code == 3 && fault.code == "proxy" && fault.message.hasPrefix("authRequired"))
            #expect(!(outcome.output + outcome.error).contains("canary"))
        }
    }

    @Test("the environment's proxy is used with --proxy-env only")
    func environment() async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        let mark = token()
        let variables = ["http_proxy": squid.url()]
        for (option, name) in [("--json", "past"), ("--proxy-env", "through")] {
            let url = nginx.url("/hello.txt?\(name)-\(mark)")
            let outcome = try FerryCommand.run("fetch", option, url, environment: variables)
            #expect(outcome.code == 0)
        }
        let lines = try await squid.log(mark, count: 1)
        #expect(lines.map(\.target) == [nginx.url("/hello.txt?through-\(mark)")])
    }

    @Test("SOCKS, HTTP/2, a client certificate, redirects and retries have an option each")
    func others() throws {
        let nginx = try Nginx.shared
        let certificates = try Certificates.shared
        let socks = try SOCKSProxy()
        let trust = ["--cacert", certificates.authorityFile]
        func output(_ arguments: [String]) throws -> String { try FerryCommand.run(["fetch"] + arguments).output }

        let address = "socks5h://127.0.0.1:\(socks.port)"
        #expect(try output(["--proxy", address, nginx.url("/hello.txt", host: "localhost")]) == "Hello, ferry")
        #expect(try output(trust + ["--http2", nginx.url("/hello.txt", .http2)]) == "Hello, ferry")
        let certificate = ["--cert", certificates.file(.client), "--key", certificates.key(.client)]
        #expect(try output(trust + certificate + [nginx.url("/hello.txt", .mutual)]) == "Hello, ferry")
        let redirected = try FerryCommand.run("fetch", "--json", nginx.url("/chain/1"))
        #expect(try redirected.reports.first?.redirects.count == 3)
        let retried = try FerryCommand.run(
            "fetch", "--json", "--retries", "2", Upstream.shared.url + "/flaky?id=\(token())&fail=2")
        #expect(try retried.reports.first?.attempts == 3)
        let forbidden = try FerryCommand.run("fetch", "--json", "--public-only", nginx.url("/hello.txt"))
        #expect(try forbidden.reports.first?.error?.code == "addressForbidden")
    }
}
