import FoundationEssentials
import Testing

/// `ferry fetch` with real servers, as a user runs it.
@Suite(.timeLimit(.minutes(2))) struct FetchTests {
    @Test("stdout gets the body and nothing else")
    func body() throws {
        let outcome = try FerryCommand.run("fetch", Nginx.shared.url("/hello.txt"))
        #expect(outcome.output == "Hello, ferry")
        #expect(outcome.error == "" && outcome.code == 0)
    }

    @Test("--json describes the response")
    func report() throws {
        let outcome = try FerryCommand.run("fetch", "--json", Nginx.shared.url("/1m.bin"))
        let report = try #require(try outcome.reports.first)
        #expect(report.ok && report.status == 200 && report.bytes == 1024 * 1024)
        #expect(report.sha256 == sha256(Nginx.pattern(1024 * 1024)))
        #expect(report.headers["content-type"] == "application/octet-stream")
    }

    @Test("a rejected status exits with 5, and the body is printed all the same")
    func status() throws {
        let outcome = try FerryCommand.run("fetch", Nginx.shared.url("/private/secret.txt"))
        #expect(outcome.code == 5 && outcome.output.contains("401 Authorization Required"))
        #expect(outcome.error.hasPrefix("ferry fetch: "))
        let opened = try FerryCommand.run("fetch", "--basic", "ferry:secret", Nginx.shared.url("/private/secret.txt"))
        #expect(opened.code == 0 && opened.output == "for ferry only")
    }

    @Test("method, header fields and form arrive")
    func form() throws {
        let outcome = try FerryCommand.run(
            "fetch", "-X", "PUT", "-H", "X-One: 1", "--form", "a=1 2", "--form", "b=ü", Nginx.shared.url("/echo"))
        let echo = try JSONDecoder().decode(Echo.self, from: Data(outcome.output.utf8))
        #expect(echo.method == "PUT" && echo["X-One"] == "1")
        #expect(echo["Content-Type"] == "application/x-www-form-urlencoded")
        #expect(echo.sha256 == sha256(Array("a=1%202&b=%C3%BC".utf8)))
    }

    @Test("one agent sends all repetitions over one connection")
    func repeated() throws {
        let outcome = try FerryCommand.run("fetch", "--json", "--repeat", "5", Nginx.shared.url("/hello.txt"))
        #expect(try outcome.reports.map(\.reusedConnection) == [false, true, true, true, true])
    }

    @Test("--cacert trusts, --pin restricts, and without either the server is not trusted")
    func trust() throws {
        let url = try Nginx.shared.url("/hello.txt", .tls)
        let certificates = try Certificates.shared
        let trusting = try FerryCommand.run("fetch", "--cacert", certificates.authorityFile, url)
        #expect(trusting.code == 0 && trusting.output == "Hello, ferry")
        let pinned = try FerryCommand.run("fetch", "-k", "--pin", certificates.pin(.client), "--json", url)
        #expect(try pinned.reports.first?.error?.code == "tls")
        let stranger = try FerryCommand.run("fetch", url)
        let words = ["no TLS connection to 127.0.0.1:", "certificate"]
        #expect(stranger.code == 3 && words.allSatisfy { stranger.error.contains($0) }, "\(stranger)")
    }
}
