import FerryTesting
import Foundation
import Injection
import Testing

/// Runs of other kinds while system calls fail: streamed, with a body, over TLS, over HTTP/2. Each ends once, with all
/// its bytes or with an error, and the next one succeeds.
@Suite(.timeLimit(.minutes(10)), .enabled(if: Injection.isPossible)) struct InjectionWayTests {
    private static let calls =
        (Injection.network + Injection.threads).flatMap { name in (1...6).map { Injection.call($0, of: name) } }

    private static let injections =
        calls + (1...120).map { Injection.call($0, ofRequest: "malloc") } + Injection.random

    /// A body that is read while it is sent.
    private static let ofUploads = injections + (1...4).map { Injection.call($0, of: "pread") }

    /// Up to the handshake: after it libcurl 7.88.1 frees a name twice, the first time if it has no memory to keep a
    /// session (`Curl_ssl_addsessionid`), the second time with the next one.
    private static let underTLS =
        calls + (1...70).map { Injection.call($0, ofRequest: "malloc") }
        + Injection.chances(of: Injection.network + Injection.threads)

    private let folder: ServerFolder

    init() throws { folder = try ServerFolder() }

    @Test(arguments: injections) func streamed(injection: Injection) throws {
        let server = try LoopbackServer()
        // Data is compared by optimised code: arrays took a half of the processor time of this suite.
        let whole = Data(LoopbackServer.pattern(0..<300_000))
        let path = folder.file("output")
        let count = injection.isSingle ? 2 : 1
        let outcome = try injection.run(
            ["fetch", "--repeat", "\(count)", server.baseURL + "/bytes/\(whole.count)"], to: path)
        let bytes = try Data(contentsOf: URL(filePath: path))
        if outcome.code == 0 {
            #expect(bytes == (count == 2 ? whole + whole : whole), "\(bytes.count) bytes")
            return
        }
        #expect(outcome.code == 3 && !outcome.error.isEmpty, "\(outcome)")
        if bytes.count < whole.count {
            // More than one of them fails only if there was no loop.
            #expect(whole.prefix(bytes.count) == bytes)
            #expect(!injection.isSingle || outcome.error.contains("internalError"), "\(outcome)")
        } else {
            // One of the two has failed, perhaps after its last byte, and the other is complete.
            let part = bytes.count - whole.count
            let isSecond = bytes.prefix(whole.count) == whole && bytes.dropFirst(whole.count) == whole.prefix(part)
            let isFirst = bytes.prefix(part) == whole.prefix(part) && bytes.dropFirst(part) == whole
            #expect(part <= whole.count && (isFirst || isSecond), "\(bytes.count) bytes")
        }
    }

    @Test(arguments: ofUploads) func upload(injection: Injection) throws {
        let server = try LoopbackServer()
        let body = LoopbackServer.pattern(0..<700_000)
        try folder.write(body, to: "body")
        let outcome = try injection.run([
            "fetch", "--json", "--repeat", "3", "-d", "@" + folder.file("body"), server.baseURL + "/echo/body",
        ])
        try expectReports(outcome, sha256(body), injection)
        if injection.description.hasPrefix("malloc@") {
            let codes = Set(try outcome.reports.compactMap(\.error?.code))
            #expect(codes.isSubset(of: ["internalError", "connect"]), "\(outcome)")
        }
        // Its length shows that it was truncated.
        let requests = server.requests
        #expect(requests.allSatisfy { $0.headers["Content-Length"] == "\(body.count)" })
        #expect(requests.allSatisfy { $0.bodyLength <= UInt64(body.count) })
        let whole = requests.count { $0.bodyLength == UInt64(body.count) }
        #expect(try whole >= outcome.reports.count { $0.ok })
    }

    private static let certificate = Result { try ServerCertificate() }

    @Test(arguments: underTLS) func secure(injection: Injection) throws {
        let certificate = try Self.certificate.get()
        let server = try LoopbackServer(.init(certificate: certificate))
        // By name, so that a thread has to look it up.
        let url = "https://localhost:\(server.port)/bytes/100000"
        let outcome = try injection.run(
            ["fetch", "--json", "--repeat", "3", "--cacert", certificate.authorityFile, url])
        try expectReports(outcome, sha256(LoopbackServer.pattern(0..<100_000)), injection)
    }

    private static let starved =
        (1...60).flatMap { [Injection.call($0, of: "malloc"), Injection.call($0, ofRequest: "malloc")] }

    @Test(arguments: starved) func aKeyThatIsNotPinnedIsNotTrustedForLackOfMemory(injection: Injection) throws {
        let certificate = try Self.certificate.get()
        let server = try LoopbackServer(.init(certificate: certificate))
        let pin = "sha256//" + String(repeating: "A", count: 43) + "="
        let outcome = try injection.run([
            "fetch", "--json", "--repeat", "2", "--cacert", certificate.authorityFile, "--pin", pin,
            server.baseURL + "/hello",
        ])
        let reports = try outcome.reports
        #expect(reports.count == 2 && reports.allSatisfy { !$0.ok }, "\(outcome)")
        #expect(server.requestCount == 0, "\(outcome)")
    }

    /// Without a cookie jar: when libcurl parses the whole URL itself, 7.88 forgets the query.
    @Test(arguments: starved) func whatIsSentIsWhatWasAskedForOrNothing(injection: Injection) throws {
        let server = try LoopbackServer()
        let path = "/redirect-to?status=307&url=/hello%3Fa%3D1"
        let outcome = try injection.run([
            "fetch", "--json", "--repeat", "2", "-X", "DELETE", server.baseURL + path,
        ])
        #expect(outcome.code == 0 || outcome.code == 3, "\(outcome)")
        for request in server.requests {
            #expect(request.method == "DELETE" && [path, "/hello?a=1"].contains(request.target), "\(request)")
        }
    }

    private static let nghttpd = Result { try NGHTTPServer() }

    @Test(arguments: underTLS) func http2(injection: Injection) throws {
        let authority = try Certificates.shared.authorityFile
        let outcome = try injection.run([
            "fetch", "--json", "--repeat", "3", "--http2", "--cacert", authority,
            try Self.nghttpd.get().url("/64k.bin"),
        ])
        try expectReports(outcome, sha256(Nginx.pattern(64 * 1024)), injection)
    }

    /// Three, each with the whole body or an error; if one call has failed, at most one of them.
    private func expectReports(_ outcome: FerryCommand.Outcome, _ digest: String, _ injection: Injection) throws {
        #expect(outcome.code == 0 || outcome.code == 3, "\(outcome)")
        let reports = try outcome.reports
        #expect(reports.count == 3, "\(outcome)")
        for report in reports where report.ok { #expect(report.sha256 == digest) }
        let faults = reports.filter { !$0.ok }.map(\.error)
        #expect(faults.allSatisfy { $0.map { !$0.code.isEmpty && !$0.message.isEmpty } ?? false }, "\(outcome)")
        let hasNoLoop = faults.count == 3 && faults.allSatisfy { $0?.code == "internalError" }
        if injection.isSingle { #expect(faults.count <= 1 || hasNoLoop, "\(outcome)") }
    }
}
